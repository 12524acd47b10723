package slacksim_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

var (
	sized    = regexp.MustCompile(`%(\d+)%`)
	repeated = regexp.MustCompile(`⟦(\d+)\|(.*?)⟧`)
)

// expand writes out %n% as n characters and ⟦n|item⟧ as n items. delta is
// added to every n.
func expand(template string, delta int) string {
	template = repeated.ReplaceAllStringFunc(template, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		items := make([]string, n+delta)
		for i := range items {
			items[i] = strings.ReplaceAll(parts[2], "@", strconv.Itoa(i))
		}
		return strings.Join(items, ",")
	})
	return sized.ReplaceAllStringFunc(template, func(m string) string {
		n, _ := strconv.Atoi(m[1 : len(m)-1])
		return strings.Repeat("x", n+delta)
	})
}

const (
	card    = `{"type":"card","title":{"type":"plain_text","text":"x"}}`
	plainX  = `{"type":"plain_text","text":"x"}`
	rawX    = `{"type":"raw_text","text":"x"}`
	btn     = `{"type":"button","text":{"type":"plain_text","text":"x"}}`
	opt     = `{"text":{"type":"plain_text","text":"x"},"value":"v@"}`
	title   = `"title":{"type":"plain_text","text":"T"}`
	submit  = `"submit":{"type":"plain_text","text":"S"}`
	divider = `{"type":"divider"}`
)

func inActions(element string) string { return `[{"type":"actions","elements":[` + element + `]}]` }

func inInput(element string) string {
	return `[{"type":"input","label":` + plainX + `,"element":` + element + `}]`
}

// Every limit of Block Kit in messages: one more is refused in Slack's
// words, and the limit itself is accepted.
func TestBlockKitLimitsOfMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, c := range messageLimits {
		t.Run(name, func(t *testing.T) {
			code := "invalid_blocks"
			if strings.Contains(c.want, ":/attachments/") {
				code = "invalid_attachments"
			}
			refused := w.call(t, "chat.postMessage", message(expand(c.blocks, 0)))
			require.Equal(t, code, refused["error"], "%v", refused)
			require.Equal(t, []any{c.want}, refused["errors"])
			require.Equal(t, []any{"[ERROR] " + c.want}, dig(t, refused, "response_metadata", "messages"))
			accepted := w.call(t, "chat.postMessage", message(expand(c.blocks, -1)))
			require.Equal(t, true, accepted["ok"], "%v", accepted)
		})
	}
}

