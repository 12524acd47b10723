package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/strictyaml"
)

// When a replay ends with 1.
const (
	failOnLenient = "lenient" // a call is treated more leniently than before, or may be
	failOnAny     = "any"     // anything is different
	failOnNothing = "nothing"
)

// mostShown is how many differences are written for people; all are counted,
// and --json writes all.
const mostShown = 50

// policyReplay judges recorded calls by two policies.
func policyReplay(ctx context.Context, in *call) error {
	p := newPolicyCommand(in)
	p.takesTools()
	p.takesJSON()
	before := p.flags.String("old", "", "The current policy, a file or a directory. Without this `PATH`, the one that the configuration names.")
	after := p.flags.String("new", "", "The new policy, a file or a directory at this `PATH`.")
	fail := p.flags.String("fail-on", failOnLenient, "Exit with 1 `WHEN` the new policy is, or may be, more lenient with a call (lenient), when the policies differ on a call (any), or never (nothing). The first two also exit with 1 if there are no calls.")
	if err := p.parse(); err != nil {
		return err
	}
	if !slices.Contains([]string{failOnLenient, failOnAny, failOnNothing}, *fail) {
		return in.wrong("--fail-on is %q; it must be lenient, any or nothing", *fail)
	}
	o, configured, err := p.against(ctx)
	if err != nil {
		return err
	}
	if *before == "" {
		*before = configured
	}
	if *before == "" {
		return in.wrong("--old PATH is missing, or --config FILE with the current policy")
	}
	was, err1 := policy.Load(*before, o)
	will, err2 := policy.Load(*after, o)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	recorded, err := openCalls(p.args[0])
	if err != nil {
		return err
	}
	defer recorded.Close() //nolint:errcheck // nothing was written
	r := &replay{p: p, out: bufio.NewWriter(p.stdout)}
	began := p.now()
	sum, err := policy.Replay(ctx, was, will, bufio.NewReaderSize(recorded, 1<<20), r.see)
	if err == nil {
		err = r.err
	}
	if err != nil {
		return errors.Join(err, r.out.Flush())
	}
	r.summary(sum, was, will, p.now().Sub(began))
	if err := r.out.Flush(); err != nil {
		return err
	}
	switch {
	case *fail != failOnNothing && sum.Calls == 0:
		return errors.New("there are no calls to compare")
	case *fail == failOnLenient && r.lenient > 0:
		return fmt.Errorf("the new policy is, or may be, more lenient with %s", counted(r.lenient, "call", "calls"))
	case *fail == failOnAny && sum.Different > 0:
		return fmt.Errorf("the policies rule differently on %s", counted(sum.Different, "call", "calls"))
	}
	return nil
}

func openCalls(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := strictyaml.OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the calls: %w", err)
	}
	return f, nil
}

// replay writes what a replay finds.
type replay struct {
	p       *policyCommand
	out     *bufio.Writer
	shown   int
	lenient int
	err     error
}

// see is called with every difference. It never writes arguments.
func (r *replay) see(d policy.Difference) {
	word := ""
	if moreLenient(d.Old, d.New) || d.OldCheck != "" && d.NewCheck != d.OldCheck && rulingWord(d.New) != "deny" {
		r.lenient++
		word = "more lenient: "
	}
	if r.p.json {
		if r.err == nil {
			r.err = r.p.sayJSON(map[string]any{
				"line": d.Line, "call": d.Call.Call, "tool": d.Call.Tool, "agent": d.Call.Agent, "requester": d.Call.Requester,
				"old": withCheck(rulingJSON(d.Old), d.OldCheck), "new": withCheck(rulingJSON(d.New), d.NewCheck), "changes": d.Changes, "lenient": word != "",
			})
		}
		return
	}
	if r.shown++; r.shown > mostShown {
		return
	}
	r.line("line %d  %s%s, agent %s, asked by %s: %s -> %s\n", d.Line, word, approvals.VisibleLine(d.Call.Tool), approvals.VisibleLine(orNobody(d.Call.Agent)),
		approvals.VisibleLine(orNobody(string(d.Call.Requester))), rulingWord(d.Old), rulingWord(d.New))
	for _, c := range d.Changes {
		r.line("    %s\n", c)
	}
}

// line writes for people; what fails is said by the last flush.
func (r *replay) line(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }

func orNobody(s string) string {
	if s == "" {
		return "(nobody)"
	}
	return s
}

