package slacksim_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// limitRows is the table of Block Kit limits that the simulator is built
// from, row by row, with the cases that hold each.
var limitRows = []struct {
	row   string
	cases []string
}{
	{"blocks: 50 per message, 100 per modal or home", []string{"limit: blocks", "limit: blocks of an attachment", "view: blocks", "view: no blocks", "own: blocks of a Home tab"}},
	{"block_id, action_id, callback_id, external_id: 255", []string{"limit: block_id", "limit: action_id", "view: callback_id", "view: external_id"}},
	{"text object: 1..3000", []string{"limit: section text", "limit: context text", "structure: empty text"}},
	{"section.fields: 10 × 2000", []string{"limit: section fields", "limit: section field text"}},
	{"header.text: 150, plain_text only", []string{"limit: header text", "structure: mrkdwn in a header"}},
	{"context.elements: 10", []string{"limit: context elements", "structure: no context elements"}},
	{"actions.elements: 25", []string{"limit: actions elements"}},
	{"context_actions.elements: 5", []string{"limit: context_actions elements"}},
	{"button text 75, value 2000, url 3000, accessibility_label 75", []string{"limit: button text", "limit: button value", "limit: button url", "limit: button accessibility"}},
	{"confirm title 100, text 300, confirm 30, deny 30", []string{"limit: confirm title", "limit: confirm text", "limit: confirm confirm", "limit: confirm deny"}},
	{"option text 75, value 150, description 75, url 3000 in overflow only", []string{"limit: option text", "limit: option value", "limit: option description", "limit: overflow option url", "structure: url of a select option"}},
	{"options: select 100, groups 100, radio and checkboxes 10, overflow 1..5", []string{
		"limit: select options", "limit: select option groups", "limit: options of a group", "limit: option group label", "limit: radio options",
		"limit: checkbox options", "limit: overflow options", "limit: multi select in a section", "structure: empty options",
	}},
	{"placeholder: 150", []string{"limit: placeholder"}},
	{"input label, hint: 2000", []string{"limit: input label", "limit: input hint"}},
	{"plain_text_input min_length, max_length: 3000", []string{"structure: min_length", "structure: max_length"}},
	{"image url 3000, alt 2000, title 2000", []string{"limit: image url", "limit: image alt_text", "limit: image title"}},
	{"markdown: 12,000 over the payload, block_id ignored", []string{"limit: markdown", "limit: markdown, summed", "own: block_id of markdown"}},
	{"table: 100 rows × 20 cells, one per message; 10,000 characters in all tables", []string{
		"limit: table rows", "limit: table cells", "own: one table", "limit: table characters", "limit: table characters, summed",
	}},
	{"data_table: 2..101 rows of as many cells, 1..20 columns, page_size 1..100, header of text and numbers, buttons", []string{
		"limit: data_table rows", "limit: data_table columns", "structure: data_table with one row", "structure: data_table without cells",
		"structure: data_table page_size", "structure: data_table header", "structure: data_table with a gap", "structure: data_table action header",
		"own: data_table with a button",
	}},
	{"data_visualization: title 50; 12 segments or series, label 20, axis 50; a value for each category; two per message", []string{
		"limit: chart title", "limit: chart segments", "limit: chart segment label", "limit: chart axis label", "limit: charts",
		"structure: chart type", "structure: chart without segments", "structure: chart of nothing", "structure: chart without an axis",
		"structure: chart with a gap", "limit: chart series of one name",
	}},
	{"card title 150, subtitle 150, body 200; something to show; one icon", []string{
		"limit: card title", "limit: card subtitle", "limit: card body", "structure: card with nothing", "structure: card with two icons",
	}},
	{"carousel: 1..10 cards", []string{"limit: carousel cards", "structure: no cards"}},
	{"container: one title; 1..10 children; title, subtitle 150", []string{
		"limit: container title", "limit: container subtitle", "limit: container child_blocks", "structure: no children",
		"structure: container without title", "structure: two titles",
	}},
	{"layout: 1..5 rows × 1..3 items; label 1..150; no markdown", []string{
		"limit: layout label", "limit: layout rows", "limit: layout items", "structure: no layout rows", "structure: no layout items",
		"structure: empty layout label", "structure: markdown in a layout",
	}},
	{"alert: 200, modals only", []string{"view: alert", "structure: modal block"}},
	{"plan, task_card: status; details and output are rich text", []string{
		"structure: task_card status", "structure: plan status", "structure: task_card details", "structure: task_card output",
	}},
	{"private_metadata: 3000", []string{"view: private_metadata"}},
	{"attachments: 100", []string{"own: attachments"}},
	{"all blocks: about 13,200 characters", []string{"own: text of all blocks"}},
	{"view: 250 KB, title, submit, close 24", []string{"own: size of a view", "view: title", "view: submit", "view: close"}},
}