// messageLimits are blocks that are one over a limit.
var messageLimits = map[string]struct{ blocks, want string }{
	"blocks":                    {`[⟦51|` + divider + `⟧]`, "no more than 50 items allowed [json-pointer:/blocks]"},
	"block_id":                  {`[{"type":"divider","block_id":"%256%"}]`, "must be less than 256 characters [json-pointer:/blocks/0/block_id]"},
	"section text":              {`[{"type":"section","text":{"type":"mrkdwn","text":"%3001%"}}]`, "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"},
	"section fields":            {`[{"type":"section","fields":[⟦11|` + plainX + `⟧]}]`, "no more than 10 items allowed [json-pointer:/blocks/0/fields]"},
	"section field text":        {`[{"type":"section","fields":[{"type":"plain_text","text":"%2001%"}]}]`, "must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]"},
	"header text":               {`[{"type":"header","text":{"type":"plain_text","text":"%151%"}}]`, "must be less than 151 characters [json-pointer:/blocks/0/text/text]"},
	"context elements":          {`[{"type":"context","elements":[⟦11|` + plainX + `⟧]}]`, "no more than 10 items allowed [json-pointer:/blocks/0/elements]"},
	"actions elements":          {inActions(`⟦26|` + btn + `⟧`), "no more than 25 items allowed [json-pointer:/blocks/0/elements]"},
	"context_actions elements":  {`[{"type":"context_actions","elements":[⟦6|{"type":"icon_button","icon":"trash","text":` + plainX + `}⟧]}]`, "no more than 5 items allowed [json-pointer:/blocks/0/elements]"},
	"button text":               {inActions(`{"type":"button","text":{"type":"plain_text","text":"%76%"}}`), "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]"},
	"button value":              {inActions(`{"type":"button","text":` + plainX + `,"value":"%2001%"}`), "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]"},
	"button url":                {inActions(`{"type":"button","text":` + plainX + `,"url":"https://%2993%"}`), "must be less than 3001 characters [json-pointer:/blocks/0/elements/0/url]"},
	"button accessibility":      {inActions(`{"type":"button","text":` + plainX + `,"accessibility_label":"%76%"}`), "must be less than 76 characters [json-pointer:/blocks/0/elements/0/accessibility_label]"},
	"action_id":                 {inActions(`{"type":"button","text":` + plainX + `,"action_id":"%256%"}`), "must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]"},
	"confirm title":             {inActions(confirmed("%101%", "x", "x", "x")), "must be less than 101 characters [json-pointer:/blocks/0/elements/0/confirm/title/text]"},
	"confirm text":              {inActions(confirmed("x", "%301%", "x", "x")), "must be less than 301 characters [json-pointer:/blocks/0/elements/0/confirm/text/text]"},
	"confirm confirm":           {inActions(confirmed("x", "x", "%31%", "x")), "must be less than 31 characters [json-pointer:/blocks/0/elements/0/confirm/confirm/text]"},
	"confirm deny":              {inActions(confirmed("x", "x", "x", "%31%")), "must be less than 31 characters [json-pointer:/blocks/0/elements/0/confirm/deny/text]"},
	"option text":               {inActions(`{"type":"static_select","options":[{"text":{"type":"plain_text","text":"%76%"},"value":"v"}]}`), "must be less than 76 characters [json-pointer:/blocks/0/elements/0/options/0/text/text]"},
	"option value":              {inActions(`{"type":"static_select","options":[{"text":` + plainX + `,"value":"%151%"}]}`), "must be less than 151 characters [json-pointer:/blocks/0/elements/0/options/0/value]"},
	"option description":        {inActions(`{"type":"static_select","options":[{"text":` + plainX + `,"value":"v","description":{"type":"plain_text","text":"%76%"}}]}`), "must be less than 76 characters [json-pointer:/blocks/0/elements/0/options/0/description/text]"},
	"overflow option url":       {inActions(`{"type":"overflow","options":[{"text":` + plainX + `,"value":"v","url":"%3001%"}]}`), "must be less than 3001 characters [json-pointer:/blocks/0/elements/0/options/0/url]"},
	"select options":            {inActions(`{"type":"static_select","options":[⟦101|` + opt + `⟧]}`), "no more than 100 items allowed [json-pointer:/blocks/0/elements/0/options]"},
	"select option groups":      {inActions(`{"type":"static_select","option_groups":[⟦101|{"label":` + plainX + `,"options":[` + opt + `]}⟧]}`), "no more than 100 items allowed [json-pointer:/blocks/0/elements/0/option_groups]"},
	"option group label":        {inActions(`{"type":"static_select","option_groups":[{"label":{"type":"plain_text","text":"%76%"},"options":[` + opt + `]}]}`), "must be less than 76 characters [json-pointer:/blocks/0/elements/0/option_groups/0/label/text]"},
	"placeholder":               {inActions(`{"type":"static_select","options":[` + opt + `],"placeholder":{"type":"plain_text","text":"%151%"}}`), "must be less than 151 characters [json-pointer:/blocks/0/elements/0/placeholder/text]"},
	"radio options":             {inActions(`{"type":"radio_buttons","options":[⟦11|` + opt + `⟧]}`), "no more than 10 items allowed [json-pointer:/blocks/0/elements/0/options]"},
	"checkbox options":          {inActions(`{"type":"checkboxes","options":[⟦11|` + opt + `⟧]}`), "no more than 10 items allowed [json-pointer:/blocks/0/elements/0/options]"},
	"overflow options":          {inActions(`{"type":"overflow","options":[⟦6|` + opt + `⟧]}`), "no more than 5 items allowed [json-pointer:/blocks/0/elements/0/options]"},
	"image url":                 {`[{"type":"image","alt_text":"x","image_url":"https://%2993%"}]`, "must be less than 3001 characters [json-pointer:/blocks/0/image_url]"},
	"image alt_text":            {`[{"type":"image","alt_text":"%2001%","image_url":"https://u"}]`, "must be less than 2001 characters [json-pointer:/blocks/0/alt_text]"},
	"image title":               {`[{"type":"image","alt_text":"x","image_url":"https://u","title":{"type":"plain_text","text":"%2001%"}}]`, "must be less than 2001 characters [json-pointer:/blocks/0/title/text]"},
	"markdown":                  {`[{"type":"markdown","text":"%12001%"}]`, "must be less than 12001 characters [json-pointer:/blocks/0/text]"},
	"markdown, summed":          {`[{"type":"markdown","text":"%6000%"},{"type":"markdown","text":"%6001%x"}]`, "must be less than 12001 characters [json-pointer:/blocks/1/text]"},
	"table rows":                {`[{"type":"table","rows":[⟦101|[{"type":"raw_text","text":"x"}]⟧]}]`, "no more than 100 items allowed [json-pointer:/blocks/0/rows]"},
	"table cells":               {`[{"type":"table","rows":[[⟦21|{"type":"raw_text","text":"x"}⟧]]}]`, "no more than 20 items allowed [json-pointer:/blocks/0/rows/0]"},
	"table characters":          {`[{"type":"table","rows":[[{"type":"raw_text","text":"%4001%"},{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"%6000%"}]}]}]]}]`, "must be less than 10001 characters [json-pointer:/blocks/0/rows]"},
	"table characters, summed":  {`[{"type":"table","rows":[[{"type":"raw_text","text":"%4000%"}]]},{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"%6000%"}],[{"type":"raw_number","value":7}]]}]`, "must be less than 10001 characters [json-pointer:/blocks/1/rows]"},
	"data_table rows":           {`[{"type":"data_table","caption":"x","rows":[⟦102|[{"type":"raw_text","text":"x"}]⟧]}]`, "no more than 101 items allowed [json-pointer:/blocks/0/rows]"},
	"data_table columns":        {`[{"type":"data_table","caption":"x","rows":[[` + strings.Repeat(rawX+`,`, 19) + rawX + `],[⟦21|{"type":"raw_text","text":"x"}⟧]]}]`, "no more than 20 items allowed [json-pointer:/blocks/0/rows/1]"},
	"chart title":               {chart("%51%", `{"type":"pie","segments":[{"label":"x","value":1}]}`), "must be less than 51 characters [json-pointer:/blocks/0/title]"},
	"chart segments":            {chart("x", `{"type":"pie","segments":[⟦13|{"label":"x","value":1}⟧]}`), "no more than 12 items allowed [json-pointer:/blocks/0/chart/segments]"},
	"chart segment label":       {chart("x", `{"type":"pie","segments":[{"label":"%21%","value":1}]}`), "must be less than 21 characters [json-pointer:/blocks/0/chart/segments/0/label]"},
	"chart axis label":          {chart("x", `{"type":"line","series":[{"name":"s","data":[{"label":"x","value":-1}]}],"axis_config":{"categories":["x"],"x_label":"%51%"}}`), "must be less than 51 characters [json-pointer:/blocks/0/chart/axis_config/x_label]"},
	"chart series of one name":  {chart("x", `{"type":"area","series":[⟦2|{"name":"s","data":[{"label":"x","value":1}]}⟧],"axis_config":{"categories":["x"]}}`), "must be unique [json-pointer:/blocks/0/chart/series/1/name]"},
	"charts":                    {`[⟦3|` + strings.Trim(chart("x", `{"type":"pie","segments":[{"label":"x","value":1}]}`), "[]") + `⟧]`, "no more than 2 data_visualization blocks allowed [json-pointer:/blocks/2/type]"},
	"card title":                {`[{"type":"card","title":{"type":"plain_text","text":"%151%"}}]`, "must be less than 151 characters [json-pointer:/blocks/0/title/text]"},
	"card subtitle":             {`[{"type":"card","title":` + plainX + `,"subtitle":{"type":"plain_text","text":"%151%"}}]`, "must be less than 151 characters [json-pointer:/blocks/0/subtitle/text]"},
	"card body":                 {`[{"type":"card","body":{"type":"plain_text","text":"%201%"}}]`, "must be less than 201 characters [json-pointer:/blocks/0/body/text]"},
	"carousel cards":            {`[{"type":"carousel","elements":[⟦11|` + card + `⟧]}]`, "no more than 10 items allowed [json-pointer:/blocks/0/elements]"},
	"container title":           {`[{"type":"container","title":{"type":"plain_text","text":"%151%"},"child_blocks":[` + divider + `]}]`, "must be less than 151 characters [json-pointer:/blocks/0/title/text]"},
	"container child_blocks":    {`[{"type":"container","title":` + plainX + `,"child_blocks":[⟦11|` + divider + `⟧]}]`, "no more than 10 items allowed [json-pointer:/blocks/0/child_blocks]"},
	"layout label":              {`[{"type":"layout","label":"%151%","rows":[{"items":[{"block":` + divider + `}]}]}]`, "must be less than 151 characters [json-pointer:/blocks/0/label]"},
	"layout rows":               {`[{"type":"layout","label":"x","rows":[⟦6|{"items":[{"block":` + divider + `}]}⟧]}]`, "no more than 5 items allowed [json-pointer:/blocks/0/rows]"},
	"layout items":              {`[{"type":"layout","label":"x","rows":[{"items":[⟦4|{"block":` + divider + `}⟧]}]}]`, "no more than 3 items allowed [json-pointer:/blocks/0/rows/0/items]"},
	"input label":               {`[{"type":"input","label":{"type":"plain_text","text":"%2001%"},"element":{"type":"plain_text_input"}}]`, "must be less than 2001 characters [json-pointer:/blocks/0/label/text]"},
	"input hint":                {`[{"type":"input","label":` + plainX + `,"hint":{"type":"plain_text","text":"%2001%"},"element":{"type":"plain_text_input"}}]`, "must be less than 2001 characters [json-pointer:/blocks/0/hint/text]"},
	"blocks of an attachment":   {`[` + divider + `],"attachments":[{"blocks":[⟦51|` + divider + `⟧]}]`, "no more than 50 items allowed [json-pointer:/attachments/0/blocks]"},
	"context text":              {`[{"type":"context","elements":[{"type":"mrkdwn","text":"%3001%"}]}]`, "must be less than 3001 characters [json-pointer:/blocks/0/elements/0/text]"},
	"multi select in a section": {`[{"type":"section","text":` + plainX + `,"accessory":{"type":"multi_static_select","options":[⟦101|` + opt + `⟧]}}]`, "no more than 100 items allowed [json-pointer:/blocks/0/accessory/options]"},
	"options of a group":        {inActions(`{"type":"static_select","option_groups":[{"label":` + plainX + `,"options":[⟦101|` + opt + `⟧]}]}`), "no more than 100 items allowed [json-pointer:/blocks/0/elements/0/option_groups/0/options]"},
	"container subtitle":        {`[{"type":"container","title":` + plainX + `,"subtitle":{"type":"plain_text","text":"%151%"},"child_blocks":[` + divider + `]}]`, "must be less than 151 characters [json-pointer:/blocks/0/subtitle/text]"},
}

