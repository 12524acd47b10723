package slackui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/stretchr/testify/require"
)

const everySchema = `{"type":"object","required":["to","amount"],"properties":{
	"to":{"type":"string","description":"The account that gets the money."},
	"amount":{"type":"integer","description":"In cents"},
	"rate":{"type":"number"},
	"dry_run":{"type":"boolean","description":"Only say what would happen"},
	"currency":{"type":"string","enum":["EUR","USD","GBP","CHF","SEK"]},
	"on":{"type":"string","format":"date"},
	"note":{"type":"string"},
	"retry":{"type":"object","properties":{"times":{"type":"integer"},"wait":{"type":"string"}}},
	"tags":{"type":["null","array"],"items":{"type":"string"}},
	"token":{"type":"string","description":"Of the bank"},
	"body":{"type":"string"}}}`

var everyArgs = `{"to":"DE89 3704 0044","amount":9007199254740993,"dry_run":false,"currency":"EUR","on":"2026-03-04",` +
	`"note":"First line\nSecond line","retry":{"times":3,"wait":"1s"},"tags":["a","b"],"token":"hunter2","body":"` + strings.Repeat("x", 5000) + `","odd":{"k":1}}`

// opened returns the view of the newest views.open as it was sent: Slack took
// it. Where the card was is not the same every time.
func (o *workspace) opened() map[string]any {
	o.t.Helper()
	calls := o.Calls("views.open")
	require.NotEmpty(o.t, calls)
	var sent struct{ View map[string]any }
	require.NoError(o.t, json.Unmarshal([]byte(calls[len(calls)-1].Request), &sent))
	delete(sent.View, "private_metadata")
	return sent.View
}

// bare is a view without what Slack adds to it.
func bare(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = bare(v[i])
		}
	case map[string]any:
		if v["type"] != "input" {
			delete(v, "block_id")
		}
		for k := range v {
			v[k] = bare(v[k])
		}
	}
	return v
}

func TestFormsAreAsKept(t *testing.T) {
	form := func(tool, args string, tune func(*approvals.Deferral)) func(t *testing.T) any {
		return func(t *testing.T) any {
			t.Helper()
			d := call("c1", tool, args, sre)
			d.WriteOnly = []string{"/token"}
			tune(&d)
			o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
				c.Tools = toolbox{"pay": {Schema: json.RawMessage(everySchema)}, "odd": {Schema: json.RawMessage(`{"anyOf":[{"type":"object"}]}`)}}
			})
			root := o.say("U0ALICE", "pay them")
			o.draw(o.opens(root, d))
			o.edit("U0BOB", root)
			return o.opened()
		}
	}
	plain := func(*approvals.Deferral) {}
	for name, shows := range map[string]func(t *testing.T) any{
		"edit":      form("pay", everyArgs, plain),
		"edit_json": form("odd", `{"a":[1,2,9007199254740993]}`, func(d *approvals.Deferral) { d.WriteOnly = nil }),
		"edit_sign": form("pay", `{"to":"DE89","amount":1}`, func(d *approvals.Deferral) {
			d.Ask.Requirement.EditorMaySign, d.Ask.Requirement.ReasonNeeded = true, true
		}),
		"approve": func(t *testing.T) any {
			t.Helper()
			d := call("c1", "delete_file", `{"path":"a.txt"}`, sre)
			d.Ask.Requirement.ReasonNeeded = true
			o, root, _ := one(t, d)
			o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
			return o.opened()
		},
		"deny": func(t *testing.T) any {
			t.Helper()
			o, root, _ := one(t)
			o.press("U0BOB", o.card("U0BOB", root), "deny", 0)
			return o.opened()
		},
		"edited": func(t *testing.T) any {
			t.Helper()
			both := sre
			both.Need = 2
			o, root, _ := rewrite(t, rulings{}, nil, deletion(both))
			o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
			out := o.sends("U0BOB", o.edit("U0BOB", root), map[string]string{"path": "b.txt", "token": "another"})
			return bare(any(out.View.Blocks))
		},
		"stale": func(t *testing.T) any {
			t.Helper()
			o, root, _ := rewrite(t, rulings{}, nil, deletion(sre))
			late := o.edit("U0BOB", root)
			o.sends("U0CAROL", o.edit("U0CAROL", root), map[string]string{"path": "c.txt"})
			return bare(any(o.sends("U0BOB", late, map[string]string{"path": "b.txt"}).View.Blocks))
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(shows(t), "", "  ")
			require.NoError(t, err)
			got = append(got, '\n')
			path := filepath.Join("testdata", "forms", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, got, 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}

// A card of eight calls, each with changes, has room for all that must be said.
func TestEightAmendedCallsStayWithinTheLimits(t *testing.T) {
	calls := many(8, `{"path":"`+strings.Repeat("a/", 100)+`"}`)
	var cmds []approvals.Command
	for _, d := range calls {
		cmds = append(cmds, approvals.Amend{
			Call: d.Call.ID, From: approvals.DigestOf("batch-07-gold", d.Call), Args: json.RawMessage(`{"path":"b"}`), Ruling: approvals.Permit{}, At: noon,
			By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: noon},
		})
	}
	c := drawn(t, calls, cmds...)
	c.Earlier, c.Tools = map[approvals.Digest]approvals.ToolCall{}, map[string]agentrun.Spec{"delete_file": {Schema: json.RawMessage(fileSchema)}}
	for _, d := range calls {
		c.Earlier[approvals.DigestOf("batch-07-gold", d.Call)] = d.Call
		d.Call.Args = json.RawMessage(`{"path":"b"}`)
		c.Calls[d.Call.ID] = d.Call
	}
	blocks := card.Render(c, noon)
	require.LessOrEqual(t, len(blocks), 50)
	raw, err := json.Marshal(blocks)
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(string(raw), "changed the arguments"))
	require.Equal(t, 8, strings.Count(string(raw), "countersign.edit."))
}
