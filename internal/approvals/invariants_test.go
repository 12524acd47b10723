package approvals_test

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// invariants are the seventeen sentences of the package comment, in their order.
// Each is checked after every command.
var invariants = []func(require.TestingT, *machine, step){
	invariant1ReceiverUnchanged,
	invariant2VersionMovesWithFacts,
	invariant3SettledNeverMoves,
	invariant4ResolvedOnce,
	invariant5ResultsExactlyWhenSettled,
	invariant6APersonCountsOnce,
	invariant7PeopleApproveWhatTheySaw,
	invariant8StatusIsImplied,
	invariant9Repeatable,
	invariant10OrderDoesNotMatter,
	invariant11Deadlines,
	invariant12Amendments,
	invariant13NobodySignsTwiceForAnybody,
	invariant14Ladders,
	invariant15WhatTimeMoves,
	invariant16ExecutionsAreRecordedOnce,
	invariant17Doubts,
}

func invariant1ReceiverUnchanged(t require.TestingT, _ *machine, s step) {
	alike(t, s.was, snapshot(s.before))
}

// invariant1HistoryUnchanged looks at all batches that ever were: a later
// command must not have written into memory that they share.
func invariant1HistoryUnchanged(t require.TestingT, m *machine) {
	for _, k := range m.kept {
		alike(t, k.snap, snapshot(k.batch))
	}
}

func invariant2VersionMovesWithFacts(t require.TestingT, _ *machine, s step) {
	if s.err != nil {
		require.Empty(t, s.events)
	}
	if len(s.events) == 0 {
		alike(t, s.was, s.is)
		return
	}
	require.Equal(t, s.before.Version+1, s.after.Version)
}

func invariant3SettledNeverMoves(t require.TestingT, m *machine, s step) {
	for i, a := range s.before.Approvals {
		if a.Status == Pending {
			continue
		}
		after := s.after.Approvals[i]
		a.Execution, after.Execution = Execution{}, Execution{}   // that is sentence 16
		a.Doubt.Late, after.Doubt.Late = Execution{}, Execution{} // and 17
		alike(t, snapshot(a), snapshot(after))
		want := ErrSettled
		if a.Status == Expired {
			want = ErrExpired
		}
		for _, u := range machineUsers[:4] {
			for _, v := range []Verdict{a.Yes(), a.No(), Happened} {
				by := Principal{User: u, Groups: machineGroups}
				_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: v, Digest: a.Call.Digest, At: m.now}})
				is(t, err, want)
			}
		}
	}
	for i, c := range s.before.Calls {
		if c.Result != nil {
			require.Equal(t, c, s.after.Calls[i])
		}
	}
}

func invariant4ResolvedOnce(t require.TestingT, m *machine, s step) {
	resolved := func(events []Event) int {
		n := 0
		for _, e := range events {
			if _, ok := e.(Resolved); ok {
				n++
			}
		}
		return n
	}
	want := 0
	if s.after.Settled() {
		want = 1
	}
	require.Equal(t, want, resolved(m.events))
	if s.after.Settled() && !s.before.Settled() {
		require.IsType(t, Resolved{}, s.events[len(s.events)-1])
	}
}