func message(blocks string) map[string]any {
	var in map[string]any
	if err := json.Unmarshal([]byte(`{"channel":"C0OPS","text":"x","blocks":`+blocks+`}`), &in); err != nil {
		panic(blocks + ": " + err.Error())
	}
	return in
}

func confirmed(title, text, confirm, deny string) string {
	plain := func(s string) string { return `{"type":"plain_text","text":"` + s + `"}` }
	return `{"type":"button","text":` + plainX + `,"confirm":{"title":` + plain(title) + `,"text":` + plain(text) +
		`,"confirm":` + plain(confirm) + `,"deny":` + plain(deny) + `}}`
}

// Structure: what must be there, what must not, and of which type.
func TestBlockKitStructureOfMessages(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, c := range messageStructure {
		t.Run(name, func(t *testing.T) {
			refused := w.call(t, "chat.postMessage", message(c.blocks))
			require.Equal(t, "invalid_blocks", refused["error"], "%v", refused)
			require.Equal(t, []any{c.want}, refused["errors"])
			form := w.form(t, "chat.postEphemeral", url.Values{"channel": {"C0OPS"}, "user": {"U0BOB"}, "text": {"x"}, "blocks": {c.blocks}})
			require.Equal(t, []any{c.want}, form["errors"], "forms are checked alike")
		})
	}
}

