package blockkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"
)

// The bounds of one payload.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
	MaxMarkdown      = 12_000 // characters of all markdown blocks of a payload
)

// block is a block: its type, a block_id, and fields.
func block(fields ...field) rule {
	return ownActions(shape(append([]field{need("type", anyText), may("block_id", blockID)}, fields...)...))
}

// ownActions makes action_ids unique in one block only, as the reference of
// every element says ("among all other action_ids in the containing block").
// Refusals that apps have reported are all of one block.
func ownActions(r rule) rule {
	return func(c *Checker, v any, at string) {
		around := c.actions
		c.actions = map[string]bool{}
		r(c, v, at)
		c.actions = around
	}
}

var (
	accessories = []string{
		"button", "checkboxes", "datepicker", "image", "multi_static_select", "multi_external_select",
		"multi_users_select", "multi_conversations_select", "multi_channels_select", "overflow", "radio_buttons",
		"static_select", "external_select", "users_select", "conversations_select", "channels_select",
		"timepicker", "workflow_button",
	}
	actionElements = []string{
		"button", "checkboxes", "datepicker", "datetimepicker", "overflow", "radio_buttons", "static_select",
		"external_select", "users_select", "conversations_select", "channels_select", "timepicker", "workflow_button",
	}
	inputElements = []string{
		"checkboxes", "datepicker", "datetimepicker", "email_text_input", "file_input", "multi_static_select",
		"multi_external_select", "multi_users_select", "multi_conversations_select", "multi_channels_select",
		"number_input", "plain_text_input", "radio_buttons", "rich_text_input", "static_select", "external_select",
		"users_select", "conversations_select", "channels_select", "timepicker", "url_text_input",
	}
)

var contextElement = typed(map[string]rule{
	"image":      image(),
	"plain_text": mrkdwnOrPlain(3000),
	"mrkdwn":     mrkdwnOrPlain(3000),
})

// Blocks that other blocks are made of.
var (
	sectionBlock = also(block(
		may("text", mrkdwnOrPlain(3000)), may("fields", list(1, 10, mrkdwnOrPlain(2000))),
		may("accessory", typed(pick(accessories...))), may("expand", boolean)),
		func(c *Checker, o object, at string) {
			if o["text"] == nil && o["fields"] == nil {
				c.fail(at+"/type", "must define either `text` or `fields`")
			}
		})
	cardBlock = also(block(
		may("hero_image", image()), may("icon", image()), may("slack_icon", shape(need("type", anyText), need("name", text(1, 255)))),
		may("title", mrkdwnOrPlain(150)), may("subtitle", mrkdwnOrPlain(150)),
		may("body", mrkdwnOrPlain(200)), may("subtext", mrkdwnOrPlain(200)),
		may("actions", list(1, 25, typed(pick("button", "icon_button", "workflow_button"))))),
		func(c *Checker, o object, at string) {
			if o["hero_image"] == nil && o["title"] == nil && o["actions"] == nil && o["body"] == nil {
				c.fail(at+"/type", "must define at least one of `hero_image`, `title`, `actions` or `body`")
			}
			if o["icon"] != nil && o["slack_icon"] != nil {
				c.fail(at, "must define only one of `icon` or `slack_icon`")
			}
		})
	taskCard = block(need("task_id", text(1, 255)), need("title", text(1, 255)),
		may("status", enum("pending", "in_progress", "complete", "error")),
		may("details", richText), may("output", richText), may("hide_title", boolean),
		may("sources", list(0, 100, shape(need("type", enum("url")), need("url", text(1, 3000)), need("text", anyText)))))
)

// blocks has every block by type, and surfaces says where each is allowed.
var blocks map[string]rule

var surfaces = map[Surface][]string{
	OnMessage: {
		"actions", "card", "carousel", "container", "context", "context_actions", "data_table", "data_visualization",
		"divider", "header", "image", "input", "layout", "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
	},
	OnModal: {
		"actions", "alert", "context", "divider", "header", "image", "input", "rich_text", "section", "video",
	},
	OnHome: {
		"actions", "card", "carousel", "container", "context", "divider", "header", "image", "input", "layout",
		"rich_text", "section", "video",
	},
}