func invariant5ResultsExactlyWhenSettled(t require.TestingT, m *machine, s step) {
	args := map[ToolCallID]json.RawMessage{}
	for _, a := range s.after.Approvals {
		args[a.Call.ID] = m.args[a.Call.Digest]
	}
	got, err := s.after.Results(args)
	open := slices.ContainsFunc(s.after.Approvals, func(a Approval) bool { return a.Status == Pending }) ||
		slices.ContainsFunc(s.after.Calls, func(c External) bool { return c.Result == nil })
	if open {
		is(t, err, ErrOpen)
		return
	}
	require.NoError(t, err)
	require.Len(t, got.Approvals, len(s.after.Approvals))
	require.Len(t, got.Calls, len(s.after.Calls))
	approved := 0
	for _, a := range s.after.Approvals {
		id := a.Call.ID
		if a.Status != Approved {
			if a.Status == Confirmed {
				require.IsType(t, ToolHappened{}, got.Approvals[id])
			} else {
				require.IsType(t, ToolDenied{}, got.Approvals[id])
			}
			require.NotContains(t, got.Metadata, id)
			continue
		}
		approved++
		want := ToolApproved{}
		if a.Call.Digest != a.Proposed {
			want.OverrideArgs = args[id]
			require.NotEmpty(t, want.OverrideArgs)
		}
		require.Equal(t, want, got.Approvals[id])
		require.Contains(t, got.Metadata, id)

		args[id] = append(slices.Clone(args[id]), ' ')
		_, err := s.after.Results(args)
		is(t, err, ErrStale)
		args[id] = m.args[a.Call.Digest]
	}
	require.Len(t, got.Metadata, approved)
	for _, c := range s.after.Calls {
		require.Equal(t, c.Result, got.Calls[c.Call.ID])
	}
}

func invariant6APersonCountsOnce(t require.TestingT, m *machine, s step) {
	for _, a := range s.after.Approvals {
		seen := map[UserID]bool{}
		for _, d := range a.Decisions {
			require.NotEmpty(t, d.By.User)
			require.False(t, seen[d.By.User], "%s twice", d.By.User)
			seen[d.By.User] = true
			quorums := a.Requirement.Quorums
			if d.Verdict == Deny {
				quorums = slices.Concat(quorums, a.Requirement.Vetoes)
			}
			require.True(t, eligible(quorums, d.By))
			require.False(t, a.Requirement.Separation && d.By.User == "req")
			require.False(t, barred(s.after, a, d.By.User, d.Verdict))
		}
		type seat struct {
			choice, option int
			user           UserID
		}
		counted := map[seat]bool{}
		for _, p := range a.Progress() {
			require.LessOrEqual(t, len(p.By), max(0, p.Quorum.Need))
			for _, u := range p.By {
				at := seat{p.Quorum.Choice, p.Quorum.Option, u.User}
				require.False(t, counted[at], "%s sits in two places", u)
				counted[at] = true
			}
		}
		if a.Status != Pending || !a.Requirement.Separation || overdue(a, m.now) {
			continue
		}
		for _, u := range append([]UserID{"req"}, s.after.Participants...) {
			if u != "req" && a.Requirement.ParticipantsMaySign {
				continue
			}
			by := Principal{User: u, Groups: machineGroups}
			_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: a.Yes(), Digest: a.Call.Digest, At: m.now}})
			is(t, err, ErrOwnRequest)
		}
	}
}

func invariant7PeopleApproveWhatTheySaw(t require.TestingT, m *machine, s step) {
	for _, a := range s.after.Approvals {
		for _, d := range a.Decisions {
			require.Equal(t, a.Call.Digest, d.Digest)
		}
		if a.Status != Pending || overdue(a, m.now) {
			continue
		}
		for _, old := range append(m.old[a.Call.ID], Digest{}, Digest{1}) {
			if old == a.Call.Digest {
				continue
			}
			for _, u := range machineUsers[:5] {
				by := Principal{User: u, Groups: machineGroups}
				if !eligible(a.Requirement.Quorums, by) || barred(s.after, a, u, Approve) {
					continue
				}
				_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: a.Yes(), Digest: old, At: m.now}})
				is(t, err, ErrStale)
			}
		}
	}
}