// messageStructure are blocks that break a rule of their structure.
var messageStructure = map[string]struct{ blocks, want string }{
	"no object":                {`["x"]`, "must provide an object [json-pointer:/blocks/0]"},
	"no type":                  {`[{}]`, "missing required field: type [json-pointer:/blocks/0]"},
	"unknown block":            {`[{"type":"nope"}]`, "unsupported type: nope [json-pointer:/blocks/0/type]"},
	"modal block":              {`[{"type":"alert","text":` + plainX + `}]`, "unsupported type: alert [json-pointer:/blocks/0/type]"},
	"additional property":      {`[{"type":"divider","color":"red"}]`, "invalid additional property: color [json-pointer:/blocks/0]"},
	"section with nothing":     {`[{"type":"section"}]`, "must define either `text` or `fields` [json-pointer:/blocks/0/type]"},
	"section text as string":   {`[{"type":"section","text":"x"}]`, "must provide an object [json-pointer:/blocks/0/text]"},
	"empty text":               {`[{"type":"section","text":{"type":"mrkdwn","text":""}}]`, "must be more than 0 characters [json-pointer:/blocks/0/text/text]"},
	"text that is a number":    {`[{"type":"section","text":{"type":"mrkdwn","text":7}}]`, "must provide a string [json-pointer:/blocks/0/text/text]"},
	"text that is null":        {`[{"type":"section","text":{"type":"mrkdwn","text":null}}]`, "must provide a string [json-pointer:/blocks/0/text/text]"},
	"mrkdwn in a header":       {`[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, "unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]"},
	"empty filter":             {inActions(`{"type":"conversations_select","filter":{}}`), "must define at least one of `include`, `exclude_external_shared_channels` or `exclude_bot_users` [json-pointer:/blocks/0/elements/0/filter]"},
	"header without text":      {`[{"type":"header"}]`, "missing required field: text [json-pointer:/blocks/0]"},
	"emoji on mrkdwn":          {`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, "invalid additional property: emoji [json-pointer:/blocks/0/text]"},
	"no context elements":      {`[{"type":"context","elements":[]}]`, "must provide at least 1 items [json-pointer:/blocks/0/elements]"},
	"button in context":        {`[{"type":"context","elements":[` + btn + `]}]`, "unsupported type: button [json-pointer:/blocks/0/elements/0/type]"},
	"text input in actions":    {inActions(`{"type":"plain_text_input"}`), "unsupported type: plain_text_input [json-pointer:/blocks/0/elements/0/type]"},
	"multi select in actions":  {inActions(`{"type":"multi_users_select"}`), "unsupported type: multi_users_select [json-pointer:/blocks/0/elements/0/type]"},
	"button in input":          {inInput(btn), "unsupported type: button [json-pointer:/blocks/0/element/type]"},
	"button style":             {inActions(`{"type":"button","text":` + plainX + `,"style":"default"}`), "must be a valid enum value [json-pointer:/blocks/0/elements/0/style]"},
	"url of a select option":   {inActions(`{"type":"static_select","options":[{"text":` + plainX + `,"value":"v","url":"u"}]}`), "invalid additional property: url [json-pointer:/blocks/0/elements/0/options/0]"},
	"select without options":   {inActions(`{"type":"static_select"}`), "must define either `options` or `option_groups` [json-pointer:/blocks/0/elements/0]"},
	"empty options":            {inActions(`{"type":"overflow","options":[]}`), "must provide at least 1 items [json-pointer:/blocks/0/elements/0/options]"},
	"same block_id":            {`[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`, "`block_id` \"a\" already exists [json-pointer:/blocks/1/block_id]"},
	"same action_id":           {inActions(`{"type":"button","text":` + plainX + `,"action_id":"a"},{"type":"button","text":` + plainX + `,"action_id":"a"}`), "`action_id` \"a\" already exists [json-pointer:/blocks/0/elements/1/action_id]"},
	"image without alt_text":   {`[{"type":"image","image_url":"https://u"}]`, "missing required field: alt_text [json-pointer:/blocks/0]"},
	"image without source":     {`[{"type":"image","alt_text":"x"}]`, "must define either `image_url` or `slack_file` [json-pointer:/blocks/0]"},
	"rich text: empty text":    {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":""}]}]}]`, "must be more than 0 characters [json-pointer:/blocks/0/elements/0/elements/0/text]"},
	"rich text: citation":      {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"citation","url":"https://u","text":"x","index":1,"details":{}}]}]}]`, "missing required field: citation_type [json-pointer:/blocks/0/elements/0/elements/0/details]"},
	"rich text: mention":       {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"message_mention","channel_id":"C0OPS"}]}]}]`, "missing required field: message_ts [json-pointer:/blocks/0/elements/0/elements/0]"},
	"rich text: unknown":       {`[{"type":"rich_text","elements":[{"type":"rich_text_table","elements":[]}]}]`, "unsupported type: rich_text_table [json-pointer:/blocks/0/elements/0/type]"},
	"rich text: list style":    {`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"dash","elements":[]}]}]`, "must be a valid enum value [json-pointer:/blocks/0/elements/0/style]"},
	"rich text: text style":    {`[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"x","style":{"big":true}}]}]}]`, "invalid additional property: big [json-pointer:/blocks/0/elements/0/elements/0/style]"},
	"boolean":                  {`[{"type":"section","text":` + plainX + `,"expand":"yes"}]`, "must provide a boolean [json-pointer:/blocks/0/expand]"},
	"number":                   {inInput(`{"type":"plain_text_input","max_length":"9"}`), "must provide an integer [json-pointer:/blocks/0/element/max_length]"},
	"max_length":               {inInput(`{"type":"plain_text_input","max_length":3001}`), "must be less than or equal to 3000 [json-pointer:/blocks/0/element/max_length]"},
	"data_table header":        {`[{"type":"data_table","caption":"x","rows":[[{"type":"rich_text","elements":[]}],[{"type":"raw_text","text":"x"}]]}]`, "unsupported type: rich_text [json-pointer:/blocks/0/rows/0/0/type]"},
	"data_table with a gap":    {`[{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"x"},{"type":"raw_number","value":7}],[{"type":"raw_text","text":"x"}]]}]`, "must provide 2 items [json-pointer:/blocks/0/rows/1]"},
	"data_table action header": {`[{"type":"data_table","caption":"x","rows":[[{"type":"action_cell","element":{"type":"button","text":` + plainX + `}}],[{"type":"raw_text","text":"x"}]]}]`, "unsupported type: action_cell [json-pointer:/blocks/0/rows/0/0/type]"},
	"data_table with one row":  {`[{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"x"}]]}]`, "must provide at least 2 items [json-pointer:/blocks/0/rows]"},
	"data_table page_size":     {`[{"type":"data_table","caption":"x","page_size":101,"rows":[[{"type":"raw_text","text":"x"}],[{"type":"raw_text","text":"x"}]]}]`, "must be less than or equal to 100 [json-pointer:/blocks/0/page_size]"},
	"chart type":               {chart("x", `{"type":"donut","segments":[]}`), "unsupported type: donut [json-pointer:/blocks/0/chart/type]"},
	"chart without segments":   {chart("x", `{"type":"pie","segments":[]}`), "must provide at least 1 items [json-pointer:/blocks/0/chart/segments]"},
	"chart of nothing":         {chart("x", `{"type":"pie","segments":[{"label":"x","value":0}]}`), "must be greater than 0 [json-pointer:/blocks/0/chart/segments/0/value]"},
	"chart without an axis":    {chart("x", `{"type":"bar","series":[{"name":"s","data":[{"label":"x","value":1}]}]}`), "missing required field: axis_config [json-pointer:/blocks/0/chart]"},
	"chart with a gap":         {chart("x", `{"type":"area","series":[{"name":"s","data":[{"label":"x","value":1}]}],"axis_config":{"categories":["x","y"]}}`), "must have one point for each of `categories` [json-pointer:/blocks/0/chart/series/0/data]"},
	"card with nothing":        {`[{"type":"card"}]`, "must define at least one of `hero_image`, `title`, `actions` or `body` [json-pointer:/blocks/0/type]"},
	"container without title":  {`[{"type":"container","child_blocks":[` + divider + `]}]`, "must define either `title` or `rich_text_title` [json-pointer:/blocks/0]"},
	"markdown in a layout":     {`[{"type":"layout","label":"x","rows":[{"items":[{"block":{"type":"markdown","text":"x"}}]}]}]`, "unsupported type: markdown [json-pointer:/blocks/0/rows/0/items/0/block/type]"},
	"task_card status":         {`[{"type":"task_card","task_id":"t","title":"x","status":"done"}]`, "must be a valid enum value [json-pointer:/blocks/0/status]"},
	"task_card details":        {`[{"type":"task_card","task_id":"t","title":"x","details":"text"}]`, "must provide an object [json-pointer:/blocks/0/details]"},
	"select without a type":    {inActions(`{"options":[` + opt + `]}`), "missing required field: type [json-pointer:/blocks/0/elements/0]"},
	"options and groups":       {inActions(`{"type":"static_select","options":[` + opt + `],"option_groups":[{"label":` + plainX + `,"options":[` + opt + `]}]}`), "must define only one of `options` or `option_groups` [json-pointer:/blocks/0/elements/0]"},
	"no children":              {`[{"type":"container","title":` + plainX + `,"child_blocks":[]}]`, "must provide at least 1 items [json-pointer:/blocks/0/child_blocks]"},
	"two titles":               {`[{"type":"container","title":` + plainX + `,"rich_text_title":{"type":"rich_text","elements":[]},"child_blocks":[` + divider + `]}]`, "must define only one of `title` or `rich_text_title` [json-pointer:/blocks/0]"},
	"no cards":                 {`[{"type":"carousel","elements":[]}]`, "must provide at least 1 items [json-pointer:/blocks/0/elements]"},
	"no layout rows":           {`[{"type":"layout","label":"x","rows":[]}]`, "must provide at least 1 items [json-pointer:/blocks/0/rows]"},
	"no layout items":          {`[{"type":"layout","label":"x","rows":[{"items":[]}]}]`, "must provide at least 1 items [json-pointer:/blocks/0/rows/0/items]"},
	"empty layout label":       {`[{"type":"layout","label":"","rows":[{"items":[{"block":` + divider + `}]}]}]`, "must be more than 0 characters [json-pointer:/blocks/0/label]"},
	"card with two icons":      {`[{"type":"card","title":` + plainX + `,"icon":{"type":"image","image_url":"https://u","alt_text":"x"},"slack_icon":{"type":"icon","name":"x"}}]`, "must define only one of `icon` or `slack_icon` [json-pointer:/blocks/0]"},
	"data_table without cells": {`[{"type":"data_table","caption":"x","rows":[[{"type":"raw_text","text":"x"}],[]]}]`, "must provide at least 1 items [json-pointer:/blocks/0/rows/1]"},
	"min_length":               {inInput(`{"type":"plain_text_input","min_length":3001}`), "must be less than or equal to 3000 [json-pointer:/blocks/0/element/min_length]"},
	"task_card output":         {`[{"type":"task_card","task_id":"t","title":"x","output":"text"}]`, "must provide an object [json-pointer:/blocks/0/output]"},
	"plan task type":           {`[{"type":"plan","title":"x","tasks":[{"type":"task","task_id":"t","title":"x"}]}]`, "unsupported type: task [json-pointer:/blocks/0/tasks/0/type]"},
	"plan status":              {`[{"type":"plan","title":"x","tasks":[{"type":"task_card","task_id":"t","title":"x","status":"done"}]}]`, "must be a valid enum value [json-pointer:/blocks/0/tasks/0/status]"},
	"image url and file":       {`[{"type":"image","alt_text":"x","image_url":"https://u","slack_file":{"id":"F1"}}]`, "must define only one of `image_url` or `slack_file` [json-pointer:/blocks/0]"},
}

