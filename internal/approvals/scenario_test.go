package approvals_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// The race detector is slow, and the oracle's workers share nothing but a count.
var oracleCases = flag.Int("oracle", map[bool]int{true: 10_000, false: 100_000}[raced], "how many scenarios the oracle judges")

func usersOf(set uint) (all []UserID) {
	for i, u := range scenarioNames {
		if set>>i&1 == 1 {
			all = append(all, u)
		}
	}
	return all
}

func groupsIn(set uint) (all []GroupID) {
	for i, g := range scenarioGroups {
		if set>>i&1 == 1 {
			all = append(all, g)
		}
	}
	return all
}

var (
	scenarioRung = opened.Add(10 * time.Minute)
	scenarioAt   = opened.Add(time.Minute)
)

func (p scenario) requirement() Requirement {
	r := Requirement{
		Deny: p.deny, Separation: p.separate, EditorMaySign: p.editorSigns, Delegation: p.delegate, ReasonNeeded: p.words,
		ParticipantsMaySign: p.narrow,
	}
	quorum := func(q places, name string) Quorum {
		return Quorum{
			Name: name, Need: q.need, From: From{usersOf(q.users), groupsIn(q.groups)},
			Stage: q.from, Choice: q.choice, Option: q.option,
		}
	}
	for i, q := range p.quorums {
		r.Quorums = append(r.Quorums, quorum(q, string(rune('p'+i))))
	}
	for _, q := range p.vetoes {
		r.Vetoes = append(r.Vetoes, quorum(q, ""))
	}
	if p.escalated >= 0 {
		r.Ladder = []Rung{{
			At: scenarioRung, Kind: Escalate, Quorum: string(rune('p' + p.escalated)),
			Add: From{usersOf(p.addUsers), groupsIn(p.addGroups)},
		}}
	}
	return r
}

func (p scenario) principal(who int, at time.Time) Principal {
	s := p.people[who]
	out := Principal{User: scenarioNames[who], Groups: groupsIn(s.groups)}
	for _, a := range s.away {
		until := at.Add(time.Hour)
		if a.over {
			until = at
		}
		absent := Absent{User: scenarioNames[a.who], Groups: groupsIn(a.groups), Until: until}
		for _, v := range a.via {
			absent.Via = append(absent.Via, scenarioNames[v])
		}
		out.For = append(out.For, absent)
	}
	return out
}

// open opens a batch of the scenario, amended by its editor. It may turn out that
// who was to edit may not.
func (p *scenario) open(t require.TestingT) Batch {
	b, _, err := Open(
		Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", Participants: usersOf(p.took), OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "delete"}, Ask: Ask{Requirement: p.requirement()}}}, nil,
	)
	require.NoError(t, err)
	if p.editor < 0 {
		return b
	}
	o := newOracle(*p)
	o.editor = -1
	may := p.editor == 0 || o.among(o.quorums, o.heard(p.people[p.editor], false))
	next, _, err := b.Apply(Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: theArgs, Ruling: Permit{},
		By: p.principal(p.editor, scenarioAt), At: scenarioAt,
	})
	if !may {
		p.editor = -1
		is(t, err, ErrNotEligible)
		return b
	}
	require.NoError(t, err)
	return next
}

// follow puts the clicks to the batch and to the oracle, and compares.
func (p scenario) follow(t require.TestingT, b Batch, o *oracle, clicks []scenarioClick, at time.Time) Batch {
	for i, c := range clicks {
		d := Decision{
			Call: theCall, By: p.principal(c.who, at), Verdict: Approve,
			Digest: b.Approvals[0].Call.Digest, Reason: c.reason, At: at,
		}
		if c.deny {
			d.Verdict = Deny
		}
		next, _, err := b.Apply(Decide{d})
		want := o.click(c)
		is(t, err, want)
		if (err == nil) != (want == nil) || next.Approvals[0].Status != o.status {
			require.Failf(t, "not as the oracle says", "click %d: %s, %v; want %s, %v\n%+v", i, next.Approvals[0].Status, err, o.status, want, p)
		}
		b = next
	}
	return b
}