func invariant8StatusIsImplied(t require.TestingT, _ *machine, s step) {
	for _, a := range s.after.Approvals {
		var yes, no []Principal
		denials, happened, enough := 0, false, max(1, a.Requirement.Deny)
		if !a.Doubt.Began.IsZero() {
			enough = 1
		}
		for _, d := range a.Decisions {
			if happened = happened || d.Verdict == Happened; d.Verdict == a.Yes() {
				yes = append(yes, d.By)
				continue
			}
			no = append(no, d.By)
			if eligible(a.Requirement.Quorums, d.By) {
				denials++
			}
		}
		vetoed := a.Doubt.Began.IsZero() && slices.ContainsFunc(a.Requirement.Vetoes, func(q Quorum) bool { return fills([]Quorum{q}, no) })
		want := Pending
		switch {
		case happened:
			want = Confirmed
		case denials >= enough, vetoed:
			want = Denied
		case slices.ContainsFunc(everyWay(a.Requirement.Quorums), func(way []Quorum) bool { return fills(way, yes) }):
			want = Approved
		case a.Ending != Ending{} && a.Ending.By == "":
			want = Expired
		case a.Ending != Ending{}:
			want = Withdrawn
		}
		require.Equal(t, want, a.Status)
		require.Equal(t, want == Pending, a.Ending == Ending{})
	}
}

func invariant9Repeatable(t require.TestingT, _ *machine, s step) {
	again, events, err := s.before.Apply(s.cmd)
	require.Equal(t, s.err == nil, err == nil)
	alike(t, s.is, snapshot(again))
	require.Equal(t, s.events, events)
}

func invariant9SameCommandsSameBatch(t require.TestingT, m *machine) {
	b := m.opening()
	for _, cmd := range m.log {
		b, _, _ = b.Apply(cmd)
	}
	alike(t, snapshot(m.batch), snapshot(b))
}

// invariant10OrderDoesNotMatter lets the same people approve the other way round.
func invariant10OrderDoesNotMatter(t require.TestingT, m *machine, s step) {
	for _, a := range s.after.Approvals {
		var yes []Decision
		for _, d := range a.Decisions {
			if d.Verdict == a.Yes() {
				yes = append(yes, d)
			}
		}
		if len(yes) < 2 || a.Status == Denied && a.Climbed > 0 { // more people may have met both
			continue
		}
		slices.Reverse(yes)
		r := a.Requirement
		r.Deadline, r.EditorMaySign, r.Ladder = time.Time{}, true, nil
		b, _, err := Open(
			Batch{ID: s.after.ID, Run: s.after.Run, Requester: s.after.Requester, Participants: s.after.Participants},
			[]Deferral{{Call: ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: m.args[a.Call.Digest]}, Ask: Ask{Requirement: r}, Doubt: a.Doubt}}, nil,
		)
		require.NoError(t, err)
		for _, d := range yes {
			if b.Settled() {
				break // in this order fewer were enough
			}
			b = mustApply(t, b, Decide{d})
		}
		require.Equal(t, a.Status == Approved, b.Approvals[0].Status == Approved)
	}
}

func mustApply(t require.TestingT, b Batch, cmd Command) Batch {
	next, _, err := b.Apply(cmd)
	require.NoError(t, err)
	return next
}

func invariant11Deadlines(t require.TestingT, _ *machine, s step) {
	first := time.Time{}
	for _, a := range s.after.Approvals {
		d := a.Requirement.Deadline
		if d.IsZero() {
			require.NotEqual(t, Expired, a.Status)
			continue
		}
		for _, said := range a.Decisions {
			require.True(t, said.At.Before(d))
		}
		if a.Status == Expired {
			require.False(t, a.Ending.At.Before(d))
		}
		if a.Status != Pending {
			continue
		}
		if first.IsZero() || d.Before(first) {
			first = d
		}
		for _, u := range machineUsers[:6] {
			cmd := Decide{Decision{
				Call: a.Call.ID, By: Principal{User: u, Groups: machineGroups}, Verdict: a.Yes(), Digest: a.Call.Digest, At: d,
			}}
			_, _, err := s.after.Apply(cmd)
			is(t, err, ErrExpired)
			cmd.At = d.Add(-1)
			_, _, err = s.after.Apply(cmd)
			require.NotErrorIs(t, err, ErrExpired)
		}
		_, _, err := s.after.Apply(Amend{
			Call: a.Call.ID, From: a.Call.Digest, Args: json.RawMessage(`{"n":7}`),
			Ruling: Ask{}, By: Principal{User: "req"}, At: d,
		})
		is(t, err, ErrExpired)
	}
	require.True(t, first.Equal(s.after.Deadline()))
	before := opened.Add(time.Hour * 24 * 365)
	if !first.IsZero() {
		before = first.Add(-1)
		_, events, err := s.after.Apply(Expire{At: first})
		require.NoError(t, err)
		require.NotEmpty(t, events)
	}
	_, _, err := s.after.Apply(Expire{At: before})
	is(t, err, ErrNotYet)
}