// What Slack's reference shows without a type, and what its SDKs leave empty, is accepted.
//
// https://docs.slack.dev/reference/block-kit/blocks/plan-block
// https://docs.slack.dev/reference/block-kit/blocks/table-block
func TestWhatNeedsNoValueIsAccepted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	text := `{"type":"rich_text","block_id":"b","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}`
	w.post(t, `[{"type":"plan","title":"x","tasks":[
		{"task_id":"1","title":"x","status":"in_progress","details":`+text+`,"output":`+text+`},
		{"task_id":"2","title":"y","status":"pending"}]}]`)
	w.post(t, `[{"type":"table","column_settings":[null,{"align":"right"}],
		"rows":[[{"type":"raw_text","text":"a"},{"type":"raw_text","text":"b"}]]}]`)
}

func TestEveryProblemIsReported(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	answer := w.call(t, "chat.postMessage", message(`[{"type":"header"},`+divider+`,{"type":"nope"}]`))
	require.Equal(t, []any{
		"missing required field: text [json-pointer:/blocks/0]",
		"unsupported type: nope [json-pointer:/blocks/2/type]",
	}, answer["errors"])
}

func TestBlocksThatAreNoArrayHaveTheWrongFormat(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, blocks := range []string{"{", `{"type":"divider"}`, `"x"`} {
		answer := w.form(t, "chat.postMessage", url.Values{"channel": {"C0OPS"}, "text": {"x"}, "blocks": {blocks}})
		require.Equal(t, "invalid_blocks_format", answer["error"], blocks)
	}
}

