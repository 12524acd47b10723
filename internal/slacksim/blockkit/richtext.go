package blockkit

import "unicode/utf8"

var textStyle = shape(
	may("bold", boolean), may("italic", boolean), may("strike", boolean), may("code", boolean),
	may("underline", boolean), may("highlight", boolean), may("client_highlight", boolean), may("unlink", boolean),
)

// inline is one element inside a rich text section.
func inline(fields ...field) rule {
	return shape(append([]field{need("type", anyText), may("style", textStyle)}, fields...)...)
}

var richTextText = also(inline(need("text", text(1, unlimited))), func(c *Checker, o object, _ string) {
	if s, ok := o["text"].(string); ok {
		c.text += utf8.RuneCountInString(s)
	}
})

// inlines are what the reference lists for rich_text_section.
//
// https://docs.slack.dev/reference/block-kit/block-elements/rich-text-section-element
var inlines = map[string]rule{
	"text": richTextText,
	"link": inline(need("url", text(1, 3000)), may("text", anyText), may("unsafe", boolean),
		fromLLM, may("is_slack_url", boolean), may("truncated", boolean)),
	"user":      inline(need("user_id", shortText), fromLLM),
	"channel":   inline(need("channel_id", shortText), may("tab_id", anyText), fromLLM),
	"usergroup": inline(need("usergroup_id", shortText)),
	"team":      inline(need("team_id", shortText)),
	"broadcast": inline(need("range", enum("here", "channel", "everyone"))),
	"emoji": inline(need("name", shortText), may("unicode", anyText), may("skin_tone", integer(1, 6)),
		may("url", anyText)),
	"color": inline(need("value", shortText)),
	"date": inline(need("timestamp", integer(0, unlimited*8)), need("format", text(1, 3000)),
		may("url", text(1, 3000)), may("fallback", anyText), may("timezone", anyText)),
	"tag": inline(need("text", text(1, unlimited)), may("color", anyText)),
	"citation": inline(need("url", text(1, 3000)), need("text", anyText), need("index", number), need("details", citation),
		fromLLM, may("is_slack_url", boolean)),
	"attachment_mention": inline(need("url", text(1, 3000)), may("text", anyText), may("app_id", anyText), may("entity_id", anyText),
		may("icon_url", anyText), may("channel_id", anyText), may("ts", anyText), may("full_size_preview_enabled", boolean),
		may("icon_name", anyText), may("reference_object_type", anyText), may("product_name", anyText)),
	"message_mention": inline(need("channel_id", shortText), need("message_ts", shortText), may("author_id", anyText),
		may("thread_ts", anyText), may("text", anyText), may("url", anyText)),
	"work_object_mention": inline(need("entity_id", shortText), need("app_id", shortText), need("text", anyText), need("url", text(1, 3000)),
		may("icon_url", anyText), may("full_size_preview_enabled", boolean), may("product_name", anyText)),
	"workflow_mention": inline(need("workflow_id", shortText), need("function_trigger_id", shortText), need("text", anyText),
		may("url", anyText), may("channel_id", anyText), may("ts", anyText)),
	"file": inline(need("file_id", shortText), may("text", anyText), may("url", anyText), may("is_skill_invocation", boolean)),
	"canvas": inline(need("file_id", shortText), may("label", anyText), may("hide_title", boolean), may("section_id", anyText),
		may("text", anyText), may("url", anyText), may("is_skill_invocation", boolean)),
	"canvas_user_mention":   inline(need("user_id", shortText), may("thread_id", anyText)),
	"canvas_message_unfurl": inline(need("root_message_channel", shortText), need("root_message_ts", shortText)),
	"list_record": inline(need("file_id", shortText), may("record_id", anyText), may("view_id", anyText),
		may("text", anyText), may("url", anyText)),
	"salesforce_data_field": inline(need("salesforce_record_id", shortText), may("salesforce_field_label", anyText),
		may("salesforce_field_api_name", anyText), may("salesforce_include_field_label", boolean),
		may("has_withheld_salesforce_field_names", boolean)),
}

var (
	shortText = text(1, 255)
	fromLLM   = may("from_llm", boolean)
)

// citation is the details of a citation, which differ by citation_type.
func citation(c *Checker, v any, at string) {
	o, ok := v.(object)
	if !ok {
		c.fail(at, "must provide an object")
		return
	}
	if kind, given := o["citation_type"]; given {
		anyText(c, kind, at+"/citation_type")
		return
	}
	c.fail(at, "missing required field: citation_type")
}

var (
	border  = integer(0, 1)
	section = shape(need("type", anyText), need("elements", list(0, unlimited, typed(inlines))))
	quote   = shape(need("type", anyText), need("elements", list(0, unlimited, typed(inlines))), may("border", border))

	preformatted = shape(need("type", anyText), may("border", border), may("language", text(1, 255)),
		need("elements", list(0, unlimited, typed(inlines))))

	richTextList = shape(need("type", anyText), need("style", enum("bullet", "ordered")),
		may("indent", integer(0, 8)), may("border", border), may("offset", integer(0, unlimited)),
		need("elements", list(0, unlimited, typed(map[string]rule{"rich_text_section": section}))))
)

// richText is rich text as a value of other blocks. Several of one payload may have the same
// block_id, as in the reference's example of a plan.
//
// https://docs.slack.dev/reference/block-kit/blocks/plan-block
var richText = typed(map[string]rule{"rich_text": richTextOf(identifier)})

var richTextBlock = richTextOf(blockID)

func richTextOf(id rule) rule {
	return shape(need("type", anyText), may("block_id", id),
		need("elements", list(0, unlimited, typed(map[string]rule{
			"rich_text_section":      section,
			"rich_text_list":         richTextList,
			"rich_text_preformatted": preformatted,
			"rich_text_quote":        quote,
		}))))
}
