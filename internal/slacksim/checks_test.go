package slacksim_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestAPITestEchoesItsArguments(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	form := "application/x-www-form-urlencoded"
	echoed := w.raw(t, "api.test", form, "", "foo=bar")
	require.Equal(t, map[string]any{"ok": true, "args": map[string]any{"foo": "bar"}}, echoed, "it needs no token")
	failed := w.raw(t, "api.test", "application/json; charset=utf-8", "", `{"error":"my_error","foo":"bar"}`)
	require.Equal(t, map[string]any{"ok": false, "error": "my_error", "args": map[string]any{"error": "my_error", "foo": "bar"}}, failed)
	require.NotContains(t, w.raw(t, "api.test", form, "", "token="+w.BotToken())["args"], "token")
}

func TestBlocksAreValidatedWithoutPosting(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	validate := func(in url.Values) map[string]any {
		return w.raw(t, "blocks.validate", "application/x-www-form-urlencoded", "", in.Encode())
	}
	modal := `{"type":"modal","title":` + plainX + `,"blocks":[` + divider + `]}`
	for name, in := range map[string]url.Values{
		"blocks": {"blocks": {`[` + divider + `]`}}, "message": {"message": {`{"text":"x","blocks":[` + divider + `]}`}},
		"modal": {"view": {modal}}, "home": {"view": {`{"type":"home","blocks":[` + divider + `]}`}},
	} {
		require.Equal(t, map[string]any{"ok": true}, validate(in), name)
	}
	wrong := func(message, pointer string) []any {
		return []any{map[string]any{"code": "failed_constraint", "message": message, "pointer": pointer}}
	}
	for name, c := range map[string]struct {
		in     url.Values
		code   string
		errors any
	}{
		"blocks":   {url.Values{"blocks": {`[{"type":"banner"}]`}}, "invalid_blocks", wrong("unsupported type: banner", "/0/type")},
		"no array": {url.Values{"blocks": {`{}`}}, "invalid_blocks", wrong("must provide an array", "")},
		"message": {
			url.Values{"message": {`{"attachments":[{"blocks":[{"type":"header"}]}]}`}},
			"invalid_message",
			wrong("missing required field: text", "/attachments/0/blocks/0"),
		},
		"modal without a title": {url.Values{"view": {`{"type":"modal","blocks":[` + divider + `]}`}}, "invalid_view", wrong("missing required field: title", "")},
		"view":                  {url.Values{"view": {`{"type":"modal","title":` + plainX + `,"blocks":[{"type":"markdown","text":"x"}]}`}}, "invalid_view", wrong("unsupported type: markdown", "/blocks/0/type")},
		"a multi-select in actions": {
			url.Values{"blocks": {inActions(`{"type":"multi_static_select","options":[` + opt + `]}`)}},
			"invalid_blocks",
			wrong("unsupported type: multi_static_select", "/0/elements/0/type"),
		},
	} {
		got := validate(c.in)
		require.Equal(t, []any{false, c.code, c.errors}, []any{got["ok"], got["error"], got["errors"]}, name)
	}
	for name, in := range map[string]url.Values{
		"nothing": nil, "two": {"blocks": {`[]`}, "view": {modal}}, "no JSON": {"blocks": {`[`}},
	} {
		require.Equal(t, "invalid_arguments", validate(in)["error"], name)
	}
	require.Empty(t, w.Calls("chat.postMessage"))
}

// Slack's reference says that multi-select menus work in section and input
// blocks; apps that put one into an actions block are refused.
func TestMultiSelectsAreForSectionsAndInputs(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, kind := range []string{"multi_static_select", "multi_external_select", "multi_users_select", "multi_conversations_select", "multi_channels_select"} {
		menu := `{"type":"` + kind + `"}`
		if kind == "multi_static_select" {
			menu = `{"type":"` + kind + `","options":[` + opt + `]}`
		}
		refused := w.call(t, "chat.postMessage", message(inActions(expand(menu, 0))))
		require.Equal(t, []any{"unsupported type: " + kind + " [json-pointer:/blocks/0/elements/0/type]"}, refused["errors"])
		for _, blocks := range []string{`[{"type":"section","text":` + plainX + `,"accessory":` + menu + `}]`, inInput(menu)} {
			accepted := w.call(t, "chat.postMessage", message(expand(blocks, 0)))
			require.Equal(t, true, accepted["ok"], "%v", accepted)
		}
	}
}
