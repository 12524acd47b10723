package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// TestAWeekOfLadders lets a clock run over calls that people answer late or
// never, and writes down what time did. Nothing happens that [Batch.Next] had
// not said.
func TestAWeekOfLadders(t *testing.T) {
	monday := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	after := func(h int) time.Time { return monday.Add(time.Duration(h) * time.Hour) }
	ask := func(r Requirement) Ask { return Ask{Requirement: r} }
	ops := Quorum{Name: "operations", Need: 2, From: From{Groups: []GroupID{"sre"}}}
	remind := func(h int) Rung { return Rung{At: after(h), Kind: Remind} }
	b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: monday}, []Deferral{
		{Call: ToolCall{ID: "forgotten", Name: "x"}, Ask: ask(Requirement{
			Quorums: []Quorum{ops}, Deadline: after(120), Ladder: []Rung{
				remind(24), remind(48),
				{At: after(72), Kind: Escalate, Quorum: "operations", Add: From{Groups: []GroupID{"oncall"}}, Channel: "C-war"},
				remind(96), remind(168), // which it does not live to see
			},
		})},
		{Call: ToolCall{ID: "answered", Name: "x"}, Ask: ask(Requirement{
			Quorums: []Quorum{ops}, Deadline: after(120), Ladder: []Rung{remind(24), remind(48), remind(72)},
		})},
		{Call: ToolCall{ID: "enough", Name: "x"}, Ask: ask(Requirement{
			Quorums: []Quorum{ops, {Name: "security", Need: 1, From: From{Users: []UserID{"sue"}}}},
			Ladder: []Rung{
				remind(60),
				{At: after(84), Kind: Escalate, Quorum: "security", Add: From{Users: []UserID{"sid"}}},
				remind(90),
			},
		})},
		{Call: ToolCall{ID: "patient", Name: "x"}, Ask: ask(Requirement{
			Quorums: []Quorum{ops}, Ladder: []Rung{{At: after(100), Kind: Escalate, Channel: "C-all"}},
		})},
	}, nil)
	require.NoError(t, err)

	clicks := map[int][]Decide{}
	click := func(h int, who UserID, call ToolCallID, groups ...GroupID) {
		for _, a := range b.Approvals {
			if a.Call.ID == call {
				clicks[h] = append(clicks[h], Decide{Decision{
					Call: call, By: Principal{User: who, Groups: groups}, Verdict: Approve, Digest: a.Call.Digest, At: after(h),
				}})
			}
		}
	}
	click(20, "sam", "answered", "sre")
	click(30, "sid", "answered", "sre") // its second reminder is never sent
	for i, who := range []UserID{"sam", "sid", "sol"} {
		click(50+i, who, "enough", "sre") // one more than operations needs
	}
	click(73, "olga", "forgotten", "oncall")

	s := newShelf(b)
	var now time.Time
	d := NewDesk(s, nil, nil, func() time.Time { return now })
	var week strings.Builder
	facts := 0
	note := func() {
		for ; facts < len(s.facts); facts++ {
			fmt.Fprintf(&week, "%s  %s\n", now.Format("Mon 15:04"), sentence(s.facts[facts]))
		}
	}
	for h := range 7*24 + 1 {
		now = after(h)
		next, commits := s.batches["b"].Next(), s.commits
		require.NoError(t, d.Tick(t.Context(), "b"))
		due := !next.IsZero() && !now.Before(next)
		require.Equal(t, due, s.commits == commits+1, now)
		require.NoError(t, d.Tick(t.Context(), "b"), "another sweeper")
		require.LessOrEqual(t, s.commits, commits+1)
		note()
		for _, c := range clicks[h] {
			_, err := d.Decide(t.Context(), "b", RequestID(fmt.Sprint(h)), c)
			require.NoError(t, err)
			note()
		}
	}
	got := s.batches["b"]
	require.True(t, got.Next().IsZero(), "the last one waits without a deadline")
	require.Equal(t, []string{"C-all", "C-war"}, got.Channels())
	fmt.Fprintf(&week, "shown in %v; still open: patient %s\n", got.Channels(), got.Approvals[3].Status)

	golden := filepath.Join("testdata", "week.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(week.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), week.String())
}

func sentence(e Event) string {
	switch e := e.(type) {
	case Reminded:
		return fmt.Sprintf("%-9s rung %d: a reminder", e.Call, e.Rung)
	case Escalated:
		return fmt.Sprintf("%-9s rung %d: escalated, %q gets %v %v, shown in %q", e.Call, e.Rung, e.Quorum, e.Add.Users, e.Add.Groups, e.Channel)
	case Decided:
		return fmt.Sprintf("%-9s %s says %s", e.Call, e.By.User, e.Verdict)
	case Settled:
		return fmt.Sprintf("%-9s %s", e.Call, e.Status)
	default:
		return fmt.Sprintf("%T", e)
	}
}
