package approvals_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/countersign/countersign/internal/approvals"
)

// A dice decides what the machine does next. The fuzzer's bytes are one, rapid
// is another.
type dice interface {
	roll(n int) int // 0 to n-1
	more() bool
}

type byteDice struct{ data []byte }

func (d *byteDice) more() bool { return len(d.data) > 0 }

func (d *byteDice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

type rapidDice struct {
	t     *rapid.T
	steps int
}

func (d *rapidDice) more() bool     { d.steps--; return d.steps >= 0 }
func (d *rapidDice) roll(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "roll") }

// The world of the machine is small, so that collisions are common.
var (
	machineUsers  = []UserID{"req", "ann", "bo", "cy", "both", "out", ""}
	machineGroups = []GroupID{"sre", "security", ""}
	machineArgs   = []string{`{"n":1}`, `{"n":1.0}`, `{}`, `{"n":9007199254740993}`, ``, `{"n":1,"n":1}`}
)

// A step is one command and what came of it.
type step struct {
	before, after Batch
	was, is       string // snapshots, of before as it was taken before
	cmd           Command
	events        []Event
	err           error
}

// A machine drives one batch with commands, most of them sensible, and keeps
// what is needed to check them.
type machine struct {
	dice    dice
	now     time.Time
	opening func() Batch
	batch   Batch
	last    string // snapshot of batch
	log     []Command
	events  []Event
	args    map[Digest]json.RawMessage
	old     map[ToolCallID][]Digest // digests that a call once had
	kept    []kept
	blind   bool // takes no snapshots, which cost more than all else
}

type kept struct {
	batch Batch
	snap  string
}

func newMachine(t require.TestingT, d dice) *machine {
	m := &machine{dice: d, now: opened, args: map[Digest]json.RawMessage{}, old: map[ToolCallID][]Digest{}}
	head := Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", OpenedAt: opened}
	for range max(0, d.roll(5)-2) {
		head.Participants = append(head.Participants, machineUsers[d.roll(len(machineUsers))])
	}
	var approvals, calls []Deferral
	for _, id := range []ToolCallID{"a", "b", "c"}[:1+d.roll(3)] {
		args := json.RawMessage(machineArgs[d.roll(4)])
		deferral := Deferral{Call: ToolCall{ID: id, Name: "tool", Args: args}, Severity: severityFor(args), Ask: Ask{Requirement: m.requirement()}}
		if d.roll(8) == 0 {
			deferral.EditedBy = []UserID{machineUsers[d.roll(4)]}
		}
		if d.roll(4) == 0 {
			deferral.GateReason = Quote{Text: "over the limit", Left: 3}
			deferral.Preview = Preview{Status: PreviewMade, Facts: []Fact{{Label: "Size", Value: "1"}}, Precondition: []byte("p"), Again: 1}
		}
		if d.roll(4) == 0 {
			deferral.Doubt = Doubt{Began: opened.Add(-time.Minute), Key: "run-17-q/" + string(id), Unsure: d.roll(2) == 0}
		}
		approvals = append(approvals, deferral)
		m.args[DigestOf(head.ID, ToolCall{ID: id, Name: "tool", Args: args})] = args
	}
	for _, id := range []ToolCallID{"x", "y"}[:d.roll(3)] {
		calls = append(calls, Deferral{Call: ToolCall{ID: id, Name: "external"}})
	}
	m.opening = func() Batch {
		b, events, err := Open(head, approvals, calls)
		require.NoError(t, err)
		require.Len(t, events, 1)
		return b
	}
	m.batch = m.opening()
	m.last = snapshot(m.batch)
	return m
}

// severityFor varies with the arguments, so that it costs no roll of the dice.
func severityFor(args json.RawMessage) Severity {
	return []Severity{SeverityUnset, SeverityLow, SeverityHigh, SeverityIrreversible}[len(args)%4]
}