func TestBlockKitRulesOfViews(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for name, c := range viewRules {
		t.Run(name, func(t *testing.T) {
			trigger := w.trigger(t, "alice")
			refused := w.call(t, "views.open", map[string]any{"trigger_id": trigger, "view": json.RawMessage(expand(c.view, 0))})
			require.Equal(t, "invalid_arguments", refused["error"], "%v", refused)
			require.Equal(t, []any{"[ERROR] " + c.want}, dig(t, refused, "response_metadata", "messages"))
			require.NotContains(t, refused, "errors", "views have their problems in the metadata only")
			if c.limit {
				accepted := w.call(t, "views.open", map[string]any{"trigger_id": trigger, "view": json.RawMessage(expand(c.view, -1))})
				require.Equal(t, true, accepted["ok"], "a refused view leaves the trigger: %v", accepted)
			}
		})
	}
}

func modal(fields string) string { return `{"type":"modal",` + title + `,` + fields + `}` }

const (
	body   = `"blocks":[` + divider + `]`
	text25 = `{"type":"plain_text","text":"%25%"}`
)

// viewRules are views that break a rule, by one where it is a limit.
var viewRules = map[string]struct {
	view, want string
	limit      bool
}{
	"title":                 {`{"type":"modal","title":` + text25 + `,` + body + `}`, "must be less than 25 characters [json-pointer:/view/title/text]", true},
	"submit":                {modal(`"submit":` + text25 + `,` + body), "must be less than 25 characters [json-pointer:/view/submit/text]", true},
	"close":                 {modal(`"close":` + text25 + `,` + body), "must be less than 25 characters [json-pointer:/view/close/text]", true},
	"blocks":                {modal(`"blocks":[⟦101|` + divider + `⟧]`), "no more than 100 items allowed [json-pointer:/view/blocks]", true},
	"no blocks":             {modal(`"blocks":[]`), "must provide at least 1 items [json-pointer:/view/blocks]", false},
	"private_metadata":      {modal(`"private_metadata":"%3001%",` + body), "must be less than 3001 characters [json-pointer:/view/private_metadata]", true},
	"callback_id":           {modal(`"callback_id":"%256%",` + body), "must be less than 256 characters [json-pointer:/view/callback_id]", true},
	"external_id":           {modal(`"external_id":"%256%",` + body), "must be less than 256 characters [json-pointer:/view/external_id]", true},
	"alert":                 {modal(`"blocks":[{"type":"alert","text":{"type":"plain_text","text":"%201%"}}]`), "must be less than 201 characters [json-pointer:/view/blocks/0/text/text]", true},
	"no title":              {`{"type":"modal",` + body + `}`, "missing required field: title [json-pointer:/view]", false},
	"no type":               {`{` + title + `,` + body + `}`, "missing required field: type [json-pointer:/view]", false},
	"home in a modal":       {`{"type":"home",` + body + `}`, "unsupported type: home [json-pointer:/view/type]", false},
	"input without submit":  {modal(`"blocks":` + inInput(`{"type":"plain_text_input"}`)), "must define `submit` to use an `input` block in modals [json-pointer:/view/blocks/0/input]", false},
	"markdown":              {modal(`"blocks":[{"type":"markdown","text":"x"}]`), "unsupported type: markdown [json-pointer:/view/blocks/0/type]", false},
	"additional property":   {modal(`"color":"red",` + body), "invalid additional property: color [json-pointer:/view]", false},
	"action_id in a block":  {modal(submit + `,"blocks":[{"type":"actions","elements":[{"type":"button","text":` + plainX + `,"action_id":"a"},{"type":"button","text":` + plainX + `,"action_id":"a"}]}]`), "`action_id` \"a\" already exists [json-pointer:/view/blocks/0/elements/1/action_id]", false},
	"private_metadata type": {modal(`"private_metadata":{},` + body), "must provide a string [json-pointer:/view/private_metadata]", false},
	"same block_id":         {modal(`"blocks":[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`), "`block_id` \"a\" already exists [json-pointer:/view/blocks/1/block_id]", false},
	"a type that is none":   {`{"type":"dialog",` + title + `,` + body + `}`, "unsupported type: dialog [json-pointer:/view/type]", false},
	"title as a string":     {`{"type":"modal","title":"T",` + body + `}`, "must provide an object [json-pointer:/view/title]", false},
	"title in mrkdwn":       {`{"type":"modal","title":{"type":"mrkdwn","text":"T"},` + body + `}`, "unsupported type: mrkdwn [json-pointer:/view/title/type]", false},
	"blocks that are none":  {modal(`"blocks":{}`), "must provide an array [json-pointer:/view/blocks]", false},
	"submit_disabled":       {modal(`"submit_disabled":true,` + body), "invalid additional property: submit_disabled [json-pointer:/view]", false},
	"clear_on_close":        {modal(`"clear_on_close":"yes",` + body), "must provide a boolean [json-pointer:/view/clear_on_close]", false},
}

