package approvals

import "slices"

// met reports whether these different people fill every place of every quorum,
// each of them one. No quorums are never met, nor is one that needs nobody.
func (r Requirement) met(people []Principal) bool {
	if len(r.Quorums) == 0 {
		return false
	}
	left := len(people)
	for _, q := range r.Quorums {
		if q.Need < 1 || q.Need > left {
			return false
		}
		left -= q.Need
	}
	for i, filled := range r.seats(people) {
		if len(filled) < r.Quorums[i].Need {
			return false
		}
	}
	return true
}

// Progress says how far each quorum of the approval is, counting each person
// once over all of them. Who has signed is listed in the order of signing.
// Alternatives are each counted as if they were the ones that are taken.
func (a Approval) Progress() []Progress {
	var people []Principal
	for _, d := range a.Decisions {
		again := slices.ContainsFunc(people, func(p Principal) bool { return p.User == d.By.User })
		if d.Verdict == Approve && d.Digest == a.Call.Digest && !again {
			people = append(people, d.By)
		}
	}
	seats := a.Requirement.seats(people)
	progress := make([]Progress, len(seats))
	for i, filled := range seats {
		slices.Sort(filled)
		progress[i].Quorum = a.Requirement.clone().Quorums[i]
		for _, p := range filled {
			progress[i].By = append(progress[i].By, Seat{User: people[p].User})
		}
	}
	return progress
}

// Progress is how far a quorum is: who fills its places, and whether it is
// being asked: those of a later stage are not yet.
type Progress struct {
	Quorum Quorum
	By     []Seat
	Asked  bool
}

// A Seat is a filled place of a quorum. For is the person who is away in whose
// place User signed, or empty.
type Seat struct {
	User UserID
	For  UserID
}

func (s Seat) String() string {
	if s.For == "" {
		return string(s.User)
	}
	return string(s.User) + " for " + string(s.For)
}

// Helps reports whether an approval by p would bring an open call further: p
// may sign it, has not decided, and fills a place of a quorum that is asked.
// It is for deciding whom to ask, remind and show; whose signature counts is
// decided by [Batch.Apply].
func (b Batch) Helps(a Approval, p Principal) bool {
	return a.Status == Pending && b.maySign(a, p) == nil && a.decisionOf(p.User) < 0
}

// seats seats as many people as possible, each in one quorum, and returns who
// sits where as indexes into people. It is the usual search for augmenting
// paths, with a quorum as one node that has Need places: a place that nobody
// takes costs nothing, however many are needed.
//
// Seating a further person may move others but never unseats one, so whoever
// was counted stays counted.
func (r Requirement) seats(people []Principal) [][]int {
	m := matching{
		quorums: r.Quorums,
		admits:  make([][]bool, len(people)),
		seats:   make([][]int, len(r.Quorums)),
		tried:   make([]bool, len(r.Quorums)),
	}
	for p, person := range people {
		m.admits[p] = make([]bool, len(r.Quorums))
		for q, quorum := range r.Quorums {
			m.admits[p][q] = quorum.From.admits(person)
		}
		clear(m.tried)
		m.seat(p)
	}
	return m.seats
}

type matching struct {
	quorums []Quorum
	admits  [][]bool // by person, by quorum
	seats   [][]int  // by quorum: people
	tried   []bool   // quorums already asked for the person being seated
}

// seat finds p a place, asking others to move if need be. Each quorum is asked
// once for a person, so a search looks at everybody at most once.
func (m *matching) seat(p int) bool {
	for q := range m.quorums {
		if !m.admits[p][q] || m.tried[q] {
			continue
		}
		m.tried[q] = true
		if len(m.seats[q]) < m.quorums[q].Need {
			m.seats[q] = append(m.seats[q], p)
			return true
		}
		for s, other := range m.seats[q] {
			if m.seat(other) {
				m.seats[q][s] = p
				return true
			}
		}
	}
	return false
}
