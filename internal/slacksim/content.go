package slacksim

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

const (
	maxBlocksText = 13_200 // of all blocks, where msg_blocks_too_long was seen
	maxMetadata   = 8_000  // bytes; Slack does not publish its figure
)

// content is what a message says, checked.
type content struct {
	text        string
	blocks      []any // nil: not given
	attachments []any
	metadata    object
	gave        struct{ text, blocks, attachments, metadata bool }
}

// empty reports whether a message would have nothing to show.
func (k content) empty() bool {
	return blank(k.text) && len(k.blocks) == 0 && !attached(k.attachments)
}

// blank reports whether a text is none to Slack, which refuses spaces alone.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// attached reports whether there is something in one of the attachments; Slack
// leaves out those without.
func attached(list []any) bool {
	return slices.ContainsFunc(list, func(a any) bool {
		o, _ := a.(object)
		for name, v := range o {
			if inner, isList := v.([]any); name != "id" && name != "color" && v != nil && v != "" && v != noPreview && (!isList || len(inner) > 0) {
				return true
			}
		}
		return false
	})
}

// noPreview is the fallback of an attachment that has no other.
const noPreview = "[no preview available]"

// answerOf is what an app answers a command or posts to a response_url: a message, and
// no markdown_text, which is an argument of the chat methods. Metadata that has neither
// an event nor a payload is none there: slack-go's Msg always has the field.
func answerOf(o object) *call {
	delete(o, "markdown_text")
	m, _ := o["metadata"].(object)
	if payload, given := m["event_payload"]; given && payload == nil && m["event_type"] == "" {
		delete(o, "metadata")
	}
	return &call{args: args{values: o, json: true}}
}

// contentOf reads and checks the arguments of the chat methods.
func (c *call) contentOf() (content, *failure) {
	var k content
	k.text, k.gave.text = c.str("text"), c.has("text")
	var f *failure
	if k.blocks, k.gave.blocks, f = c.array("blocks", "invalid_blocks_format"); f != nil {
		return k, f
	}
	if k.attachments, k.gave.attachments, f = c.array("attachments", "invalid_attachments"); f != nil {
		return k, f
	}
	if len(k.attachments) > 100 {
		return k, fail("too_many_attachments")
	}
	if md := c.str("markdown_text"); md != "" {
		if k.text != "" || len(k.blocks) > 0 {
			return k, fail("markdown_text_conflict")
		}
		if utf8.RuneCountInString(md) > blockkit.MaxMarkdown {
			return k, fail("msg_too_long")
		}
		k.blocks, k.gave.blocks = []any{object{"type": "markdown", "text": md}}, true
	}
	if k.metadata, k.gave.metadata, f = c.metadata(); f != nil {
		return k, f
	}
	return k, checkBlocks(k.blocks, k.attachments)
}

func (c *call) array(name, wrong string) ([]any, bool, *failure) {
	if !c.has(name) || c.values[name] == "" {
		return nil, false, nil
	}
	v, ok := c.value(name)
	list, isList := v.([]any)
	if !ok || !isList {
		return nil, false, fail(wrong)
	}
	return list, true, nil
}

// metadata is {event_type, event_payload}; an empty object removes it.
func (c *call) metadata() (object, bool, *failure) {
	if !c.has("metadata") || c.values["metadata"] == "" {
		return nil, false, nil
	}
	v, ok := c.value("metadata")
	o, isObject := v.(object)
	if !ok || !isObject {
		return nil, false, fail("invalid_metadata_format")
	}
	if len(o) == 0 {
		return nil, true, nil
	}
	kind, _ := o["event_type"].(string)
	if _, isObject := o["event_payload"].(object); kind == "" || !isObject || len(o) > 2 { // nothing but these two
		return nil, false, fail("invalid_metadata_schema")
	}
	if len(encodeJSON(o)) > maxMetadata {
		return nil, false, fail("metadata_too_large")
	}
	return o, true, nil
}

// takeEntities checks the work objects in the metadata of a new message and takes
// them out of it. What else is there is an event, or nothing.
func (c *call) takeEntities() *failure {
	v, _ := c.value("metadata")
	o, _ := v.(object)
	given, has := o["entities"]
	if !has {
		return nil
	}
	list, ok := given.([]any)
	if !ok {
		return fail("invalid_metadata_schema")
	}
	for _, e := range list {
		entity, _ := e.(object)
		_, payload := entity["entity_payload"].(object)
		if _, ref := entity["external_ref"].(object); !payload || !ref || str(entity["entity_type"]) == "" || str(entity["url"]) == "" {
			return fail("invalid_metadata_schema")
		}
	}
	event := maps.Clone(o)
	delete(event, "entities")
	c.values["metadata"] = event
	if len(event) == 0 {
		delete(c.values, "metadata")
	}
	return nil
}

// notWithBlocks are fields of attachments that Slack refuses beside blocks, even
// if they are empty.
//
// https://github.com/slackapi/java-slack-sdk/pull/416
// https://github.com/slackapi/java-slack-sdk/issues/184
// https://github.com/slackapi/java-slack-sdk/issues/187
// https://github.com/slack-go/slack/issues/784
var notWithBlocks = []string{
	"text", "fields", "mrkdwn_in", "actions", "indent",
	"is_msg_unfurl", "is_reply_unfurl", "is_thread_root_unfurl", "is_app_unfurl",
}

func hasAny(o object, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, has := o[name]
		return has
	})
}

// checkBlocks checks the blocks of a message and of its attachments, and
// gives ids to those without, and to the attachments.
func checkBlocks(list, attachments []any) *failure {
	c := blockkit.NewChecker(blockkit.OnMessage)
	c.Blocks(list, "/blocks")
	if len(c.Problems()) > 0 {
		return &failure{code: "invalid_blocks", problems: c.Problems()}
	}
	for i, a := range attachments {
		o, ok := a.(object)
		if !ok {
			return fail("invalid_attachments")
		}
		if o["blocks"] == nil { // the same as none: slack-go sends it with every attachment
			delete(o, "blocks")
			continue
		}
		c.Blocks(o["blocks"], "/attachments/"+strconv.Itoa(i)+"/blocks")
		if list, _ := o["blocks"].([]any); len(list) > 0 && hasAny(o, notWithBlocks) {
			return &failure{code: "invalid_attachments", problems: []string{"invalid_keys"}, quiet: true}
		}
	}
	switch {
	case len(c.Problems()) > 0:
		return &failure{code: "invalid_attachments", problems: c.Problems()}
	case c.Tables() > 1:
		return &failure{code: "invalid_attachments", problems: []string{"only_one_table_allowed"}}
	case c.Text() > maxBlocksText:
		return fail("msg_blocks_too_long")
	}
	blockkit.AssignIDs(list, shortID)
	blockkit.FillIn(list)
	for i, a := range attachments {
		o, _ := a.(object)
		inner, _ := o["blocks"].([]any)
		blockkit.AssignIDs(inner, shortID)
		blockkit.FillIn(inner)
		o["id"], o["fallback"] = i+1, cmp.Or(str(o["fallback"]), str(o["text"]), noPreview)
		if color := str(o["color"]); color != "" {
			o["color"] = strings.TrimPrefix(color, "#")
		}
	}
	return nil
}

// message is a new message of the app, not stored yet.
func (c *call) message(k content, root string) *message {
	return &message{
		threadTS: root, user: c.in.botUser, app: c.in, text: k.text, username: c.str("username"),
		blocks: storedBlocks(k.blocks), attachments: k.attachments, metadata: k.metadata,
		broadcast: root != "" && c.bool("reply_broadcast"),
	}
}
