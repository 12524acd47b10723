package slacksim_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// picking is a menu with an option that is chosen at first.
func picking(kind, options, initial string) string {
	return `{"type":"` + kind + `",` + options + `,` + initial + `}`
}

// messageValues are blocks whose fields are right one by one, and do not fit
// together or say nothing: with wrong in the place of WRONG they are refused,
// with fixed they are not.
var messageValues = map[string]struct{ blocks, wrong, fixed, want string }{
	"initial_option": {
		inActions(picking("static_select", `"options":[`+opt+`]`, `"initial_option":{"text":{"type":"plain_text","text":"x","emoji":true},"value":"WRONG"}`)), "WRONG", "v@",
		"must match one of the options [json-pointer:/blocks/0/elements/0/initial_option]",
	},
	"text of the initial_option": {
		inActions(picking("radio_buttons", `"options":[`+opt+`]`, `"initial_option":{"text":{"type":"plain_text","text":"WRONG"},"value":"v@"}`)), "WRONG", "x",
		"must match one of the options [json-pointer:/blocks/0/elements/0/initial_option]",
	},
	"initial_option of a group": {
		inActions(picking("static_select", `"option_groups":[{"label":`+plainX+`,"options":[`+opt+`]}]`, `"initial_option":{"text":`+plainX+`,"value":"WRONG"}`)), "WRONG", "v@",
		"must match one of the options [json-pointer:/blocks/0/elements/0/initial_option]",
	},
	"initial_options": {
		inActions(picking("checkboxes", `"options":[`+opt+`]`, `"initial_options":[`+opt+`,{"text":`+plainX+`,"value":"WRONG"}]`)), "WRONG", "v@",
		"must match one of the options [json-pointer:/blocks/0/elements/0/initial_options/1]",
	},
	"initial_options of a menu": {
		inInput(picking("multi_static_select", `"options":[`+opt+`]`, `"initial_options":[{"text":`+plainX+`,"value":"WRONG"}]`)), "WRONG", "v@",
		"must match one of the options [json-pointer:/blocks/0/element/initial_options/0]",
	},
	"focus twice": {
		`[{"type":"input","label":` + plainX + `,"element":{"type":"plain_text_input","focus_on_load":true}},{"type":"input","label":` + plainX +
			`,"element":{"type":"datepicker","focus_on_load":WRONG}}]`, "true", "false",
		"only one element can set `focus_on_load` [json-pointer:/blocks/1/element/focus_on_load]",
	},
	"min_length over max_length": {
		inInput(`{"type":"plain_text_input","min_length":WRONG,"max_length":9}`), "10", "9",
		"must be less than or equal to `max_length` [json-pointer:/blocks/0/element/min_length]",
	},
	"a day that no month has": {
		inActions(`{"type":"datepicker","initial_date":"2026-02-WRONG"}`), "30", "28",
		"must be in the format YYYY-MM-DD [json-pointer:/blocks/0/elements/0/initial_date]",
	},
	"an hour of one digit": {
		inActions(`{"type":"timepicker","initial_time":"WRONG:05"}`), "9", "09",
		"must be in the format HH:mm [json-pointer:/blocks/0/elements/0/initial_time]",
	},
	"url without a scheme": {
		inActions(`{"type":"button","text":` + plainX + `,"url":"WRONGexample.com/x"}`), "", "https://",
		"invalid url [json-pointer:/blocks/0/elements/0/url]",
	},
	"url of a script": {
		inActions(`{"type":"button","text":` + plainX + `,"url":"WRONG"}`), "javascript:alert(1)", "mailto:ann@example.com",
		"invalid url [json-pointer:/blocks/0/elements/0/url]",
	},
	"image from mail": {
		`[{"type":"image","alt_text":"x","image_url":"WRONGexample.com/x.png"}]`, "mailto:", "http://",
		"invalid url [json-pointer:/blocks/0/image_url]",
	},
	"image without a host": {
		`[{"type":"context","elements":[{"type":"image","alt_text":"x","image_url":"https:WRONG"}]}]`, "x", "//example.com",
		"invalid url [json-pointer:/blocks/0/elements/0/image_url]",
	},
}

// What the published reference demands of values beyond their kind and size.
func TestBlockKitValuesFitTogether(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, c := range messageValues {
		t.Run(name, func(t *testing.T) {
			refused := w.call(t, "chat.postMessage", message(strings.ReplaceAll(c.blocks, "WRONG", c.wrong)))
			require.Equal(t, "invalid_blocks", refused["error"], "%v", refused)
			require.Equal(t, []any{c.want}, refused["errors"])
			accepted := w.call(t, "chat.postMessage", message(strings.ReplaceAll(c.blocks, "WRONG", c.fixed)))
			require.Equal(t, true, accepted["ok"], "%v", accepted)
		})
	}
}

func TestOneElementOfTheWholePayloadHasTheFocus(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	input := inInput(`{"type":"plain_text_input","focus_on_load":true}`)
	answer := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "text": {"x"}, "blocks": {input}, "attachments": {`[{"blocks":` + input + `}]`}})
	require.Equal(t, []any{"only one element can set `focus_on_load` [json-pointer:/attachments/0/blocks/0/element/focus_on_load]"}, answer["errors"])
}

func TestMetadataHasTwoPropertiesAndNoOther(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	post := func(more string) map[string]any {
		return w.form(t, "chat.postMessage", url.Values{
			"channel": {"C0OPS"}, "text": {"x"}, "metadata": {`{"event_type":"x","event_payload":{"any":"thing"}` + more + `}`},
		})
	}
	require.Equal(t, true, post("")["ok"])
	require.Equal(t, "invalid_metadata_schema", post(`,"batch":"b1"`)["error"])
}

// A new message may have work objects beside its event, or alone.
func TestWorkObjectsAreTakenWithNewMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	post := func(method, metadata string) map[string]any {
		return w.form(t, method, url.Values{"channel": {"C0OPS"}, "text": {"x"}, "post_at": {"1"}, "metadata": {metadata}})
	}
	task := `"entities":[{"entity_type":"slack#/entities/task","url":"https://example.com/1","external_ref":{"id":"1"},"entity_payload":{"attributes":{"title":{"text":"x"}}}}]`
	require.NotContains(t, dig(t, post("chat.postMessage", `{`+task+`}`), "message"), "metadata")
	both := post("chat.postMessage", `{`+task+`,"event_type":"x","event_payload":{}}`)
	require.Equal(t, map[string]any{"event_type": "x", "event_payload": map[string]any{}}, dig(t, both, "message", "metadata"))
	require.Equal(t, "invalid_metadata_schema", post("chat.postMessage", `{"entities":[{}]}`)["error"])
	require.Equal(t, "invalid_metadata_schema", post("chat.scheduleMessage", `{`+task+`}`)["error"], "of new messages only")
}