// ownCases are those that are not a row of the tables.
var ownCases = map[string]func(t *testing.T, w *workspace){
	"own: blocks of a Home tab": func(t *testing.T, w *workspace) {
		t.Helper()
		home := func(n int) map[string]any {
			return w.call(t, "views.publish", map[string]any{"user_id": "U0BOB", "view": json.RawMessage(expand(`{"type":"home","blocks":[⟦100|`+divider+`⟧]}`, n))})
		}
		require.Equal(t, true, home(0)["ok"])
		require.Equal(t, []any{"[ERROR] no more than 100 items allowed [json-pointer:/view/blocks]"}, dig(t, home(1), "response_metadata", "messages"))
	},
	"own: block_id of markdown": func(t *testing.T, w *workspace) {
		t.Helper()
		md := `{"type":"markdown","text":"x","block_id":"mine"}`
		answer := w.call(t, "chat.postMessage", message(`[`+md+`,`+md+`]`))
		require.Equal(t, true, answer["ok"], "%v", answer)
		require.NotEqual(t, "mine", dig(t, answer, "message", "blocks", 0, "block_id"))
	},
	"own: one table": func(t *testing.T, w *workspace) {
		t.Helper()
		table := `{"type":"table","rows":[[{"type":"raw_text","text":"x"}]]}`
		require.Equal(t, true, w.call(t, "chat.postMessage", message(`[`+table+`]`))["ok"])
		answer := w.call(t, "chat.postMessage", message(`[`+table+`,`+table+`]`))
		require.Equal(t, "invalid_attachments", answer["error"])
		require.Equal(t, []any{"only_one_table_allowed"}, answer["errors"])
	},
	"own: data_table with a button": func(t *testing.T, w *workspace) {
		t.Helper()
		header := `[{"type":"raw_text","text":"Task"},{"type":"raw_number","value":7}]`
		row := `[{"type":"raw_text","text":"Write"},{"type":"action_cell","element":{"type":"button","text":` + plainX + `,"action_id":"done"},"fallback":{"type":"raw_text","text":"Open"}}]`
		ts := w.post(t, `[{"type":"data_table","caption":"x","rows":[`+header+`,`+row+`]}]`)
		_, err := w.Click(click(ts, "done"))
		require.NoError(t, err)
		require.Equal(t, "done", dig(t, w.app.last(t, "/interactivity").payload(t), "actions", 0, "action_id"))
	},
	"own: attachments": func(t *testing.T, w *workspace) {
		t.Helper()
		post := func(n int) map[string]any {
			return w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "attachments": {expand(`[⟦100|{"text":"x"}⟧]`, n)}})
		}
		require.Equal(t, true, post(0)["ok"])
		require.Equal(t, "too_many_attachments", post(1)["error"])
	},
	"own: text of all blocks": func(t *testing.T, w *workspace) {
		t.Helper()
		five := `[⟦5|{"type":"section","text":{"type":"mrkdwn","text":"%2640%"}}⟧]`
		require.Equal(t, true, w.call(t, "chat.postMessage", message(expand(five, 0)))["ok"])
		more := strings.Replace(expand(five, 0), "xx", "xxx", 1)
		require.Equal(t, "msg_blocks_too_long", w.call(t, "chat.postMessage", message(more))["error"])
	},
	"own: size of a view": func(t *testing.T, w *workspace) {
		t.Helper()
		field := expand(`{"type":"plain_text","text":"%2000%"}`, 0)
		section := `{"type":"section","fields":[` + field
		for range 9 {
			section += "," + field
		}
		open := func(n int) map[string]any {
			view := modal(expand(`"blocks":[⟦12|`+section+`]}⟧]`, n))
			return w.call(t, "views.open", map[string]any{"trigger_id": w.trigger(t, "alice"), "view": json.RawMessage(view)})
		}
		require.Equal(t, true, open(0)["ok"])
		require.Equal(t, "view_too_large", open(1)["error"])
	},
}

// Every row of the limits has cases, every case that a row names is there,
// and every limit that is tested is of a row.
func TestEveryRowOfTheLimitsHasCases(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	there := map[string]bool{}
	for name := range messageLimits {
		there["limit: "+name] = false
	}
	for name := range messageStructure {
		there["structure: "+name] = true // structure is more than limits
	}
	for name, c := range viewRules {
		there["view: "+name] = !c.limit
	}
	for name := range ownCases {
		there[name] = false
	}
	require.Len(t, limitRows, 30, "the table of limits has 29 rows of Block Kit, and the views")
	for _, r := range limitRows {
		require.NotEmpty(t, r.cases, "nothing holds %s", r.row)
		for _, name := range r.cases {
			require.Contains(t, there, name, r.row)
			there[name] = true
			if own := ownCases[name]; own != nil {
				own(t, w)
			}
		}
	}
	for name, used := range there {
		require.True(t, used, "%q is of no row", name)
	}
}

// An action_id is unique in its block, and may be in another block again.
func TestActionIDsAreUniqueInTheirBlock(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	row := func(block string) string {
		return `{"type":"actions","block_id":"` + block + `","elements":[{"type":"button","action_id":"a","value":"` + block + `","text":` + plainX + `}]}`
	}
	ts := w.post(t, `[`+row("one")+`,`+row("two")+`]`)
	click := slacksim.Click{User: "bob", Channel: "ops", TS: ts, ActionID: "a"}
	_, err := w.Click(click)
	require.ErrorIs(t, err, slacksim.ErrBadInput, "which of them?")
	click.BlockID = "two"
	_, err = w.Click(click)
	require.NoError(t, err)
	require.Equal(t, "two", dig(t, w.app.last(t, "/interactivity").payload(t), "actions", 0, "value"))
	nested := `{"type":"container","title":` + plainX + `,"child_blocks":[` + row("three") + `,` + row("four") + `]}`
	w.post(t, `[`+nested+`,`+row("five")+`]`)
	twice := `{"type":"actions","elements":[{"type":"button","action_id":"a","text":` + plainX + `},{"type":"button","action_id":"a","text":` + plainX + `}]}`
	answer := w.call(t, "chat.postMessage", message(`[{"type":"container","title":`+plainX+`,"child_blocks":[`+twice+`]}]`))
	require.Equal(t, []any{"`action_id` \"a\" already exists [json-pointer:/blocks/0/child_blocks/0/elements/1/action_id]"}, answer["errors"])
}
