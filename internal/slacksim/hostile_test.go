package slacksim_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

const oneOfEverything = `[
	{"type":"header","text":{"type":"plain_text","text":"x"}},
	{"type":"section","fields":[{"type":"mrkdwn","text":"x","verbatim":true}],"accessory":{"type":"checkboxes","options":[{"text":{"type":"mrkdwn","text":"x"},"value":"v"}]}},
	{"type":"rich_text","elements":[
		{"type":"rich_text_section","elements":[{"type":"text","text":"x","style":{"bold":true}},{"type":"user","user_id":"U0BOB"}]},
		{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[]}]},
		{"type":"rich_text_preformatted","border":0,"elements":[{"type":"text","text":"x"}]}]},
	{"type":"actions","elements":[
		{"type":"button","text":{"type":"plain_text","text":"x"},"confirm":{"title":{"type":"plain_text","text":"x"},"text":{"type":"plain_text","text":"x"},"confirm":{"type":"plain_text","text":"x"},"deny":{"type":"plain_text","text":"x"}}},
		{"type":"static_select","option_groups":[{"label":{"type":"plain_text","text":"x"},"options":[{"text":{"type":"plain_text","text":"x"},"value":"v"}]}]}]},
	{"type":"context","elements":[{"type":"image","image_url":"https://u","alt_text":"x"},{"type":"plain_text","text":"x"}]},
	{"type":"context_actions","elements":[{"type":"feedback_buttons","positive_button":{"text":{"type":"plain_text","text":"x"},"value":"p"},"negative_button":{"text":{"type":"plain_text","text":"x"},"value":"n"}}]},
	{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input","max_length":9}},
	{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"x"}],[{"type":"raw_number","value":1}]]},
	{"type":"data_visualization","title":"x","chart":{"type":"line","series":[{"name":"s","data":[{"label":"x","value":1}]}],"axis_config":{"categories":["x"],"y_label":"y"}}},
	{"type":"data_visualization","title":"x","chart":{"type":"pie","segments":[{"label":"x","value":1}]}},
	{"type":"carousel","elements":[{"type":"card","title":{"type":"plain_text","text":"x"},"actions":[{"type":"button","text":{"type":"plain_text","text":"x"}}]}]},
	{"type":"container","title":{"type":"plain_text","text":"x"},"child_blocks":[{"type":"divider"}]},
	{"type":"layout","label":"x","rows":[{"items":[{"block":{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"}}]}}]}]},
	{"type":"plan","title":"x","tasks":[{"type":"task_card","task_id":"t","title":"x"}]}
]`

// Whatever stands in whatever place, the answer is a message or a refusal
// that points to the place, never a broken server.
func TestEveryPlaceIsCheckedAgainstOtherKindsOfValue(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	require.Equal(t, true, w.call(t, "chat.postMessage", message(oneOfEverything))["ok"])
	n := 0
	try := func(root any) {
		n++
		data, err := json.Marshal(root)
		require.NoError(t, err)
		form := url.Values{"token": {w.BotToken()}, "channel": {"C0OPS"}, "text": {"x"}, "blocks": {string(data)}}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/chat.postMessage", strings.NewReader(form.Encode()))
		req.Host = "127.0.0.1"
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, req)
		answer := decode(t, rec.Body.Bytes())
		if answer["ok"] != true {
			require.Contains(t, []any{"invalid_blocks", "invalid_blocks_format"}, answer["error"], "%s", data)
		}
	}
	var root any
	require.NoError(t, json.Unmarshal([]byte(oneOfEverything), &root))
	kinds := []any{nil, 7, "x", map[string]any{}, []any{nil}}
	turn := 0
	mutate(root, func() []any { turn++; return []any{kinds[turn%5], kinds[(turn+2)%5]} }, func() { try(root) })
	require.Greater(t, n, 300)
	_, err := w.Messages("bob", "ops", "")
	require.NoError(t, err)
}

// mutate puts two other kinds of value into every place below v, one pair
// after the other, and calls try.
func mutate(v any, strangers func() []any, try func()) {
	switch v := v.(type) {
	case []any:
		for i, old := range v {
			for _, k := range strangers() {
				v[i] = k
				try()
			}
			v[i] = old
			mutate(old, strangers, try)
		}
	case map[string]any:
		for name, old := range v {
			for _, k := range strangers() {
				v[name] = k
				try()
			}
			v[name] = old
			mutate(old, strangers, try)
		}
	}
}
