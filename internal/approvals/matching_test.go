package approvals

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatchingAgainstEveryAssignment compares the matching with the answer that
// trying everything gives, in several orders of the people.
func TestMatchingAgainstEveryAssignment(t *testing.T) {
	const cases = 120_000
	r := rand.New(rand.NewPCG(3, 4))
	met := 0
	for range cases {
		var req Requirement
		for range r.IntN(4) {
			req.Quorums = append(req.Quorums, Quorum{Need: r.IntN(4)})
		}
		people := make([]Principal, r.IntN(6))
		in := make([][]bool, len(people))
		for p := range people {
			people[p].User = UserID("u" + strconv.Itoa(p))
			in[p] = make([]bool, len(req.Quorums))
			for q := range req.Quorums {
				if in[p][q] = r.IntN(2) == 0; in[p][q] {
					from := &req.Quorums[q].From
					from.Users = append(from.Users, people[p].User)
				}
			}
		}
		want := len(req.Quorums) > 0 && everyAssignment(req.Quorums, in)
		if want {
			met++
		}
		for range 2 {
			require.Equal(t, want, req.met(people), "%+v %+v", req, people)
			r.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
		}
	}
	require.Greater(t, met, cases/100)
	require.Less(t, met, cases*99/100)
}

// everyAssignment gives the first person every place they could take, and none.
func everyAssignment(quorums []Quorum, in [][]bool) bool {
	if slices.ContainsFunc(quorums, func(q Quorum) bool { return q.Need < 1 }) {
		return false
	}
	need := make([]int, len(quorums))
	for i, q := range quorums {
		need[i] = q.Need
	}
	var try func(p int) bool
	try = func(p int) bool {
		if p == len(in) {
			return slices.Max(need) == 0
		}
		for q := range need {
			if in[p][q] && need[q] > 0 {
				need[q]--
				if try(p + 1) {
					return true
				}
				need[q]++
			}
		}
		return try(p + 1)
	}
	return try(0)
}

// TestSigningSeatsNobodyOut holds what [Approval.Progress] promises: whoever was
// counted stays counted when somebody else signs.
func TestSigningSeatsNobodyOut(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2_000 {
		req := Requirement{Quorums: make([]Quorum, 1+r.IntN(4))}
		var people []Principal
		for p := range 8 {
			people = append(people, Principal{User: UserID("u" + strconv.Itoa(p))})
			for q := range req.Quorums {
				req.Quorums[q].Need = 1 + q%3
				if r.IntN(3) > 0 {
					req.Quorums[q].From.Users = append(req.Quorums[q].From.Users, people[p].User)
				}
			}
		}
		var seated []int
		for n := range len(people) + 1 {
			var now []int
			for _, s := range req.seats(people[:n]) {
				now = append(now, s...)
			}
			for _, p := range seated {
				require.Contains(t, now, p)
			}
			seated = now
		}
	}
}
