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

// TestSigningSeatsNobodyOut: whoever was counted stays counted when someone
// else signs, in each way to meet the requirement, and is counted once.
func TestSigningSeatsNobodyOut(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	seats, moved, standIns := 0, 0, 0
	for range 3_000 {
		req, people := randomPoll(r, 4, 8)
		ways, err := req.ways()
		require.NoError(t, err)
		for _, way := range ways {
			var before map[UserID]Seat
			for n := range len(people) + 1 {
				now := map[UserID]Seat{}
				names := map[UserID]bool{}
				m := newPoll(req.Quorums, people[:n]).newMatching(way)
				for _, q := range way {
					require.LessOrEqual(t, len(m.seats[q]), max(0, req.Quorums[q].Need))
					for _, s := range m.seated(q) {
						name := s.For
						if s.For == "" {
							name = s.User
						} else {
							standIns++
						}
						require.NotContains(t, now, s.User, "one signature")
						require.False(t, names[name], "one place")
						now[s.User], names[name] = s, true
						seats++
					}
				}
				for u, s := range before {
					require.Contains(t, now, u)
					if now[u] != s {
						moved++
					}
				}
				before = now
			}
		}
	}
	require.Greater(t, seats, 10_000)
	require.Greater(t, moved, 100, "nobody ever moves over")
	require.Greater(t, standIns, 1_000)
}

// TestTheFirstStagesFillFirst: a signature that could fill a place of two
// stages is never kept from the earlier one.
func TestTheFirstStagesFillFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	later := 0
	for range 20_000 {
		req, people := randomPoll(r, 4, 5)
		ways, err := req.ways()
		require.NoError(t, err)
		for _, way := range ways {
			m := newPoll(req.Quorums, people).newMatching(way)
			for stage := range 3 {
				upTo := slices.DeleteFunc(slices.Clone(way), func(q int) bool { return req.Quorums[q].Stage > stage })
				alone := newPoll(req.Quorums, people).newMatching(upTo)
				require.Equal(t, alone.filled(stage), m.filled(stage), "%+v %+v", req, people)
			}
			later += m.filled(2) - m.filled(0)
		}
	}
	require.Greater(t, later, 1000)
}

// randomPoll is a requirement with choices and stages, and people of whom some
// sign for others.
func randomPoll(r *rand.Rand, quorums, users int) (Requirement, []Principal) {
	req := Requirement{Delegation: true}
	name := func(i int) UserID { return UserID("u" + strconv.Itoa(i)) }
	for range 1 + r.IntN(quorums) {
		q := Quorum{Need: 1 + r.IntN(3), Stage: r.IntN(3), Choice: max(0, r.IntN(4)-1), Option: r.IntN(2)}
		for p := range users + 2 {
			if r.IntN(5) < 2 {
				q.From.Users = append(q.From.Users, name(p))
			}
		}
		req.Quorums = append(req.Quorums, q)
	}
	var people []Principal
	for p := range users {
		who := Principal{User: name(p)}
		for range r.IntN(3) {
			if away := r.IntN(users + 2); away != p {
				who.For = append(who.For, Absent{User: name(away)})
			}
		}
		people = append(people, who)
	}
	return req, people
}

func BenchmarkMetOfMany(b *testing.B) {
	var req Requirement
	var people []Principal
	for i := range 40 {
		who := Principal{User: UserID("u" + strconv.Itoa(i)), Groups: []GroupID{"g" + GroupID(strconv.Itoa(i%5))}}
		who.For = []Absent{{User: UserID("away" + strconv.Itoa(i)), Groups: []GroupID{"g0"}}}
		people = append(people, who)
	}
	for choice := range 6 { // 64 ways
		for option := range 2 {
			req.Quorums = append(req.Quorums, Quorum{
				Need: 3 + option, Choice: 1 + choice, Option: option, From: From{Groups: []GroupID{"g0", "g1", "g2", "g3"}},
			})
		}
	}
	for b.Loop() {
		if !req.met(people) {
			b.Fatal("not met")
		}
	}
}
