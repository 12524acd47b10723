package slackui_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// ids are all that our mrkdwn may mention.
var ids = regexp.MustCompile(`<@[A-Z0-9]+>|<!subteam\^[A-Z0-9]+>|<!date\^\d+\^[^|<>]*\|[^|<>]*>`)

// inspect fails if blocks are more than Slack takes, or if markup of somebody
// else got into mrkdwn.
func inspect(t *testing.T, blocks []slack.Block) {
	t.Helper()
	require.LessOrEqual(t, len(blocks), 50)
	raw, err := json.Marshal(blocks)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(raw, &tree))
	total := 0
	walk(t, tree, &total)
	require.LessOrEqual(t, total, 12_000)
}

func walk(t *testing.T, v any, total *int) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walk(t, x, total)
		}
	case map[string]any:
		if s, ok := v["text"].(string); ok {
			*total += utf8.RuneCountInString(s)
			require.NotEmpty(t, s)
			require.Less(t, utf8.RuneCountInString(s), 3200, "one text of the %v", v["type"])
			for _, r := range s {
				require.False(t, r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u200b' || r == 0x7f, "%q", s)
			}
			if v["type"] == "mrkdwn" {
				require.NotContains(t, ids.ReplaceAllString(s, ""), "<", s)
				require.Equal(t, true, v["verbatim"])
			}
		}
		for _, x := range v {
			walk(t, x, total)
		}
	}
}

// FuzzRender draws whatever a model, a policy or a person could have written,
// also what the core would never have let in.
func FuzzRender(f *testing.F) {
	for _, args := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{`, `{"a":`, "\xff\xfe", `{"a":"\ud800"}`, `{"a":1,"a":2}`, `{"":{}}`,
		`{"a":"<!channel>` + "```" + `\u202e\u200b"}`, `{"n":9007199254740993}`, keys(100),
		`{"a":"` + strings.Repeat("x", 200_000) + `"}`, `{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
		`{"a":"` + strings.Repeat(`\u0301`, 9000) + `"}`, `{"` + strings.Repeat("k", 9000) + `":[{"b":"c\nd"},1e400]}`,
	} {
		f.Add([]byte(args), "delete_file", "call_1", "Because.", "No.\n<!here>", "/a", "U0ALICE", uint8(8), uint8(0))
	}
	f.Fuzz(func(t *testing.T, args []byte, tool, id, why, reason, pointer, user string, n, status uint8) {
		statuses := []approvals.Status{approvals.Pending, approvals.Approved, approvals.Denied, approvals.Expired, approvals.Withdrawn, "?"}
		b := approvals.Batch{ID: "batch-07-x", Run: "run-07-x", Agent: tool, Requester: approvals.UserID(user)}
		calls := map[approvals.ToolCallID]approvals.ToolCall{}
		for i := range int(n)%12 + 1 {
			call := approvals.ToolCall{ID: approvals.ToolCallID(id + strings.Repeat("x", i)), Name: tool, Args: args}
			calls[call.ID] = call
			quorum := approvals.Quorum{Name: why, Need: 2, From: approvals.From{Groups: []approvals.GroupID{approvals.GroupID(user)}, Users: []approvals.UserID{approvals.UserID(user)}}}
			said := approvals.Decision{Call: call.ID, By: approvals.Principal{User: approvals.UserID(user)}, Verdict: approvals.Deny, Reason: reason}
			b.Approvals = append(b.Approvals, approvals.Approval{
				Call: call.Ref(b.ID), Why: why, WriteOnly: []string{pointer}, Status: statuses[(int(status)+i)%len(statuses)],
				Requirement: approvals.Requirement{Quorums: []approvals.Quorum{quorum, quorum, quorum, quorum, quorum, quorum, quorum}},
				Decisions:   []approvals.Decision{said, said, said, said, said, said},
				Ending:      approvals.Ending{By: approvals.UserID(user), Reason: reason, At: time.Unix(int64(n), 0)},
			})
		}
		for part := range 2 {
			for _, sheets := range []bool{false, true} {
				inspect(t, card.Render(card.Card{Batch: b, Part: part, Calls: calls, Sheets: sheets}, time.Unix(1, 0)))
			}
		}
	})
}

func TestGoldenCardsKeepTheirLimits(t *testing.T) {
	for _, shown := range golden(t) {
		inspect(t, card.Render(shown, noon))
	}
}

func TestNumbersOneApartAreShownApart(t *testing.T) {
	a := shownText(t, drawn(t, []approvals.Deferral{call("c", "x", `{"id":9007199254740992}`, sre)}))
	b := shownText(t, drawn(t, []approvals.Deferral{call("c", "x", `{"id":9007199254740993}`, sre)}))
	require.Contains(t, a, "id: 9007199254740992")
	require.Contains(t, b, "id: 9007199254740993")
}

// The value that matters may stand behind a long harmless one, or at the end
// of it.
func TestALongValueHidesNeitherItsEndNorTheNextKey(t *testing.T) {
	text := shownText(t, golden(t)["long"])
	require.Contains(t, text, `mode: "overwrite"`)
	require.Contains(t, text, "204,202 left out")
	require.Contains(t, text, "Not everything is shown. Approve opens all of it, and you approve there.")
	sh := shownText(t, drawn(t, []approvals.Deferral{call("c", "sh", `{"cmd":"echo `+strings.Repeat("a", 50_000)+`; rm -rf /"}`, sre)}))
	require.Contains(t, sh, "; rm -rf /")
}

// TestALookalikeIsNamedOnTheCard: nobody tells a Cyrillic a from a Latin one.
func TestALookalikeIsNamedOnTheCard(t *testing.T) {
	args := `{"path":"reports/p\u0430yments.csv","n\u0430me":"\u0441\u043e\u0440\u0443/a","pile":"x` + strings.Repeat(`\u0301`, 6) + `","to":"Отчёт за март"}`
	text := shownText(t, drawn(t, []approvals.Deferral{call("c", "delete_file", args, sre)}))
	for _, want := range []string{
		`path: "reports/p⟦Cyrillic ` + "\u0430" + `⟧yments.csv"`, `"n⟦Cyrillic ` + "\u0430" + `⟧me": "⟦Cyrillic ` + "\u0441\u043e\u0440\u0443" + `⟧/a"`,
		"⟦U+0301 ×2⟧", `to: "Отчёт за март"`,
	} {
		require.Contains(t, text, want)
	}
}

func TestAHiddenValueIsNowhereOnTheCard(t *testing.T) {
	text := shownText(t, golden(t)["secret"])
	require.Contains(t, text, "password: (hidden, 15 characters)")
	require.Contains(t, text, `"token": (hidden, 3 characters)`)
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, "abc")
}

func shownText(t *testing.T, c card.Card) string {
	t.Helper()
	return shownTextAt(t, c, noon)
}

func shownTextAt(t *testing.T, c card.Card, now time.Time) string {
	t.Helper()
	raw, err := json.Marshal(card.Render(c, now))
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(raw, &tree))
	return words(tree)
}