func (m *machine) requirement() Requirement {
	r := Requirement{Deny: m.dice.roll(4), Separation: m.dice.roll(2) == 0, EditorMaySign: m.dice.roll(4) == 0}
	for i := range []int{1, 1, 2, 1, 2, 3, 0}[m.dice.roll(7)] {
		q := Quorum{Name: string(rune('p' + i)), Need: []int{1, 1, 2, 1, 2, 1, 3, 0}[m.dice.roll(8)], From: m.from()}
		switch m.dice.roll(6) {
		case 0:
			q.Stage = 1 + m.dice.roll(2)
		case 1, 2:
			q.Choice, q.Option = 1, m.dice.roll(2)
		}
		r.Quorums = append(r.Quorums, q)
	}
	if m.dice.roll(3) == 0 {
		r.Deadline = opened.Add(time.Duration(1+m.dice.roll(30)) * time.Minute)
	}
	if m.dice.roll(4) == 0 {
		r.Vetoes = append(r.Vetoes, Quorum{Name: "p", Need: 1 + m.dice.roll(2), From: m.from()})
	}
	flags := m.dice.roll(32)
	r.Delegation, r.ReasonNeeded, r.ParticipantsMaySign = flags&3 != 0, flags>>2&3 == 0, flags>>4 == 0
	at := opened
	for range max(0, m.dice.roll(6)-2) {
		at = at.Add(time.Duration(m.dice.roll(10)) * time.Minute)
		r.Ladder = append(r.Ladder, m.rung(r, at))
	}
	return r
}

func (m *machine) rung(r Requirement, at time.Time) Rung {
	rung := Rung{At: at, Kind: Escalate}
	what := m.dice.roll(6)
	if what == 0 || what > 2 && len(r.Quorums) == 0 {
		return Rung{At: at, Kind: Remind}
	}
	if what < 4 {
		rung.Channel = []string{"C1", "C2"}[m.dice.roll(2)]
	}
	if what > 2 {
		rung.Quorum = r.Quorums[m.dice.roll(len(r.Quorums))].Name
		rung.Add = From{Users: []UserID{machineUsers[m.dice.roll(7)], "bo"}, Groups: []GroupID{machineGroups[m.dice.roll(3)]}}
	}
	return rung
}

func (m *machine) from() From {
	var from From
	people, groups := m.dice.roll(1<<len(machineUsers)), m.dice.roll(1<<len(machineGroups))
	for i, u := range machineUsers {
		if people>>i&1 == 1 {
			from.Users = append(from.Users, u)
		}
	}
	from.Groups = m.groups(groups)
	return from
}

func (m *machine) groups(set int) []GroupID {
	var groups []GroupID
	for i, g := range machineGroups {
		if set>>i&1 == 1 {
			groups = append(groups, g)
		}
	}
	return groups
}

// principal is someone, who may approve for others too: for some of them no more.
func (m *machine) principal() Principal {
	p := Principal{User: []UserID{"req", "ann", "ann", "bo", "bo", "cy", "cy", "both", "both", "out", ""}[m.dice.roll(11)]}
	p.Groups = m.groups(m.dice.roll(1 << len(machineGroups)))
	p.For = m.away()
	return p
}

func (m *machine) away() []Absent {
	var away []Absent
	for range max(0, m.dice.roll(5)-2) {
		a := Absent{
			User: machineUsers[m.dice.roll(7)], Groups: m.groups(m.dice.roll(8)),
			Until: m.now.Add(time.Duration(m.dice.roll(4)) * time.Minute),
		}
		for range max(0, m.dice.roll(6)-3) {
			a.Via = append(a.Via, machineUsers[m.dice.roll(6)])
		}
		away = append(away, a)
	}
	return away
}

func (m *machine) call() ToolCallID {
	return []ToolCallID{"a", "a", "a", "b", "b", "c", "x", "y", "?"}[m.dice.roll(9)]
}

// digest is mostly the current one of the call.
func (m *machine) digest(id ToolCallID) Digest {
	switch old := m.old[id]; m.dice.roll(8) {
	case 0:
		return Digest{}
	case 1:
		if len(old) > 0 {
			return old[m.dice.roll(len(old))]
		}
	}
	for _, a := range m.batch.Approvals {
		if a.Call.ID == id {
			return a.Call.Digest
		}
	}
	return Digest{1}
}

