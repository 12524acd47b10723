package uistream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A client sends back all that it was shown. What it can't parse, or what is refused
// when it comes back, would end the chat, so such arguments and results are texts.
func TestWhatAClientCannotTakeOrSendBackIsAText(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, tt := range map[string]struct {
		value string
		text  bool
	}{
		"as usual":                     {`{"a":[1,{"b":null}],"n":9007199254740993}`, false},
		"a text with such a name":      {`{"a":"__proto__"}`, false},
		"a constructor of a car":       {`{"constructor":{"name":"Ferrari"}}`, false},
		"a prototype":                  {`{"__proto__":{"admin":true}}`, true},
		"a prototype, escaped":         {`{"\u005f_proto__":1}`, true},
		"a prototype far below":        {`[{"a":[{"__proto__":1}]}]`, true},
		"a prototype of a constructor": {`{"constructor":{"prototype":{}}}`, true},
		"no constructor":               {`{"constructor":null}`, true},
		"half a surrogate pair":        {`{"a":"\ud83d"}`, true},
		"a key twice":                  {`{"a":1,"a":2}`, true},
		"a number that is no double":   {`{"a":1e400}`, true}, // sent back as null
		"as deep as arguments may be":  {nested(64), false},
		"deeper":                       {nested(65), true},
	} {
		t.Run(name, func(t *testing.T) {
			want := json.RawMessage(tt.value)
			if tt.text {
				want = quoted(tt.value)
			}
			c := &call{id: "c1", name: "look", args: json.RawMessage(tt.value)}
			require.Equal(t, string(want), string(c.input()))
			require.True(t, sameInput(c.input(), c.input()), "it can be approved")

			c.result = agentrun.ToolReturn{CallID: "c1", Outcome: agentrun.OutcomeSuccess, Content: json.RawMessage(tt.value)}
			out := newTeller(Common, "U0ALICE", false).results(&step{calls: []*call{c}})
			require.Equal(t, string(want), string(out[0].Output))

			_, faults := readRequest(fmt.Appendf(nil, `{"id":"x","messages":[{"role":"assistant","parts":[`+
				`{"type":"tool-look","toolCallId":"c1","state":"output-available","input":%s,"output":%s}]},`+
				`{"role":"user","parts":[{"type":"text","text":"hi"}]}]}`, c.input(), out[0].Output))
			require.Empty(t, faults)
		})
	}
}

// A page can show these texts as they are: nothing in them hides, or reorders what is
// beside it. They are the same JSON.
func TestWhatPeopleDecideByHidesNothing(t *testing.T) {
	args := "{\r\n\"to\":\"a\u202ebob\u200b\u2066\",\"tag\":\"\U000e0041\",\"quote\":\"\\\\u202e \\n ❤️ שלום\"}"
	b := approvals.Batch{ID: "batch-01-x"}
	a := approvals.Approval{Call: approvals.CallRef{ID: "c1", Name: "pay"}, Summary: "Pay {to}", Status: approvals.Pending}
	d := approvalOf(b, a, json.RawMessage(args), "U0ALICE", time.Time{})
	require.Equal(t, "{\r\n\"to\":\"a\\u202ebob\\u200b\\u2066\",\"tag\":\"\\udb40\\udc41\",\"quote\":\"\\\\u202e \\n ❤️ שלום\"}", d.Arguments)
	require.JSONEq(t, args, d.Arguments)
	require.NotContains(t, d.Summary, "\u202e")
	require.Contains(t, d.Summary, `a\u202ebob`)
}
