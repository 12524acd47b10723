package approvals_test

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// invariants are the twelve sentences of the package comment, in their order.
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
		alike(t, snapshot(a), snapshot(s.after.Approvals[i]))
		want := ErrSettled
		if a.Status == Expired {
			want = ErrExpired
		}
		for _, u := range machineUsers[:4] {
			for _, v := range []Verdict{Approve, Deny} {
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
			require.IsType(t, ToolDenied{}, got.Approvals[id])
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
			require.True(t, eligible(a.Requirement, d.By))
			require.False(t, a.Requirement.Separation && d.By.User == "req")
		}
		counted := map[UserID]bool{}
		for _, p := range a.Progress() {
			require.LessOrEqual(t, len(p.By), max(0, p.Quorum.Need))
			for _, u := range p.By {
				require.False(t, counted[u.User], "%s sits in two places", u)
				counted[u.User] = true
			}
		}
		if a.Status != Pending || !a.Requirement.Separation || overdue(a, m.now) {
			continue
		}
		by := Principal{User: "req", Groups: machineGroups}
		_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: Approve, Digest: a.Call.Digest, At: m.now}})
		is(t, err, ErrOwnRequest)
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
				if !eligible(a.Requirement, by) || barred(a, u) {
					continue
				}
				_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: Approve, Digest: old, At: m.now}})
				is(t, err, ErrStale)
			}
		}
	}
}

func invariant8StatusIsImplied(t require.TestingT, _ *machine, s step) {
	for _, a := range s.after.Approvals {
		var yes []Principal
		no := 0
		for _, d := range a.Decisions {
			if d.Verdict == Approve {
				yes = append(yes, d.By)
			} else {
				no++
			}
		}
		want := Pending
		switch {
		case hall(a.Requirement.Quorums, yes):
			want = Approved
		case no >= max(1, a.Requirement.Deny):
			want = Denied
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

// invariant10OrderDoesNotMatter lets the same people sign the other way round.
func invariant10OrderDoesNotMatter(t require.TestingT, m *machine, s step) {
	for _, a := range s.after.Approvals {
		var yes []Decision
		for _, d := range a.Decisions {
			if d.Verdict == Approve {
				yes = append(yes, d)
			}
		}
		if len(yes) < 2 {
			continue
		}
		slices.Reverse(yes)
		r := a.Requirement
		r.Deadline, r.EditorMaySign = time.Time{}, true
		b, _, err := Open(
			Batch{ID: s.after.ID, Run: s.after.Run, Requester: s.after.Requester},
			[]Deferral{{Call: ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: m.args[a.Call.Digest]}, Ask: Ask{Requirement: r}}}, nil,
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
				Call: a.Call.ID, By: Principal{User: u, Groups: machineGroups}, Verdict: Approve, Digest: a.Call.Digest, At: d,
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
			require.False(t, barred(a, d.By.User), "the editor signed")
		}
		for _, u := range machineUsers[:6] {
			if a.Status != Pending || overdue(a, m.now) || !barred(a, u) {
				continue
			}
			by := Principal{User: u, Groups: machineGroups}
			_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: Approve, Digest: a.Call.Digest, At: m.now}})
			is(t, err, ErrOwnRequest)
		}
	}
	cmd, ok := s.cmd.(Amend)
	if !ok || len(s.events) == 0 {
		if !ok {
			for i, a := range s.before.Approvals {
				require.Equal(t, a.Call, s.after.Approvals[i].Call)
				alike(t, snapshot(a.Requirement), snapshot(s.after.Approvals[i].Requirement))
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
	require.True(t, cmd.By.User == "req" || eligible(old.Requirement, cmd.By))
	switch ruling := cmd.Ruling.(type) {
	case Permit:
		alike(t, snapshot(old.Requirement), snapshot(a.Requirement))
	case Ask:
		alike(t, snapshot(ruling.Requirement), snapshot(a.Requirement))
	default:
		require.Failf(t, "amended against the ruling", "%T", ruling)
	}
}

// is and alike ask testify only for the words of a failure: they run often.

func is(t require.TestingT, err, want error) {
	if !errors.Is(err, want) {
		require.ErrorIs(t, err, want)
	}
}

func alike(t require.TestingT, want, got string) {
	if want != got {
		require.Equal(t, want, got)
	}
}

// The words of the invariants, written a second time and without a look at the
// code.

func eligible(r Requirement, p Principal) bool {
	return slices.ContainsFunc(r.Quorums, func(q Quorum) bool { return belongs(q, p) })
}

func belongs(q Quorum, p Principal) bool {
	if p.User == "" {
		return false
	}
	if slices.Contains(q.From.Users, p.User) {
		return true
	}
	for _, g := range q.From.Groups {
		for _, own := range p.Groups {
			if g == own && g != "" {
				return true
			}
		}
	}
	return false
}

// barred reports whether u may not sign, though in a quorum.
func barred(a Approval, u UserID) bool {
	edited := slices.ContainsFunc(a.Amendments, func(m Amendment) bool { return m.By.User == u })
	return a.Requirement.Separation && u == "req" || edited && !a.Requirement.EditorMaySign
}

func overdue(a Approval, at time.Time) bool {
	return !a.Requirement.Deadline.IsZero() && !at.Before(a.Requirement.Deadline)
}

// hall says by Hall's theorem whether the quorums can be filled: any set of
// them must be served by at least as many people as it needs together.
func hall(quorums []Quorum, people []Principal) bool {
	if len(quorums) == 0 {
		return false
	}
	for set := 1; set < 1<<len(quorums); set++ {
		need := 0
		for i, q := range quorums {
			if q.Need < 1 {
				return false
			}
			if set>>i&1 == 1 {
				need += q.Need
			}
		}
		for _, p := range people {
			for i, q := range quorums {
				if set>>i&1 == 1 && belongs(q, p) {
					need--
					break
				}
			}
		}
		if need > 0 {
			return false
		}
	}
	return true
}
