package delivery

import (
	"context"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
)

// stuck is a call that nobody is left to approve, because everyone who could
// asked for it or wrote to the agent before it made the call.
type stuck struct {
	call int
	rung approvals.Rung // the first by which enough people may approve; zero: there is none
	anew bool           // whether there would be enough if the requester asked in a new thread
}

// addStuck adds a notice for the requester if nobody is left to approve the call. If
// that is not known, because a group cannot be looked up, it adds nothing.
func (n *Notices) addStuck(ctx context.Context, all news, b approvals.Batch, i int) error {
	a := b.Approvals[i]
	if !a.OpenAt(n.Now()) || !b.BarsParticipants(a.Requirement) {
		return nil
	}
	enough, known, err := n.enough(ctx, b, a)
	if err != nil || enough || !known {
		return err
	}
	free := a
	free.Requirement.Separation = false
	if enough, known, err = n.enough(ctx, b, free); err != nil || !enough || !known {
		return err // nobody could approve it without the separation either
	}
	s := stuck{call: i}
	for next, rung, ok := a.AfterRung(); ok; next, rung, ok = next.AfterRung() {
		if enough, known, err = n.enough(ctx, b, next); err != nil {
			return err
		}
		if enough && known {
			s.rung = rung
			break
		}
	}
	alone, fresh := b, a
	alone.Participants, fresh.Amendments, fresh.EditedBy = nil, nil, nil
	if s.anew, _, err = n.enough(ctx, alone, fresh); err != nil {
		return err
	}
	for _, person := range askers(b) {
		l := all.notices[person]
		l.stuck = append(l.stuck, s)
		all.notices[person] = l
	}
	return nil
}

// few reports whether too few people can approve the call, also after its escalations, and
// whether there would be enough if those who denied it took that back. A call in doubt does
// not need all of them.
func (n *Notices) few(ctx context.Context, b approvals.Batch, a approvals.Approval) (few, denied bool, err error) {
	if a.InDoubt() {
		return false, false, nil
	}
	for next, _, ok := a.AfterRung(); ok; next, _, ok = next.AfterRung() {
		a = next
	}
	enough, known, err := n.enough(ctx, b, a)
	if err != nil || enough || !known || len(a.Deciders(a.No())) == 0 {
		return known && !enough, false, err
	}
	a.Decisions = slices.DeleteFunc(slices.Clone(a.Decisions), func(d approvals.Decision) bool { return d.Verdict == a.No() })
	denied, _, err = n.enough(ctx, b, a)
	return true, denied, err
}

// enough reports whether the call would be approved if everybody whom it asks
// approved it. known says whether all its groups could be looked up.
func (n *Notices) enough(ctx context.Context, b approvals.Batch, a approvals.Approval) (enough, known bool, err error) {
	one := b
	one.Approvals = []approvals.Approval{a}
	what := directory.SoughtFor(one)
	in, err := n.rosters(ctx, what.Groups)
	if err != nil {
		return false, false, err
	}
	asked := recipients{Notices: n, batch: b, call: a, what: what, in: in}
	users := in.Members(fromOf(a))
	var all []approvals.Principal
	for _, user := range users {
		if len(users) <= maxRecipients { // of more people, enough are assumed to count
			counts, err := asked.counts(ctx, what, user)
			if err != nil {
				return false, false, err
			}
			if !counts {
				continue
			}
		}
		all = append(all, asked.principal(user))
		if len(users) <= maxRecipients && b.Suffices(a, all) {
			return true, true, nil // the others need not be looked up
		}
	}
	return b.Suffices(a, all), len(in) == len(what.Groups), nil
}

// stuckWords tell the requester which calls nobody is left to approve, and what they
// can do.
func (n *Notices) stuckWords(ctx context.Context, reader directory.Reader, b approvals.Batch, all []stuck, person approvals.UserID) (text string, paras []blockkit.Para) {
	head := "Nobody can approve " + blockkit.Count(len(all), "call") + sayYouAskedFor
	others := blockkit.ListSpans(blockkit.PersonSpans(b.Participants), blockkit.NamesShown)
	spans := append([]blockkit.Span{blockkit.Styled(head, blockkit.Bold), blockkit.Say(": ")}, others...)
	where := sayWroteToo
	wrote := sayWrote
	if b.Executor != "" {
		wrote, where = sayMayHaveAsked, sayMayHaveAskedToo
	}
	paras = []blockkit.Para{blockkit.Line(append(spans, blockkit.Say(wrote), blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold), blockkit.Say(where))...)}
	paras = append(paras, callLines(all, func(s stuck) []blockkit.Span { return n.stuckCall(ctx, reader, b, s, person) })...)
	if b.Executor != "" { // there is no thread in which to ask again
		return head + ".", paras
	}
	if slices.ContainsFunc(all, func(s stuck) bool { return s.anew }) {
		paras = append(paras, blockkit.Line(blockkit.Say(sayNewThread)))
	}
	if slices.ContainsFunc(all, func(s stuck) bool { return !s.anew }) {
		paras = append(paras, blockkit.Line(blockkit.Say(sayOtherMustAsk)))
	}
	return head + ".", paras
}

// stuckCall is the line of one call: what happens to it by itself, and when.
func (n *Notices) stuckCall(ctx context.Context, reader directory.Reader, b approvals.Batch, s stuck, person approvals.UserID) []blockkit.Span {
	a := b.Approvals[s.call]
	spans := does(ctx, reader, b, a)
	d := a.Requirement.Deadline
	switch {
	case !s.rung.At.IsZero():
		spans = append(spans, blockkit.Say(sayMoreFrom), blockkit.DateSpan(s.rung.At), blockkit.Say(" on: "))
		var who []blockkit.Span
		for _, g := range s.rung.Add.Groups {
			who = append(who, blockkit.GroupSpan(g))
		}
		spans = append(spans, blockkit.ListSpans(append(who, blockkit.PersonSpans(s.rung.Add.Users)...), blockkit.NamesShown)...)
	case !d.IsZero():
		spans = append(spans, blockkit.Say(": it waits until "), blockkit.DateSpan(d), blockkit.Say(", then it expires"))
	}
	return append(spans, n.link(ctx, b, s.call, person)...)
}