func invariant12Amendments(t require.TestingT, m *machine, s step) {
	for _, a := range s.after.Approvals {
		for _, d := range a.Decisions {
			require.False(t, barred(s.after, a, d.By.User, d.Verdict), "the editor signed")
		}
		for _, u := range machineUsers[:6] {
			if a.Status != Pending || overdue(a, m.now) || !barred(s.after, a, u, Approve) {
				continue
			}
			by := Principal{User: u, Groups: machineGroups}
			_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: a.Yes(), Digest: a.Call.Digest, At: m.now}})
			is(t, err, ErrOwnRequest)
		}
	}
	cmd, ok := s.cmd.(Amend)
	if !ok || len(s.events) == 0 {
		if !ok {
			_, climb := s.cmd.(Climb) // see invariant 14
			for i, a := range s.before.Approvals {
				require.Equal(t, a.Call, s.after.Approvals[i].Call)
				if !climb {
					alike(t, snapshot(a.Requirement), snapshot(s.after.Approvals[i].Requirement))
					require.Equal(t, a.Severity, s.after.Approvals[i].Severity)
				}
			}
		}
		return
	}
	i := slices.IndexFunc(s.before.Approvals, func(a Approval) bool { return a.Call.ID == cmd.Call })
	old, a := s.before.Approvals[i], s.after.Approvals[i]
	require.Equal(t, old.Call.Digest, cmd.From)
	require.Equal(t, ToolCall{ID: cmd.Call, Name: "tool", Args: cmd.Args}.Ref(s.after.ID), a.Call)
	require.NoError(t, CheckArgs(cmd.Args))
	require.NotEmpty(t, cmd.Args)
	require.Empty(t, a.Decisions)
	require.Equal(t, Pending, a.Status)
	require.Equal(t, old.Proposed, a.Proposed)
	require.Len(t, a.Amendments, len(old.Amendments)+1)
	require.LessOrEqual(t, len(a.Amendments), 10)
	for _, d := range old.Decisions {
		asked := cmd.By.User == "req" || !old.Requirement.ParticipantsMaySign && slices.Contains(s.before.Participants, cmd.By.User)
		require.False(t, asked && d.Verdict == Deny && d.By.User != cmd.By.User, "one of those who asked wiped a denial away")
	}
	if !old.Requirement.Delegation {
		cmd.By.For = nil
	}
	require.True(t, cmd.By.User == "req" || eligible(old.Requirement.Quorums, cmd.By))
	switch ruling := cmd.Ruling.(type) {
	case Permit:
		alike(t, snapshot(old.Requirement), snapshot(a.Requirement))
		require.Equal(t, old.Severity, a.Severity)
	case Ask:
		severity := old.Severity.Worse(ruling.Severity)
		if severity == SeverityLow {
			severity = ruling.Severity // what a rule said of the old arguments
		}
		require.Equal(t, severity, a.Severity)
		want, until := ruling.Requirement, old.Requirement.Deadline
		if !until.IsZero() && (want.Deadline.IsZero() || want.Deadline.After(until)) {
			want.Deadline, want.Ladder = until, nil
			for _, rung := range ruling.Requirement.Ladder {
				if rung.At.Before(until) {
					want.Ladder = append(want.Ladder, rung)
				}
			}
		}
		alike(t, snapshot(want), snapshot(a.Requirement))
	default:
		require.Failf(t, "amended against the ruling", "%T", ruling)
	}
}