func init() { // breaks the cycle of blocks that contain blocks
	blocks = map[string]rule{
		"section":         sectionBlock,
		"header":          block(need("text", plain(150)), may("level", integer(1, 4))),
		"divider":         block(),
		"image":           image(may("block_id", blockID), may("title", plain(2000))),
		"context":         block(need("elements", list(1, 10, contextElement))),
		"actions":         block(need("elements", list(1, 25, typed(pick(actionElements...))))),
		"context_actions": block(need("elements", list(1, 5, typed(pick("feedback_buttons", "icon_button"))))),
		"input": also(block(
			need("label", plain(2000)), need("element", typed(pick(inputElements...))), may("hint", plain(2000)),
			may("optional", boolean), may("dispatch_action", boolean)),
			func(c *Checker, _ object, at string) { c.inputs = append(c.inputs, at) }),
		"rich_text": richTextBlock,
		"video": block(need("alt_text", text(1, 2000)), need("title", plain(200)), need("thumbnail_url", text(1, 3000)),
			need("video_url", text(1, 3000)), may("title_url", text(1, 3000)), may("author_name", text(1, 50)),
			may("provider_name", text(1, 255)), may("provider_icon_url", text(1, 3000)), may("description", plain(200))),
		"alert": block(need("text", mrkdwnOrPlain(200)), may("level", enum("default", "info", "warning", "error", "success"))),
		"markdown": also(shape(need("type", anyText), need("text", text(1, MaxMarkdown)), may("block_id", anyText)), func(c *Checker, o object, at string) {
			s, _ := o["text"].(string)
			before := c.markdown
			c.markdown += utf8.RuneCountInString(s)
			if c.markdown > MaxMarkdown && utf8.RuneCountInString(s) <= MaxMarkdown && before <= MaxMarkdown {
				c.fail(at+"/text", "must be less than %d characters", MaxMarkdown+1)
			}
		}),
		"table": also(block(
			need("rows", list(1, 100, list(1, 20, tableCell))),
			may("column_settings", list(0, 20, orNull(shape(may("align", enum("left", "center", "right")), may("is_wrapped", boolean)))))),
			func(c *Checker, _ object, _ string) { c.tables++ }, tableText),
		"data_table": also(block(
			need("caption", text(1, 2000)), need("rows", list(2, 101, list(1, 20, typed(dataCells)))),
			may("page_size", integer(1, 100)), may("row_header_column_index", integer(0, 19))), dataTableRows, tableText),
		"data_visualization": dataVisualization,

		"card":     cardBlock,
		"carousel": block(need("elements", list(1, 10, typed(map[string]rule{"card": cardBlock})))),
		"container": also(block(
			may("title", mrkdwnOrPlain(150)), may("rich_text_title", richText), may("subtitle", mrkdwnOrPlain(150)),
			may("icon", image()), may("width", enum("narrow", "standard", "wide", "full")), may("is_collapsible", boolean),
			may("default_collapsed", boolean), may("has_header_divider", boolean),
			need("child_blocks", list(1, 10, child("container", "carousel")))), oneOf("title", "rich_text_title")),
		"layout": block(need("label", text(1, 150)), may("is_label_visible", boolean),
			may("grid_lines", enum("none", "horizontal", "vertical", "all")), may("fallback", list(1, 50, child("layout"))),
			need("rows", list(1, 5, shape(need("items", list(1, 3, shape(
				need("block", child("layout", "markdown")), may("width", anyText), may("horizontal_alignment", anyText)))))))),
		"task_card": taskCard,
		"plan": block(need("title", text(1, 255)),
			may("tasks", list(0, 50, planTask))),
	}
}

// planTask is a task card that need not say its type, as in the example of the reference.
//
// https://docs.slack.dev/reference/block-kit/blocks/plan-block
func planTask(c *Checker, v any, at string) {
	if o, ok := v.(object); ok {
		if _, said := o["type"]; !said {
			o = maps.Clone(o)
			o["type"] = "task_card"
			v = o
		}
	}
	typed(map[string]rule{"task_card": taskCard})(c, v, at)
}

var (
	rawText   = shape(need("type", anyText), need("text", text(1, unlimited)))
	rawNumber = shape(need("type", anyText), need("value", number), may("text", anyText))

	tableCell = typed(map[string]rule{"raw_text": rawText, "raw_number": rawNumber, "rich_text": richTextOf(identifier)})
	dataCells = map[string]rule{
		"raw_text": rawText, "raw_number": rawNumber, "rich_text": richTextOf(identifier),
		"action_cell": shape(need("type", anyText), need("element", typed(pick("button"))),
			may("fallback", typed(map[string]rule{"raw_text": rawText, "raw_number": rawNumber}))),
	}
)

// dataTableRows checks that the header has texts and numbers only, and that every row
// has as many cells.
//
// https://docs.slack.dev/reference/block-kit/blocks/data-table-block
func dataTableRows(c *Checker, o object, at string) {
	rows, _ := o["rows"].([]any)
	if len(rows) == 0 {
		return
	}
	header, _ := rows[0].([]any)
	for i, cell := range header {
		o, _ := cell.(object)
		if kind := str(o["type"]); dataCells[kind] != nil && kind != "raw_text" && kind != "raw_number" {
			c.fail(fmt.Sprintf("%s/rows/0/%d/type", at, i), "unsupported type: %s", kind)
		}
	}
	for i, row := range rows {
		if cells, ok := row.([]any); ok && len(cells) > 0 && len(cells) <= 20 && len(cells) != len(header) {
			c.fail(fmt.Sprintf("%s/rows/%d", at, i), "must provide %d items", len(header))
		}
	}
}

// maxTableText is how many characters the cells of all tables of a payload have.
//
// https://docs.slack.dev/reference/block-kit/blocks/table-block
const maxTableText = 10_000

func tableText(c *Checker, o object, at string) {
	before := c.cells
	c.cells += characters(o["rows"])
	if before <= maxTableText && c.cells > maxTableText {
		c.fail(at+"/rows", "must be less than %d characters", maxTableText+1)
	}
}

// characters is how much text cells show.
func characters(v any) int {
	switch v := v.(type) {
	case []any:
		n := 0
		for _, item := range v {
			n += characters(item)
		}
		return n
	case object:
		if n, ok := v["value"].(json.Number); ok && v["text"] == nil {
			return len(n)
		}
		return utf8.RuneCountInString(str(v["text"])) + characters(v["elements"])
	}
	return 0
}

// child is a block of the surface inside another one.
func child(except ...string) rule {
	return func(c *Checker, v any, at string) { // blocks is not complete before
		blockOn(c.surface, except...)(c, v, at)
	}
}

func blockOn(on Surface, except ...string) rule {
	allowed := map[string]rule{}
	for _, kind := range surfaces[on] {
		allowed[kind] = blocks[kind]
	}
	for _, kind := range except {
		delete(allowed, kind)
	}
	return typed(allowed)
}

// blocksOn is the array of blocks of a surface.
func blocksOn(on Surface, least, most int) rule { return list(least, most, blockOn(on)) }
