package approvals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// amends is a change of theCall as it stands in b, to {"n": n}.
func amends(b Batch, who UserID, n int, r Ruling) Amend {
	return Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: fmt.Appendf(nil, `{"n":%d}`, n),
		Ruling: r, By: Principal{User: who}, At: opened.Add(time.Duration(n) * time.Minute),
	}
}

// Whoever asked cannot have what was denied judged again by changing a little
// of it; an approver can, whose word it is too.
func TestWhoAskedWipesNoDenialAway(t *testing.T) {
	r := all(of(2, "ann", "bo", "req"))
	r.Deny, r.EditorMaySign = 2, true
	b := open(t, r)
	b = must(t, b, amends(b, "req", 1, Permit{}))
	b = must(t, b, say(b, "bo", Approve))
	b = must(t, b, amends(b, "req", 2, Permit{}))
	require.Empty(t, b.Approvals[0].Decisions, "an approval is no hindrance")

	denied := must(t, b, say(b, "ann", Deny))
	_, _, err := denied.Apply(amends(denied, "req", 3, Permit{}))
	require.ErrorIs(t, err, ErrDenied)
	same := amends(denied, "req", 2, Permit{})
	_, _, err = denied.Apply(same)
	require.ErrorIs(t, err, ErrDenied, "nor is the form opened")
	_, _, err = denied.Apply(amends(denied, "out", 3, Permit{}))
	require.ErrorIs(t, err, ErrNotEligible, "which an outsider does not hear")
	must(t, denied, amends(denied, "bo", 3, Permit{}))

	back := must(t, denied, Retract{Call: theCall, By: Principal{User: "ann"}, At: opened.Add(time.Minute)})
	must(t, back, amends(back, "req", 3, Permit{}))
	own := must(t, b, say(b, "req", Deny))
	must(t, own, amends(own, "req", 3, Permit{}))
}

// Whoever executes the call could not be given other arguments.
func TestWhatRunsAsItWasMadeIsNotChanged(t *testing.T) {
	for name, fix := range map[string]func(*Batch){
		"its door carries no edits": func(b *Batch) { b.Limits.NoEdits = true },
		"its provider runs it":      func(b *Batch) { b.Approvals[0].Hosted = true },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, all(of(1, "ann", "bo")))
			must(t, b, amends(b, "ann", 1, Permit{}))
			fix(&b)
			_, _, err := b.Apply(amends(b, "ann", 1, Permit{}))
			require.ErrorIs(t, err, ErrNoEdits)
		})
	}
}

func TestTenChangesAreEnough(t *testing.T) {
	b := open(t, all(of(1, "ann", "bo")))
	for n := range MaxAmendments {
		b = must(t, b, amends(b, "req", n, Permit{}))
	}
	require.Len(t, b.Approvals[0].Amendments, 10)
	for _, who := range []UserID{"req", "ann"} {
		_, _, err := b.Apply(amends(b, who, 11, Permit{}))
		require.ErrorIs(t, err, ErrAmendments)
	}
	require.Equal(t, Approved, must(t, b, say(b, "ann", Approve)).Approvals[0].Status, "it can be signed as it is")
}

// Each change asks the policy anew, and its rule begins to count anew: yet
// nobody gets more time by it.
func TestAChangeGivesNoMoreTime(t *testing.T) {
	at := func(minutes int) time.Time { return opened.Add(time.Duration(minutes) * time.Minute) }
	remind := func(minutes int) Rung { return Rung{At: at(minutes), Kind: Remind} }
	for name, c := range map[string]struct {
		old, next time.Time
		want      time.Time
		rungs     int
	}{
		"later":        {at(60), at(90), at(60), 2},
		"never":        {at(60), time.Time{}, at(60), 2},
		"sooner":       {at(60), at(50), at(50), 4},
		"as before":    {at(60), at(60), at(60), 4},
		"now there is": {time.Time{}, at(90), at(90), 4},
		"no rung left": {at(15), at(90), at(15), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, Requirement{Quorums: []Quorum{of(1, "ann")}, Deadline: c.old})
			ask := Ask{Requirement: Requirement{
				Quorums: []Quorum{of(1, "ann")}, Deadline: c.next, Ladder: []Rung{remind(20), remind(59), remind(60), remind(80)},
			}}
			got := must(t, b, amends(b, "req", 10, ask)).Approvals[0].Requirement
			require.Equal(t, c.want, got.Deadline)
			require.Len(t, got.Ladder, c.rungs)
			require.Len(t, ask.Requirement.Ladder, 4)
			require.Equal(t, at(80), ask.Requirement.Ladder[3].At, "the policy keeps its own")
		})
	}
}