// trigger makes someone act and returns the trigger_id that the app got.
func (w *workspace) trigger(t *testing.T, user string) string {
	t.Helper()
	_, err := w.Command(slacksim.Command{User: user, Channel: "ops", Command: "/approvals"})
	require.NoError(t, err)
	return formValue(w.app.last(t, "/commands").body, "trigger_id")
}

func chart(title, payload string) string {
	return `[{"type":"data_visualization","title":"` + title + `","chart":` + payload + `}]`
}

// The examples of the reference, whose series have names of up to 31 characters.
//
// https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block
func TestChartsOfTheReferenceAreAccepted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for title, payload := range map[string]string{
		"My Favorite Candy Bars": `{"type":"pie","segments":[{"label":"Kit Kat","value":45},{"label":"Twix","value":28.5}]}`,
		"Weekly Paper Sales": `{"type":"line","series":[
			{"name":"Dunder Mifflin Infinity Website","data":[{"label":"Week 1","value":32000},{"label":"Week 2","value":-35000}]},
			{"name":"Dunder Mifflin In-store","data":[{"label":"Week 2","value":35000},{"label":"Week 1","value":0}]}],
			"axis_config":{"categories":["Week 1","Week 2"],"x_label":"Week","y_label":"Paper Sales (USD)"}}`,
	} {
		answer := w.call(t, "chat.postMessage", message(chart(title, payload)))
		require.Equal(t, true, answer["ok"], "%v", answer)
	}
	odd := `{"type":"bar","series":[{"name":{},"data":[{"label":{},"value":1}]},{"name":{},"data":[]}],"axis_config":{"categories":[{}]}}`
	require.Equal(t, "invalid_blocks", w.call(t, "chat.postMessage", message(chart("x", odd)))["error"])
}

