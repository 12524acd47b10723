package approvals_test

import (
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

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

func eligible(quorums []Quorum, p Principal) bool {
	return slices.ContainsFunc(quorums, func(q Quorum) bool {
		return belongs(q, p) || slices.ContainsFunc(p.For, func(a Absent) bool {
			return belongs(q, Principal{User: a.User, Groups: a.Groups})
		})
	})
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

// barred reports whether u may not say this, though in a quorum.
func barred(b Batch, a Approval, u UserID, v Verdict) bool {
	edited := slices.Contains(a.EditedBy, u) || slices.ContainsFunc(a.Amendments, func(m Amendment) bool { return m.By.User == u })
	took := v != Deny && !a.Requirement.ParticipantsMaySign && slices.Contains(b.Participants, u)
	return a.Requirement.Separation && (u == "req" || took) || edited && !a.Requirement.EditorMaySign
}

func overdue(a Approval, at time.Time) bool {
	return !a.Requirement.Deadline.IsZero() && !at.Before(a.Requirement.Deadline)
}

// everyWay is every way to take one option of the one choice there is.
func everyWay(quorums []Quorum) [][]Quorum {
	var ways [][]Quorum
	for option := range 2 {
		way := slices.DeleteFunc(slices.Clone(quorums), func(q Quorum) bool { return q.Choice > 0 && q.Option != option })
		other := func(q Quorum) bool { return q.Choice > 0 && q.Option == option }
		if len(way) > 0 && (len(way) == len(quorums) || slices.ContainsFunc(quorums, other)) {
			ways = append(ways, way)
		}
	}
	return ways
}

// fills tries every assignment of people, and whom they sign for, to places.
func fills(quorums []Quorum, people []Principal) bool {
	need := make([]int, len(quorums))
	total := 0
	for i, q := range quorums {
		if q.Need < 1 {
			return false
		}
		need[i], total = q.Need, total+q.Need
	}
	sees := map[UserID][]Principal{} // someone, as each who brings them saw them
	names := make([][]UserID, len(people))
	for i, p := range people {
		for _, who := range append([]Principal{p}, absentOf(p)...) {
			sees[who.User] = append(sees[who.User], who)
			names[i] = append(names[i], who.User)
		}
	}
	used := map[UserID]bool{}
	var try func(p, left int) bool
	try = func(p, left int) bool {
		if left == 0 || left > len(people)-p {
			return left == 0
		}
		for _, u := range names[p] {
			for q, quorum := range quorums {
				if used[u] || need[q] == 0 || !slices.ContainsFunc(sees[u], func(p Principal) bool { return belongs(quorum, p) }) {
					continue
				}
				used[u] = true
				need[q]--
				if try(p+1, left-1) {
					return true
				}
				used[u] = false
				need[q]++
			}
		}
		return try(p+1, left)
	}
	return try(0, total)
}

func absentOf(p Principal) []Principal {
	var all []Principal
	for _, a := range p.For {
		all = append(all, Principal{User: a.User, Groups: a.Groups})
	}
	return all
}