// The Desk asks about a change what was asked about the call: why its tool asks,
// and what the run had done.
func TestTheDeskAsksAsTheRunDid(t *testing.T) {
	soFar := SoFar{Steps: 3, Executed: map[string]int{"delete": 4}, Failed: map[string]int{"delete": 1}, Denied: map[string]int{"x": 2}}
	for _, gate := range []Gate{GateNone, GateDeclared, GatePredicate, GateRaised} {
		b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", SoFar: soFar, OpenedAt: opened}, []Deferral{{
			Call: ToolCall{ID: theCall, Name: "delete", Args: theArgs}, Gate: gate, Ask: Ask{Requirement: all(of(1, "ann"))},
		}}, nil)
		require.NoError(t, err)
		var asked Proposal
		d := desk(newShelf(b), rules(func(p Proposal) (Ruling, error) { asked = p; return Permit{}, nil }))
		after, err := d.Amend(t.Context(), b.ID, "r1", amends(b, "req", 1, nil))
		require.NoError(t, err)
		require.Equal(t, gate, asked.Gate)
		require.Equal(t, soFar, asked.SoFar)
		require.Equal(t, b.Approvals[0].Requirement, after.Approvals[0].Requirement, "it opens no gate")
		require.Equal(t, gate, after.Approvals[0].Gate)
	}
}

// A rule that says that calls such as this one are low says nothing of other arguments.
// What the tool says, it says of all its calls.
func TestAChangeKeepsNoPromiseOfARule(t *testing.T) {
	for _, c := range []struct{ tool, before, after, want Severity }{
		{"", "low", "", ""},
		{"low", "", "", "low"},
		{"low", "low", "", "low"},
		{"", "low", "low", "low"},
		{"", "", "low", "low"},
		{"", "low", "high", "high"},
		{"", "high", "", "high"},
		{"", "irreversible", "low", "irreversible"},
	} {
		b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: opened}, []Deferral{{
			Call: ToolCall{ID: theCall, Name: "delete", Args: theArgs}, Severity: c.tool,
			Ask: Ask{Requirement: all(of(1, "ann")), Severity: c.before},
		}}, nil)
		require.NoError(t, err)
		d := desk(newShelf(b), stating{c.tool, Ask{Requirement: all(of(1, "ann")), Severity: c.after}})
		after, err := d.Amend(t.Context(), b.ID, "r1", amends(b, "req", 1, nil))
		require.NoError(t, err)
		require.Equal(t, c.want, after.Approvals[0].Severity, "%+v", c)
	}
}

// stating is a policy that knows what the tool states.
type stating struct {
	tool Severity
	ask  Ask
}

func (s stating) Rule(context.Context, Proposal) (Ruling, error) { return s.ask, nil }
func (s stating) Strictest(time.Time) Requirement                { return s.ask.Requirement }
func (s stating) Stated(_, _ string) Severity                    { return s.tool }

func TestWhiteSpaceIsNoChange(t *testing.T) {
	b := open(t, all(of(1, "ann")))
	s := newShelf(b)
	s.args[b.Approvals[0].Call.Digest] = theArgs
	checked := 0
	check := func(context.Context, Batch, ToolCall) error { checked++; return nil }
	d := NewDesk(s, rules(func(Proposal) (Ruling, error) { return Permit{}, nil }), check, func() time.Time { return opened })
	edit := amends(b, "req", 1, nil)
	for _, args := range []string{`{"path":"/srv/a"}`, "{ \"path\" : \"/srv/a\"\n}", `{"path": "/srv/a"} `} {
		edit.Args = json.RawMessage(args)
		_, err := d.Amend(t.Context(), b.ID, "r1", edit)
		require.ErrorIs(t, err, ErrInvalid, args)
		require.ErrorContains(t, err, "white space")
	}
	require.Zero(t, checked)
	require.Zero(t, s.commits)
	edit.Args = json.RawMessage(`{"path":"/srv/a "}`)
	_, err := d.Amend(t.Context(), b.ID, "r2", edit)
	require.NoError(t, err, "in a text it means something")
}
