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

var inlines = map[string]rule{
	"text":      richTextText,
	"link":      inline(need("url", text(1, 3000)), may("text", anyText), may("unsafe", boolean)),
	"user":      inline(need("user_id", text(1, 255))),
	"channel":   inline(need("channel_id", text(1, 255))),
	"usergroup": inline(need("usergroup_id", text(1, 255))),
	"team":      inline(need("team_id", text(1, 255))),
	"broadcast": inline(need("range", enum("here", "channel", "everyone"))),
	"emoji": inline(need("name", text(1, 255)), may("unicode", anyText), may("skin_tone", integer(1, 6)),
		may("url", anyText)),
	"color": inline(need("value", text(1, 255))),
	"date": inline(need("timestamp", integer(0, unlimited*8)), need("format", text(1, 3000)),
		may("url", text(1, 3000)), may("fallback", anyText)),
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