// look compares what is shown of an open call.
func (p scenario) look(t require.TestingT, b Batch, o *oracle) {
	if o.status != Pending {
		return
	}
	a := b.Approvals[0]
	for who := range p.people {
		by := p.principal(who, scenarioAt) // who asks leaves out who is back
		by.For = slices.DeleteFunc(by.For, func(a Absent) bool { return a.Until.Equal(scenarioAt) })
		if got, want := b.Helps(a, by), o.helps(who); got != want {
			require.Failf(t, "helps", "%s: %v, want %v\n%+v", scenarioNames[who], got, want, p)
		}
	}
	stage, seats, choices := o.asked(), 0, false
	for i, q := range a.Progress() {
		if q.Asked != (o.quorums[i].from <= stage) {
			require.Failf(t, "asked", "quorum %d\n%+v", i, p)
		}
		seats += len(q.By)
		choices = choices || q.Quorum.Choice != 0
		for _, seat := range q.By {
			j := slices.IndexFunc(o.said, func(d said) bool { return scenarioNames[d.who] == seat.User && !d.deny })
			require.GreaterOrEqual(t, j, 0)
			require.True(t, seat.For == "" || slices.ContainsFunc(o.said[j].away, func(a awayOne) bool { return scenarioNames[a.who] == seat.For }))
		}
	}
	if want := most(o.quorums, o.voices(false)); !choices && seats != want {
		require.Failf(t, "seats", "%d, want %d\n%+v", seats, want, p)
	}
}

// solve puts one scenario through in its order and in another.
func (p scenario) solve(t require.TestingT, r *rand.Rand, reached map[string]int) {
	base := p.open(t)
	o := newOracle(p)
	b := p.follow(t, base, o, p.clicks, scenarioAt)
	if r.IntN(4) == 0 {
		p.look(t, b, o)
	}
	if o.status == Pending && p.escalated >= 0 {
		next, events, err := b.Apply(Climb{At: scenarioRung})
		require.NoError(t, err)
		require.IsType(t, Escalated{}, events[0])
		q := &o.quorums[p.escalated]
		q.users, q.groups = q.users|p.addUsers, q.groups|p.addGroups
		o.judge()
		require.Equal(t, o.status, next.Approvals[0].Status, "%+v", p)
		if o.status != Pending {
			reached["by escalation: "+string(o.status)]++
		}
		b = p.follow(t, next, o, p.more, scenarioRung)
		p.look(t, b, o)
	}
	reached[string(o.status)]++
	for _, d := range o.said {
		if d.deny && o.barred(d.who, false) {
			reached["denied by who took part"]++
		}
		if len(d.away) > 0 {
			reached["signed for someone"]++
		}
		if d.deny && !o.among(o.quorums, d.signatory) {
			reached["vetoed"]++
		}
	}

	// The same clicks in another order; and of the approvals that stand, any
	// order leads to the same.
	shuffle := func(c []scenarioClick) []scenarioClick {
		c = slices.Clone(c)
		r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
		return c
	}
	p.follow(t, base, newOracle(p), shuffle(p.clicks), scenarioAt)
	var yes []scenarioClick
	for _, c := range p.clicks {
		if !c.deny && c.reason == "because" {
			yes = append(yes, c)
		}
	}
	one := p.follow(t, base, newOracle(p), yes, scenarioAt)
	two := p.follow(t, base, newOracle(p), shuffle(yes), scenarioAt)
	require.Equal(t, one.Approvals[0].Status, two.Approvals[0].Status, "%+v", p)
}

// TestOracle compares with the oracle: go test -run TestOracle -oracle=1000000
// for longer.
func TestOracle(t *testing.T) {
	const workers = 4
	var mu sync.Mutex
	reached := map[string]int{}
	t.Run("cases", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(*oracleCases), uint64(w)))
				mine := map[string]int{}
				for range *oracleCases / workers {
					newScenario(r).solve(t, r, mine)
				}
				mu.Lock()
				defer mu.Unlock()
				for k, n := range mine {
					reached[k] += n
				}
			})
		}
	})
	t.Log(reached)
	for _, what := range []string{
		"pending", "approved", "denied", "by escalation: approved", "by escalation: denied", "signed for someone", "vetoed", "denied by who took part",
	} {
		require.GreaterOrEqual(t, reached[what], *oracleCases/2000, what)
	}
}
