package approvals_test

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	. "github.com/countersign/countersign/internal/approvals"
)

// The oracle answers what a click leads to by trying everything: every way to
// meet a requirement, every assignment of signers to people and of people to
// places. It is slow, knows nothing of flows, and shares no code with what it
// judges. People and groups are bits in it.

const scenarioPeople = 6

var (
	scenarioNames  = [scenarioPeople]UserID{"req", "ann", "bo", "cy", "dee", "eve"}
	scenarioGroups = []GroupID{"sre", "security"}
)

type places struct {
	users, groups        uint
	need                 int
	choice, option, from int // from is the stage
}

type awayOne struct {
	who    int
	groups uint
	over   bool // already back when the decision is made
	via    []int
}

type signatory struct {
	who    int
	groups uint
	away   []awayOne
}

type scenarioClick struct {
	who    int
	deny   bool
	reason string
}

// A scenario is a requirement, who clicks, and in which order.
type scenario struct {
	quorums, vetoes                        []places
	deny                                   int
	separate, editorSigns, delegate, words bool
	narrow                                 bool // who took part may approve
	took                                   uint // who took part
	editor                                 int  // or -1
	people                                 [scenarioPeople]signatory
	clicks, more                           []scenarioClick // before and after the escalation
	escalated                              int             // the quorum that it widens, or -1
	addUsers, addGroups                    uint
}

func newScenario(r *rand.Rand) scenario {
	one := func(n int) bool { return r.IntN(n) == 0 }
	set := func(n int) uint {
		some, others := uint(r.IntN(1<<n)), uint(r.IntN(1<<n))
		return some & others
	}
	p := scenario{
		deny: r.IntN(4), separate: one(3), editorSigns: one(3), delegate: !one(3), words: one(6), editor: -1, escalated: -1,
		narrow: one(4), took: set(scenarioPeople),
	}
	stages := [3]int{r.IntN(3), r.IntN(3), r.IntN(3)}
	for range 1 + r.IntN(4) {
		q := places{users: set(scenarioPeople), groups: set(2), need: []int{1, 1, 1, 1, 2, 2, 3, 0}[r.IntN(8)], from: r.IntN(3)}
		if q.choice = max(0, r.IntN(5)-2); q.choice > 0 {
			q.option, q.from = r.IntN(2), stages[q.choice]
		}
		p.quorums = append(p.quorums, q)
	}
	for range max(0, r.IntN(4)-1) {
		p.vetoes = append(p.vetoes, places{users: set(scenarioPeople), groups: set(2), need: 1 + r.IntN(2)})
	}
	for who := range p.people {
		s := signatory{who: who, groups: set(2)}
		for range max(0, r.IntN(4)-1) {
			s.away = append(s.away, awayOne{r.IntN(scenarioPeople), set(2), one(6), r.Perm(scenarioPeople)[:max(0, r.IntN(5)-2)]})
		}
		p.people[who] = s
	}
	if one(3) {
		p.editor = r.IntN(scenarioPeople)
	}
	click := func() scenarioClick {
		return scenarioClick{r.IntN(scenarioPeople), one(5), []string{"because", "because", " \n"}[r.IntN(3)]}
	}
	for range 2 + r.IntN(7) {
		p.clicks = append(p.clicks, click())
	}
	if one(2) {
		p.escalated, p.addUsers, p.addGroups = r.IntN(len(p.quorums)), set(scenarioPeople), set(2)
		if p.addUsers|p.addGroups == 0 {
			p.addUsers = 2
		}
		for range r.IntN(4) {
			p.more = append(p.more, click())
		}
	}
	return p
}

// An oracle follows one scenario. said holds the decisions that stand, as they
// were made.
type oracle struct {
	scenario
	said   []said
	status Status
}

type said struct {
	signatory
	deny bool
}

func newOracle(p scenario) *oracle {
	p.quorums = slices.Clone(p.quorums)
	return &oracle{scenario: p, status: Pending}
}

func (o *oracle) barred(who int, deny bool) bool {
	return o.separate && (who == 0 || !deny && !o.narrow && o.took>>who&1 == 1) || !o.editorSigns && who == o.editor
}

// heard is s with those for whom they may approve, and the groups they are in. Groups
// that nothing names now are not looked at, then or later.
func (o *oracle) heard(s signatory, deny bool) signatory {
	barred := func(who int) bool { return o.barred(who, deny) }
	var named uint
	for _, q := range slices.Concat(o.quorums, o.vetoes) {
		named |= q.groups
	}
	out := signatory{who: s.who, groups: s.groups & named}
	for _, a := range s.away {
		if !o.delegate || a.over || a.who == s.who || barred(a.who) || slices.ContainsFunc(a.via, barred) {
			continue
		}
		in := func(q places) bool { return q.takes(a.who, a.groups) }
		if slices.ContainsFunc(o.quorums, in) || slices.ContainsFunc(o.vetoes, in) {
			out.away = append(out.away, awayOne{who: a.who, groups: a.groups & named})
		}
	}
	return out
}

func (q places) takes(who int, groups uint) bool { return q.users>>who&1 == 1 || q.groups&groups != 0 }

