package approvals

import "slices"

// A poll is what the approvals of some people can do for some quorums. A
// signer signs for one identity, their own or that of someone away, and an
// identity fills one place of a quorum.
type poll struct {
	quorums []Quorum
	signers []Principal
	names   []UserID // of the identities
	signs   [][]int  // by signer: the identities they may approve for, their own first
	admits  []bool   // by identity and quorum, see fits
}

// newPoll takes down who may fill which place. Where several people bring the
// same identity, it has the groups that any of them saw it in: so the order in
// which they came does not matter.
func newPoll(quorums []Quorum, signers []Principal) *poll {
	p := &poll{quorums: quorums, signers: signers, signs: make([][]int, len(signers))}
	known := make(map[UserID]int, len(signers))
	for s, signer := range signers {
		p.signs[s] = append(p.signs[s], p.identity(known, signer))
		for _, a := range signer.For {
			if x := p.identity(known, a.principal()); !slices.Contains(p.signs[s], x) {
				p.signs[s] = append(p.signs[s], x)
			}
		}
	}
	return p
}

func (p *poll) identity(known map[UserID]int, who Principal) int {
	x, ok := known[who.User]
	if !ok {
		x = len(p.names)
		known[who.User] = x
		p.names = append(p.names, who.User)
		p.admits = append(p.admits, make([]bool, len(p.quorums))...)
	}
	for q, quorum := range p.quorums {
		if !p.fits(x, q) && quorum.From.Admits(who) {
			p.admits[x*len(p.quorums)+q] = true
		}
	}
	return x
}

// fits reports whether identity x may fill a place of quorum q.
func (p *poll) fits(x, q int) bool { return p.admits[x*len(p.quorums)+q] }

const nobody = -1

// A matching assigns approvers to places, each under one identity. It is a flow
// from signers over identities to quorums, in which a signer and an identity
// carry one and a quorum carries Need, found by augmenting paths: free places
// cost nothing, however many there are.
//
// Seating a further signer may move others but never unseats one. And it takes
// a place of the earliest stage that it can free: as many places of the first
// stages as possible are filled, for any number of stages.
type matching struct {
	*poll
	way    []int   // the quorums to fill
	holder []int   // by identity: the signer seated in it, or nobody
	seats  [][]int // by quorum: the identities on its places

	stage   int   // a place of a later stage is not taken now
	round   int   // counts the searches; what was looked at bears its number
	entered []int // by identity
	asked   []int // by quorum
}

// newMatching seats all signers of the poll, in their order, in the quorums of
// the way.
func (p *poll) newMatching(way []int) *matching {
	m := &matching{
		poll:    p,
		way:     way,
		holder:  make([]int, len(p.names)),
		seats:   make([][]int, len(p.quorums)),
		entered: make([]int, len(p.names)),
		asked:   make([]int, len(p.quorums)),
	}
	for x := range m.holder {
		m.holder[x] = nobody
	}
	stages := m.stages()
	for s := range p.signers {
		for _, stage := range stages {
			if m.seat(s, stage) {
				break
			}
		}
	}
	return m
}

// stages returns the stages of the way, in their order.
func (m *matching) stages() []int {
	var all []int
	for _, q := range m.way {
		if !slices.Contains(all, m.quorums[q].Stage) {
			all = append(all, m.quorums[q].Stage)
		}
	}
	slices.Sort(all)
	return all
}

// seat finds signer s a place of no later stage than this.
func (m *matching) seat(s, stage int) bool {
	m.round++
	m.stage = stage
	return m.sign(s)
}

// sign lets s sign for one of their identities, for which someone else who
// signs for it may have to take another of theirs. Each identity and each
// quorum is looked at once in a round.
func (m *matching) sign(s int) bool {
	for _, x := range m.signs[s] {
		if m.entered[x] == m.round {
			continue
		}
		m.entered[x] = m.round
		if h := m.holder[x]; h == nobody && m.sit(x) || h != nobody && m.sign(h) {
			m.holder[x] = s
			return true
		}
	}
	return false
}

// sit finds identity x a place, asking others to leave theirs if need be.
func (m *matching) sit(x int) bool {
	for _, q := range m.way {
		if m.asked[q] == m.round || !m.fits(x, q) {
			continue
		}
		m.asked[q] = m.round
		if len(m.seats[q]) < m.quorums[q].Need && m.quorums[q].Stage <= m.stage {
			m.seats[q] = append(m.seats[q], x)
			return true
		}
		for i, y := range m.seats[q] {
			if m.leave(y) {
				m.seats[q][i] = x
				return true
			}
		}
	}
	return false
}

// leave lets y give up its place: for another, or because who is seated in it
// can approve for someone else.
func (m *matching) leave(y int) bool {
	if m.sit(y) {
		return true
	}
	if m.entered[y] == m.round {
		return false
	}
	m.entered[y] = m.round
	if !m.sign(m.holder[y]) {
		return false
	}
	m.holder[y] = nobody
	return true
}

// missing counts the places that are still free, and says whether they can be
// filled at all: a quorum with Need below 1 is never met.
func (m *matching) missing() (places int, fillable bool) {
	const enough = 1 << 20 // in which so many do not add up to less
	fillable = true
	for _, q := range m.way {
		places += min(m.quorums[q].Need-len(m.seats[q]), enough)
		fillable = fillable && m.quorums[q].Need > 0
	}
	return places, fillable
}

// filled counts the places that are taken, up to this stage.
func (m *matching) filled(stage int) int {
	n := 0
	for _, q := range m.way {
		if m.quorums[q].Stage <= stage {
			n += len(m.seats[q])
		}
	}
	return n
}

// open returns the first stage that is not filled.
func (m *matching) open() (int, bool) {
	stage, found := 0, false
	for _, q := range m.way {
		need := m.quorums[q].Need
		if need > 0 && len(m.seats[q]) >= need {
			continue
		}
		if s := m.quorums[q].Stage; !found || s < stage {
			stage, found = s, true
		}
	}
	return stage, found
}

// seated returns who sits in quorum q, in the order in which they signed.
func (m *matching) seated(q int) []Seat {
	held := slices.Clone(m.seats[q])
	slices.SortFunc(held, func(x, y int) int { return m.holder[x] - m.holder[y] })
	var seats []Seat
	for _, x := range held {
		seat := Seat{User: m.signers[m.holder[x]].User}
		if m.names[x] != seat.User {
			seat.For = m.names[x]
		}
		seats = append(seats, seat)
	}
	return seats
}