func (r *replay) summary(s policy.Summary, was, will *policy.Policy, took time.Duration) {
	rate := float64(s.Calls) / max(took.Seconds(), 1e-9)
	if r.p.json {
		r.err = r.p.sayJSON(map[string]any{
			"calls": s.Calls, "different": s.Different, "lenient": r.lenient, "moved": s.Moved,
			"old": was.Version(), "new": will.Version(), "seconds": took.Seconds(),
		})
		return
	}
	if r.shown > mostShown {
		r.line("... and %d more; --json lists all of them\n", r.shown-mostShown)
	}
	if r.shown > 0 {
		r.line("\n")
	}
	r.line("%s, %s compared with %s: %s differently; the new policy is, or may be, more lenient with %d\n",
		counted(s.Calls, "call", "calls"), was.Version(), will.Version(), counted(s.Different, "is ruled", "are ruled"), r.lenient)
	var moves []string
	for _, from := range []policy.Kind{policy.KindDeny, policy.KindAsk, policy.KindAllow} {
		for _, to := range []policy.Kind{policy.KindDeny, policy.KindAsk, policy.KindAllow} {
			if n := s.Moved[from][to]; n > 0 {
				moves = append(moves, fmt.Sprintf("  %s -> %s: %d", from, to, n))
			}
		}
	}
	if len(moves) > 0 {
		r.line("%s\n", strings.Join(moves, "\n"))
	}
	r.line("%.2f s, %.0f calls a second\n", took.Seconds(), rate)
}

// moreLenient reports whether the new ruling lets a call pass more easily, or may do so.
// A new requirement does not if it needs at least what the old one did from the same
// people.
func moreLenient(before, after approvals.Ruling) bool {
	rank := func(r approvals.Ruling) int {
		return slices.Index([]string{"deny", "ask", "allow"}, rulingWord(r))
	}
	if rank(before) != rank(after) {
		return rank(after) > rank(before)
	}
	was, asked := before.(approvals.Ask)
	will, asks := after.(approvals.Ask)
	return asked && asks && !asStrict(was.Requirement, will.Requirement)
}

// asStrict reports whether all decisions that meet b also meet a. Where that is not
// obvious, it reports false.
func asStrict(a, b approvals.Requirement) bool {
	switch {
	case a.Separation && !b.Separation, b.Separation && !a.ParticipantsMaySign && b.ParticipantsMaySign, !a.EditorMaySign && b.EditorMaySign, !a.Delegation && b.Delegation, a.ReasonNeeded && !b.ReasonNeeded:
		return false
	case max(1, b.Deny) > max(1, a.Deny), b.Deadline.After(a.Deadline),
		cmp.Or(b.ClaimWithin, approvals.DefaultClaimWithin) > cmp.Or(a.ClaimWithin, approvals.DefaultClaimWithin):
		return false
	}
	// widensNoMore reports whether no escalation of b adds people to by who are not added to
	// old by one of a, or adds them sooner.
	widensNoMore := func(old, by approvals.Quorum) bool {
		return !slices.ContainsFunc(b.Ladder, func(r approvals.Rung) bool {
			return r.Kind == approvals.Escalate && r.Quorum == by.Name && !slices.ContainsFunc(a.Ladder, func(o approvals.Rung) bool {
				return o.Kind == r.Kind && o.Quorum == old.Name && within(r.Add, o.Add) && !o.At.After(r.At)
			})
		})
	}
	covered := func(old, by []approvals.Quorum) bool {
		used := make([]bool, len(by))
		for _, q := range old {
			found := false
			for i, o := range by {
				if !used[i] && o.Choice == q.Choice && o.Option == q.Option && o.Need >= q.Need && within(o.From, q.From) && widensNoMore(q, o) {
					used[i], found = true, true
					break
				}
			}
			if !found {
				return false
			}
		}
		return true
	}
	options := func(qs []approvals.Quorum) int {
		return len(slices.DeleteFunc(slices.Clone(qs), func(q approvals.Quorum) bool { return q.Choice == 0 }))
	}
	kept := func(veto approvals.Quorum) bool { // as many people can deny with as few denials
		return slices.ContainsFunc(b.Vetoes, func(o approvals.Quorum) bool { return o.Need <= veto.Need && within(veto.From, o.From) })
	}
	return covered(a.Quorums, b.Quorums) && options(b.Quorums) <= options(a.Quorums) &&
		!slices.ContainsFunc(a.Vetoes, func(veto approvals.Quorum) bool { return !kept(veto) })
}

// within reports whether everyone of a is in b, by name.
func within(a, b approvals.From) bool {
	for _, u := range a.Users {
		if !slices.Contains(b.Users, u) {
			return false
		}
	}
	for _, g := range a.Groups {
		if !slices.Contains(b.Groups, g) {
			return false
		}
	}
	return true
}