func (m *machine) command() Command {
	m.now = m.now.Add(time.Duration(m.dice.roll(4)-1) * time.Minute)
	id := m.call()
	if m.batch.Settled() && m.dice.roll(4) > 0 {
		return m.conclude()
	}
	if m.dice.roll(12) == 0 {
		return Report{Call: id, Execution: m.execution(), At: m.now}
	}
	switch m.dice.roll(12) {
	case 0:
		return Expire{At: m.now}
	case 1:
		if m.dice.roll(16) > 0 {
			return Expire{At: m.now}
		}
		return Withdraw{By: m.principal().User, Reason: "enough", At: m.now}
	case 2, 3:
		results := []CallResult{nil, ToolReturn{ReturnValue: json.RawMessage(`1`)}, ToolFailed{Message: "f"}, ToolDenied{}}
		return Fulfill{Call: id, Result: results[m.dice.roll(4)], By: m.principal().User, At: m.now}
	case 4, 5:
		args := json.RawMessage(machineArgs[m.dice.roll(len(machineArgs))])
		m.args[DigestOf(m.batch.ID, ToolCall{ID: id, Name: "tool", Args: args})] = args
		rulings := []Ruling{Permit{}, Permit{}, nil, Refuse{Reason: "no"}, Ask{Requirement: m.requirement(), Severity: severityFor(args)}}
		return Amend{
			Call: id, From: m.digest(id), Args: args, Ruling: rulings[m.dice.roll(5)], By: m.principal(), At: m.now,
		}
	case 7:
		return Climb{At: m.now}
	case 6:
		return Retract{Call: id, By: m.principal(), At: m.now}
	}
	if m.dice.roll(2) == 0 { // one who may, on one call: so that quorums fill
		a := m.batch.Approvals[0]
		by := Principal{User: machineUsers[m.dice.roll(5)], Groups: machineGroups[:m.dice.roll(3)], For: m.away()}
		return Decide{Decision{Call: a.Call.ID, By: by, Verdict: a.Yes(), Digest: a.Call.Digest, Reason: "r", At: m.now}}
	}
	v := []Verdict{Approve, Approve, Approve, Deny, ""}[m.dice.roll(5)]
	if a, ok := m.batch.Approval(id); (ok && a.InDoubt()) != (m.dice.roll(6) == 0) { // mostly what the call takes
		v = []Verdict{RunAgain, RunAgain, RunAgain, Happened, GiveUp}[m.dice.roll(5)]
	}
	return Decide{Decision{Call: id, By: m.principal(), Verdict: v, Digest: m.digest(id), Reason: "rr "[m.dice.roll(3):], At: m.now}}
}

// conclude is mostly a report that can be recorded.
func (m *machine) conclude() Command {
	cmd := Conclude{At: m.now}
	for range 1 + m.dice.roll(2) {
		e := m.execution()
		id := m.batch.Approvals[m.dice.roll(len(m.batch.Approvals))].Call.ID
		if m.dice.roll(4) == 0 {
			id = m.call()
		}
		cmd.Calls = append(cmd.Calls, Conclusion{Call: id, Execution: e})
	}
	return cmd
}

func (m *machine) execution() Execution {
	states := []ExecutionState{InDoubt, RanFailed, InDoubt, Ran, NotRun, Refused, AskedAgain, "done"}
	e := Execution{State: states[m.dice.roll(len(states))], Took: time.Duration(m.dice.roll(9)-1) * time.Second}
	if m.dice.roll(16) == 0 {
		e.Words = strings.Repeat("é", MaxExecutionWords+m.dice.roll(2))
	}
	return e
}

// step applies the next command.
func (m *machine) step() step {
	s := step{before: m.batch, was: m.last}
	for _, a := range m.batch.Approvals {
		m.old[a.Call.ID] = append(m.old[a.Call.ID], a.Call.Digest)
	}
	s.cmd = m.command()
	s.after, s.events, s.err = s.before.Apply(s.cmd)
	if !m.blind {
		s.is = snapshot(s.after)
		m.kept = append(m.kept, kept{s.before, s.was})
	}
	m.log = append(m.log, s.cmd)
	m.events = append(m.events, s.events...)
	m.batch, m.last = s.after, s.is
	return s
}

