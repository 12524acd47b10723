package approvals_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func invariant13NobodySignsTwiceForAnybody(t require.TestingT, _ *machine, s step) {
	for _, a := range s.after.Approvals {
		for _, d := range a.Decisions {
			if !a.Requirement.Delegation {
				require.Empty(t, d.By.For)
			}
			for i, away := range d.By.For {
				require.NotEqual(t, d.By.User, away.User)
				require.True(t, away.Until.After(d.At), "back already")
				require.False(t, barred(s.after, a, away.User, d.Verdict))
				for _, u := range away.Via {
					require.False(t, barred(s.after, a, u, d.Verdict), "%s chose who approves", u)
				}
				require.True(t, i == 0 || d.By.For[i-1].User < away.User, "sorted, each once")
				require.True(t, slices.IsSorted(away.Groups))
				all := slices.Concat(a.Requirement.Quorums, a.Requirement.Vetoes)
				require.True(t, eligible(all, Principal{User: away.User, Groups: away.Groups}))
			}
		}
		named := map[[2]int]map[UserID]bool{}
		for _, p := range a.Progress() {
			option := [2]int{p.Quorum.Choice, p.Quorum.Option}
			if named[option] == nil {
				named[option] = map[UserID]bool{}
			}
			for _, seat := range p.By {
				who := seat.For
				if who == "" {
					who = seat.User
				}
				require.False(t, named[option][who], "%s has two places", who)
				named[option][who] = true
			}
		}
	}
}

func invariant14Ladders(t require.TestingT, m *machine, s step) {
	var facts []Event
	for i, a := range s.after.Approvals {
		before := s.before.Approvals[i]
		if cmd, ok := s.cmd.(Climb); ok {
			for n := before.Climbed; n < a.Climbed; n++ {
				rung := before.Requirement.Ladder[n]
				require.False(t, rung.At.After(cmd.At))
				require.Equal(t, Pending, before.Status)
				require.False(t, overdue(before, cmd.At))
				if rung.Kind == Remind {
					facts = append(facts, Reminded{s.after.ID, a.Call.ID, n + 1, cmd.At})
				} else {
					facts = append(facts, Escalated{s.after.ID, a.Call.ID, n + 1, rung.Quorum, rung.Add, rung.Channel, cmd.At})
				}
			}
			if s.err == nil && a.Status == Pending && !overdue(a, cmd.At) && a.Climbed < len(a.Requirement.Ladder) {
				require.True(t, a.Requirement.Ladder[a.Climbed].At.After(cmd.At), "left out")
			}
			for q, quorum := range a.Requirement.Quorums {
				was := before.Requirement.Quorums[q]
				require.True(t, slices.Equal(was.From.Users, quorum.From.Users[:len(was.From.Users)]), "nobody is taken out")
				require.True(t, slices.Equal(was.From.Groups, quorum.From.Groups[:len(was.From.Groups)]))
			}
			widened := before.Requirement
			widened.Quorums = a.Requirement.Quorums
			alike(t, snapshot(widened), snapshot(a.Requirement))
		} else if _, amend := s.cmd.(Amend); !amend {
			require.Equal(t, before.Climbed, a.Climbed)
		}
		for _, rung := range a.Requirement.Ladder[:a.Climbed] {
			if i := slices.IndexFunc(a.Requirement.Quorums, func(q Quorum) bool { return q.Name == rung.Quorum }); i >= 0 {
				require.Subset(t, a.Requirement.Quorums[i].From.Users, rung.Add.Users)
				require.Subset(t, a.Requirement.Quorums[i].From.Groups, rung.Add.Groups)
			}
			require.True(t, rung.Channel == "" || slices.Contains(s.after.Channels(), rung.Channel))
		}
	}
	var climbed []Event
	for _, e := range s.events {
		switch e.(type) {
		case Reminded, Escalated:
			climbed = append(climbed, e)
		default:
		}
	}
	require.Equal(t, facts, climbed)
	if _, _, err := s.after.Apply(Climb{At: m.now}); err != nil {
		is(t, err, ErrNotYet)
	}
}

func invariant15WhatTimeMoves(t require.TestingT, _ *machine, s step) {
	next := s.after.Next()
	moves := func(at time.Time) bool {
		_, _, expire := s.after.Apply(Expire{At: at})
		_, _, climb := s.after.Apply(Climb{At: at})
		return expire == nil || climb == nil
	}
	if next.IsZero() {
		require.False(t, moves(opened.Add(1000*time.Hour)))
		return
	}
	require.True(t, moves(next))
	require.False(t, moves(next.Add(-1)))
}

func invariant16ExecutionsAreRecordedOnce(t require.TestingT, _ *machine, s step) {
	for i, after := range s.after.Approvals {
		if after.Execution.State != "" {
			require.True(t, s.after.Settled())
			require.Equal(t, Approved, after.Status)
			require.False(t, after.Execution.At.IsZero())
		}
		if before := s.before.Approvals[i].Execution; before.State != "" && before.State != InDoubt {
			require.Equal(t, before, after.Execution)
		}
	}
	if _, ok := s.cmd.(Conclude); !ok || s.err != nil {
		return
	}
	after := s.after
	after.Version, after.Approvals = s.before.Version, slices.Clone(after.Approvals)
	for i := range after.Approvals {
		after.Approvals[i].Execution = s.before.Approvals[i].Execution
	}
	alike(t, s.was, snapshot(after))
}

func invariant17Doubts(t require.TestingT, m *machine, s step) {
	plain, doubtful := []Verdict{Approve, Deny}, []Verdict{RunAgain, Happened, GiveUp}
	for i, a := range s.after.Approvals {
		before := s.before.Approvals[i].Doubt
		own, others, refused := plain, doubtful, ErrInvalid
		if inDoubt := !a.Doubt.Began.IsZero(); inDoubt {
			own, others, refused = doubtful, plain, ErrInDoubt
			require.Empty(t, a.Amendments)
		} else {
			require.Zero(t, a.Doubt)
			require.NotEqual(t, Confirmed, a.Status)
		}
		for _, d := range a.Decisions {
			require.Contains(t, own, d.Verdict)
			if d.Verdict != RunAgain && d.Verdict != Approve && d.Verdict != Deny {
				require.True(t, eligible(a.Requirement.Quorums, d.By) && !barred(s.after, a, d.By.User, Approve), "one who may approve")
				require.NotEqual(t, Pending, a.Status, "one is enough")
			}
		}
		if before.Late.State != "" {
			require.Equal(t, before, a.Doubt, "recorded once")
		}
		for _, u := range machineUsers[:5] {
			by := Principal{User: u, Groups: machineGroups}
			if a.Status != Pending || overdue(a, m.now) || !eligible(a.Requirement.Quorums, by) || barred(s.after, a, u, Approve) {
				continue
			}
			for _, v := range others {
				_, _, err := s.after.Apply(Decide{Decision{Call: a.Call.ID, By: by, Verdict: v, Digest: a.Call.Digest, At: m.now}})
				is(t, err, refused)
			}
		}
	}
	cmd, ok := s.cmd.(Report)
	if !ok || len(s.events) == 0 {
		return
	}
	after := s.after
	after.Version, after.Approvals = s.before.Version, slices.Clone(after.Approvals)
	i := slices.IndexFunc(after.Approvals, func(a Approval) bool { return a.Call.ID == cmd.Call })
	require.Equal(t, cmd.Execution.State, after.Approvals[i].Doubt.Late.State)
	after.Approvals[i].Doubt.Late = Execution{}
	alike(t, s.was, snapshot(after))
}