func (o *oracle) among(quorums []places, s signatory) bool {
	return slices.ContainsFunc(quorums, func(q places) bool {
		return q.takes(s.who, s.groups) ||
			slices.ContainsFunc(s.away, func(a awayOne) bool { return q.takes(a.who, a.groups) })
	})
}

// click is what a click leads to: the error that it is answered with.
func (o *oracle) click(c scenarioClick) error {
	if o.status != Pending {
		return ErrSettled
	}
	s := o.heard(o.people[c.who], c.deny)
	switch {
	case o.separate && c.who == 0:
		return ErrOwnRequest
	case !o.editorSigns && c.who == o.editor:
		return ErrOwnEdit
	case o.barred(c.who, c.deny):
		return ErrOwnWords
	case !o.among(o.quorums, s) && (!c.deny || !o.among(o.vetoes, s)):
		return ErrNotEligible
	}
	for _, d := range o.said {
		if d.who == c.who && d.deny != c.deny {
			return ErrDecided
		}
		if d.who == c.who {
			return nil
		}
	}
	if o.words && !c.deny && c.reason != "because" {
		return ErrReasonNeeded
	}
	o.said = append(o.said, said{s, c.deny})
	o.judge()
	return nil
}

func (o *oracle) judge() {
	denials := 0
	for _, d := range o.said {
		if d.deny && o.among(o.quorums, d.signatory) {
			denials++
		}
	}
	switch {
	case denials >= max(1, o.deny), slices.ContainsFunc(o.vetoes, func(v places) bool {
		return most([]places{v}, o.voices(true)) == v.need
	}):
		o.status = Denied
	case slices.ContainsFunc(o.ways(), func(way []places) bool {
		return wanted(way) > 0 && most(way, o.voices(false)) == wanted(way)
	}):
		o.status = Approved
	}
}

func (o *oracle) voices(deny bool) []signatory {
	var all []signatory
	for _, d := range o.said {
		if d.deny == deny {
			all = append(all, d.signatory)
		}
	}
	return all
}

// ways takes every combination of an option of the first choice and one of the
// second: a way is what a guess of both leaves.
func (o *oracle) ways() [][]places {
	var ways [][]places
	for guess := range 4 {
		pick := [3]int{1: guess & 1, 2: guess >> 1}
		var way []places
		has := [3]bool{0: true}
		asks := [3]bool{0: true}
		for _, q := range o.quorums {
			asks[q.choice] = true
			if q.choice == 0 || q.option == pick[q.choice] {
				has[q.choice] = true
				way = append(way, q)
			}
		}
		if has == asks {
			ways = append(ways, way)
		}
	}
	return ways
}

// wanted is how many places there are, or -1 if one can never be filled.
func wanted(way []places) int {
	n := 0
	for _, q := range way {
		if q.need < 1 {
			return -1
		}
		n += q.need
	}
	return n
}

// most is how many places these can fill at once, found by trying everything.
func most(way []places, voices []signatory) int {
	var takes [scenarioPeople]uint // by whose place: the quorums, as anyone saw them
	for _, s := range voices {
		for i, q := range way {
			if q.takes(s.who, s.groups) {
				takes[s.who] |= 1 << i
			}
			for _, a := range s.away {
				if q.takes(a.who, a.groups) {
					takes[a.who] |= 1 << i
				}
			}
		}
	}
	var left [8]int
	total := 0
	for i, q := range way {
		left[i] = max(0, q.need)
		total += left[i]
	}
	best, full := 0, min(total, len(voices))
	var try func(v int, used uint)
	try = func(v int, used uint) {
		best = max(best, bits.OnesCount(used))
		if v == len(voices) || best == full || bits.OnesCount(used)+len(voices)-v <= best {
			return
		}
		s := voices[v]
		for k := -1; k < len(s.away); k++ {
			who := s.who
			if k >= 0 {
				who = s.away[k].who
			}
			for i := range way {
				if used>>who&1 == 0 && takes[who]>>i&1 == 1 && left[i] > 0 {
					left[i]--
					try(v+1, used|1<<who)
					left[i]++
				}
			}
		}
		try(v+1, used)
	}
	try(0, 0)
	return best
}

func upTo(way []places, stage int) []places {
	return slices.DeleteFunc(slices.Clone(way), func(q places) bool { return q.from > stage })
}

// asked is the stage that is open.
func (o *oracle) asked() int {
	for stage := range 3 {
		met := slices.ContainsFunc(o.ways(), func(way []places) bool {
			some := upTo(way, stage)
			return most(some, o.voices(false)) == wanted(some)
		})
		if !met {
			return stage
		}
	}
	return 3
}

// helps is whether an approval by this person would fill a place that is asked.
func (o *oracle) helps(who int) bool {
	s := o.heard(o.people[who], false)
	if o.status != Pending || o.barred(who, false) || !o.among(o.quorums, s) ||
		slices.ContainsFunc(o.said, func(d said) bool { return d.who == who }) {
		return false
	}
	stage := o.asked()
	return slices.ContainsFunc(o.ways(), func(way []places) bool {
		some := upTo(way, stage)
		return wanted(way) > 0 && most(some, append(o.voices(false), s)) > most(some, o.voices(false))
	})
}