// play runs the machine to its end, and check, unless it is nil, after every command.
func play(t require.TestingT, d dice, check func(*machine, step)) *machine {
	m := newMachine(t, d)
	m.blind = check == nil
	for range 60 {
		if !d.more() {
			break
		}
		if s := m.step(); check != nil {
			check(m, s)
		}
	}
	return m
}

// checked plays the machine and checks every invariant after every command.
func checked(t require.TestingT, d dice) {
	m := play(t, d, func(m *machine, s step) {
		for _, invariant := range invariants {
			invariant(t, m, s)
		}
	})
	invariant1HistoryUnchanged(t, m)
	invariant9SameCommandsSameBatch(t, m)
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checked(t, &rapidDice{t, rapid.IntRange(1, 40).Draw(t, "steps")})
	})
}

// seeds are byte strings long enough to get somewhere.
func seeds(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for range n {
		data := make([]byte, 40+r.IntN(400))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		all = append(all, data)
	}
	return all
}

func FuzzApply(f *testing.F) {
	for _, data := range seeds(60) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checked(t, &byteDice{data}) })
}

// The machine is worth nothing if it never gets anywhere: games are played until each
// of these was reached five times.
func TestTheMachineReachesEverything(t *testing.T) {
	all := []string{
		"approved", "denied", "expired", "withdrawn", "resolved", "amended", "cleared", "retracted", "fulfilled",
		"approved as amended", "reminded", "escalated", "for someone", "vetoed", "an alternative", "asked later", "no reason",
		"a participant's approve", "a participant's deny",
		"confirmed", "reported", "said: run_again", "said: happened", "said: give_up", "approved in doubt",
		"concluded: ran", "concluded: failed", "concluded: in_doubt", "concluded: not_run",
	}
	seen := map[string]int{}
	rare := func(what string) bool { return seen[what] < 5 }
	for _, data := range seeds(4000) {
		if !slices.ContainsFunc(all, rare) {
			break
		}
		m := play(t, &byteDice{data}, nil)
		for _, e := range m.events {
			switch e := e.(type) {
			case Settled:
				seen[string(e.Status)]++
			case Resolved:
				seen["resolved"]++
			case Amended:
				seen["amended"]++
				if len(e.Cleared) > 0 {
					seen["cleared"]++
				}
			case Retracted:
				seen["retracted"]++
			case Fulfilled:
				seen["fulfilled"]++
			case Reminded:
				seen["reminded"]++
			case Escalated:
				seen["escalated"]++
			case Concluded:
				seen["concluded: "+string(e.State)]++
			case Reported:
				seen["reported"]++
			case Decided:
				seen["said: "+string(e.Verdict)]++
			case Opened:
			}
		}
		for _, s := range m.log {
			if d, ok := s.(Decide); ok && d.Verdict == Approve {
				if _, _, err := m.opening().Apply(s); errors.Is(err, ErrReasonNeeded) {
					seen["no reason"]++
				}
			}
		}
		for _, a := range m.batch.Approvals {
			if a.Status == Approved && a.InDoubt() {
				seen["approved in doubt"]++
			}
			if a.Status == Approved && a.Call.Digest != a.Proposed {
				seen["approved as amended"]++
			}
			for _, d := range a.Decisions {
				if len(d.By.For) > 0 {
					seen["for someone"]++
				}
				if a.Requirement.Separation && slices.Contains(m.batch.Participants, d.By.User) {
					seen["a participant's "+string(d.Verdict)]++
				}
				if !eligible(a.Requirement.Quorums, d.By) {
					seen["vetoed"]++
				}
			}
			for _, p := range a.Progress() {
				if len(p.By) > 0 && p.Quorum.Choice > 0 {
					seen["an alternative"]++
				}
				if !p.Asked {
					seen["asked later"]++
				}
			}
		}
	}
	t.Log(seen)
	for _, what := range all {
		require.False(t, rare(what), what)
	}
}
