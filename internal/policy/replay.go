package policy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// A Difference is a recorded call that two policies rule differently.
type Difference struct {
	Line     int // in what was read, from 1
	Call     Recorded
	Old, New approvals.Ruling

	// OldCheck and NewCheck are the checks that would be asked before the rulings are
	// followed. They are not asked here.
	OldCheck, NewCheck string
	Changes            []string // in words and with the names of the files: what it was, what it is
}

// Summary counts what a replay saw.
type Summary struct {
	Calls     int
	Different int
	// By kind of ruling, old then new: Moved["ask"]["allow"] counts the calls
	// that were asked about and now run at once.
	Moved map[Kind]map[Kind]int
}

// maxLine is how long a recorded call may be.
const maxLine = 16 << 20

// Replay judges recorded calls, one [Recorded] as JSON a line, by two policies
// and emits every call that they rule differently: the kind, who approves, how
// many, until when, and the words; not which version of which rule said it.
// Shadow rules are not reported. A line that is not a recorded call is an
// error that names the line and ends the replay; an empty line is none.
func Replay(ctx context.Context, before, after *Policy, r io.Reader, emit func(Difference)) (Summary, error) {
	sum := Summary{Moved: map[Kind]map[Kind]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	line := 0
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		var call Recorded
		if err := call.decode(lines.Bytes()); err != nil {
			return sum, fmt.Errorf("line %d: %w", line, err)
		}
		was, wasChecked := before.again(ctx, call)
		is, isChecked := after.again(ctx, call)
		sum.Calls++
		from, to := kindOf(was), kindOf(is)
		if sum.Moved[from] == nil {
			sum.Moved[from] = map[Kind]int{}
		}
		sum.Moved[from][to]++
		if same(was, is) && wasChecked == isChecked {
			continue
		}
		sum.Different++
		if emit != nil {
			call.Args = slices.Clone(call.Args)
			emit(Difference{
				Line: line, Call: call, Old: was, New: is, OldCheck: wasChecked, NewCheck: isChecked,
				Changes: changes(append(before.names.ruling(was, byOf(was)), checkLine(wasChecked)...), append(after.names.ruling(is, byOf(is)), checkLine(isChecked)...)),
			})
		}
	}
	if err := lines.Err(); err != nil {
		return sum, fmt.Errorf("line %d: %w", line+1, err)
	}
	return sum, nil
}

var errNoCall = errors.New("is not a recorded call; it needs a tool and a time")

func (r *Recorded) decode(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return errors.New("is not a recorded call")
	}
	if r.Tool == "" || r.At.IsZero() || d.More() {
		return errNoCall
	}
	return nil
}

// again is the ruling on a recorded call, and the check that would be asked.
func (p *Policy) again(ctx context.Context, call Recorded) (r approvals.Ruling, check string) {
	f, pl := p.recalled(ctx, call), p.plan(call.Agent, call.Tool)
	f.planned(pl)
	v := p.judge(f, pl, nil)
	return v.ruling, v.check()
}

// recalled is the call as it was recorded. The requester is in the groups that
// were recorded; if none were, the directory knows.
func (p *Policy) recalled(ctx context.Context, call Recorded) *facts {
	f := p.facts(ctx, call.Proposal())
	f.ledger = nil // it knows of today, and not of that day
	if call.Today != nil {
		f.today = call.Today.counts()
	}
	if call.Groups != nil {
		f.directory = static(*call.Groups)
	}
	return f
}

// same compares rulings, but for the version of the policy, and for which rule
// permits or refuses where that comes to the same.
func same(a, b approvals.Ruling) bool {
	x, ask := a.(approvals.Ask)
	y, too := b.(approvals.Ask)
	if !ask || !too {
		no, refused := a.(approvals.Refuse)
		and, again := b.(approvals.Refuse)
		return ask == too && refused == again && no.Reason == and.Reason
	}
	return x.Why == y.Why && x.Summary == y.Summary && x.Severity == y.Severity && short(x.Rule) == short(y.Rule) && sameRequirement(x.Requirement, y.Requirement)
}

func sameRequirement(a, b approvals.Requirement) bool {
	return slices.EqualFunc(a.Quorums, b.Quorums, sameQuorum) && slices.EqualFunc(a.Vetoes, b.Vetoes, sameQuorum) &&
		slices.EqualFunc(a.Ladder, b.Ladder, sameRung) && a.Deny == b.Deny && a.Separation == b.Separation && a.ParticipantsMaySign == b.ParticipantsMaySign &&
		a.Deadline.Equal(b.Deadline) && a.EditorMaySign == b.EditorMaySign && a.Delegation == b.Delegation && a.ReasonNeeded == b.ReasonNeeded && a.ClaimWithin == b.ClaimWithin && a.Direct == b.Direct
}

func sameQuorum(a, b approvals.Quorum) bool {
	return a.Name == b.Name && a.Need == b.Need && a.Stage == b.Stage && a.Choice == b.Choice && a.Option == b.Option && sameFrom(a.From, b.From)
}

func sameFrom(a, b approvals.From) bool {
	return slices.Equal(a.Users, b.Users) && slices.Equal(a.Groups, b.Groups)
}

func sameRung(a, b approvals.Rung) bool {
	return a.At.Equal(b.At) && a.Kind == b.Kind && a.Quorum == b.Quorum && a.Channel == b.Channel && sameFrom(a.Add, b.Add)
}

// changes writes a difference: one line for everything that is gone (-) or new (+).
func changes(old, now []string) []string {
	var out []string
	for _, l := range old {
		if !slices.Contains(now, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range now {
		if !slices.Contains(old, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

func byOf(r approvals.Ruling) string {
	if a, ok := r.(approvals.Ask); ok {
		return short(a.Rule)
	}
	return string(kindOf(r))
}