// The examples of the reference for the elements of rich text, and for a button that asks
// an agent.
//
// https://docs.slack.dev/reference/block-kit/block-elements/rich-text-section-element
// https://docs.slack.dev/reference/block-kit/block-elements/button-element
func TestElementsOfTheReferenceAreAccepted(t *testing.T) {
	w := newWorkspace(t, slacksim.Config{})
	for _, element := range []string{
		`{"type":"attachment_mention","url":"https://example.com/attachment"}`,
		`{"type":"broadcast","range":"everyone"}`,
		`{"type":"canvas","file_id":"F123ABC456"}`,
		`{"type":"canvas_message_unfurl","root_message_channel":"C123ABC456","root_message_ts":"1720710212.123456"}`,
		`{"type":"canvas_user_mention","user_id":"U123ABC456"}`,
		`{"type":"channel","channel_id":"C123ABC456"}`,
		`{"type":"citation","url":"https://example.com/source","text":"Source title","index":1,
			"details":{"citation_type":"file","descriptor":"Team canvas","file_id":"F0ABCDEFG12"}}`,
		`{"type":"color","value":"#F405B3"}`,
		`{"type":"date","timestamp":1720710212,"format":"{date_num} at {time}","fallback":"timey"}`,
		`{"type":"emoji","name":"basketball"}`,
		`{"type":"file","file_id":"F123ABC456"}`,
		`{"type":"link","url":"https://docs.slack.dev"}`,
		`{"type":"list_record","file_id":"F123ABC456"}`,
		`{"type":"message_mention","channel_id":"C123ABC456","message_ts":"1720710212.123456"}`,
		`{"type":"salesforce_data_field","salesforce_record_id":"001ABC456DEF789"}`,
		`{"type":"tag","text":"In progress"}`,
		`{"type":"team","team_id":"T123ABC456"}`,
		`{"type":"text","text":"I am a bold rich text block!","style":{"bold":true}}`,
		`{"type":"user","user_id":"U123ABC456"}`,
		`{"type":"usergroup","usergroup_id":"G123ABC456"}`,
		`{"type":"work_object_mention","entity_id":"E123ABC456","app_id":"A123ABC456","text":"Work object","url":"https://example.com/work-object"}`,
		`{"type":"workflow_mention","workflow_id":"Wf123ABC456","function_trigger_id":"Ft123ABC456","text":"Run workflow"}`,
	} {
		w.post(t, `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[`+element+`]}]}]`)
	}
	w.post(t, inActions(`{"type":"button","text":{"type":"plain_text","text":"Summarize with Slackbot"},"action_id":"summarize_incident",
		"agent_prompt":"Summarize this incident and suggest next steps.","agent_prompt_display":"Summarize this incident"}`))
}
