package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// conclude adds to a commit of a resume run what became of the calls that
// people approved: in the same step as the results, so that a card never says
// more than the journal. A batch that cannot be read is left as it is, so that
// the run can end.
func conclude(ctx context.Context, store Store, run Run, out *Commit, at time.Time, of func(approvals.ToolCallID) approvals.Conclusion) error {
	if run.Batch == "" {
		return nil
	}
	b, err := store.Batch(ctx, run.Batch)
	switch {
	case errors.Is(err, approvals.ErrNotFound), errors.Is(err, approvals.ErrUnreadable):
		return nil
	case err != nil:
		return err
	}
	cmd := approvals.Conclude{At: at}
	for _, a := range b.Approvals {
		if a.Status != approvals.Approved {
			continue
		}
		c := of(a.Call.ID)
		if c.Execution.State == "" {
			continue
		}
		c.Call = a.Call.ID
		if c.Execution, err = quotable(ctx, store, b.ID, a, c.Execution); err != nil {
			return err
		}
		cmd.Calls = append(cmd.Calls, c)
	}
	next, events, err := b.Apply(cmd)
	if err != nil {
		return fmt.Errorf("conclude batch %s: %w", b.ID, err)
	}
	if len(events) > 0 {
		out.Moves = &BatchMove{Before: b, Batch: next, Events: events}
	}
	return nil
}

// conclude adds what became of the approved calls to a commit of the session's
// run, if this is the step that takes up the answers.
func (s *session) conclude(ctx context.Context, out *Commit, plans []*plan, words string) error {
	run := s.claim.run // as stored; the caller's commit holds the lock of the claim
	if run.Batch == "" || run.To > run.From {
		return nil // no answers, or they were taken up before
	}
	return conclude(ctx, s.claim.store, run, out, s.now(), func(id approvals.ToolCallID) approvals.Conclusion {
		for _, p := range plans {
			if p.call.ID == id {
				return p.conclusion(words, s.now())
			}
		}
		return approvals.Conclusion{Execution: s.journal.execution(id, words, s.now())}
	})
}

// conclusion is execution, with the rule that refused the call.
func (p *plan) conclusion(words string, now time.Time) approvals.Conclusion {
	c := approvals.Conclusion{Execution: p.execution(words, now)}
	if c.Execution.State == approvals.Refused {
		c.Rule = p.refusedBy
	}
	return c
}

// execution says what became of a call whose plan is carried out; words say why
// the run ends, if it does. Nothing is known of a call that runs elsewhere.
func (p *plan) execution(words string, now time.Time) approvals.Execution {
	switch {
	case p.begun:
		return approvals.Execution{State: approvals.InDoubt, At: now, Words: p.doubt.Said.Text}
	case p.ran && (p.aside == AsideNone || words != ""):
		return executionOf(Finish{Part: p.part, Aside: p.aside, Took: p.took, Unsure: p.unsure}, words, now)
	case p.stale && words != "" && p.part == nil:
		return executionOf(Finish{Aside: AsidePrecondition}, words, now)
	case p.aside == AsideExternal && words == "":
		return approvals.Execution{}
	case p.aside != AsideNone && words == "":
		return approvals.Execution{State: approvals.AskedAgain, At: now, Took: p.took}
	case p.refused:
		return approvals.Execution{State: approvals.Refused, At: now, Words: wordsOf(p.part)}
	case p.part != nil:
		return approvals.Execution{State: approvals.NotRun, At: now, Words: wordsOf(p.part)}
	}
	return approvals.Execution{State: approvals.NotRun, At: now, Words: words}
}

// execution says what the journal has of a call; words say why the run ends.
func (j journal) execution(id approvals.ToolCallID, words string, now time.Time) approvals.Execution {
	switch e := j[id]; e.State {
	case EntryFinished:
		return executionOf(e.Finish, words, e.At)
	case EntryStarted:
		return approvals.Execution{State: approvals.InDoubt, At: e.At}
	case EntryClaimed:
	}
	return approvals.Execution{State: approvals.NotRun, At: now, Words: words}
}

// executionOf says how an execution ended that is known to be over at that time. If the
// call was set aside, the run ends before anything follows from that, and words say why.
func executionOf(f Finish, words string, at time.Time) approvals.Execution {
	switch f.Aside {
	case AsidePrecondition:
		return approvals.Execution{State: approvals.NotRun, At: at, Words: staleMessage}
	case AsideApproval, AsideDoubt:
		return approvals.Execution{State: approvals.NotRun, At: at, Words: words}
	case AsideExternal: // it may have begun there
		return approvals.Execution{State: approvals.InDoubt, At: at, Took: f.Took, Words: words}
	case AsideNone:
	}
	e := approvals.Execution{State: approvals.RanFailed, At: endOf(f.Part, at), Took: f.Took}
	result, ok := f.Part.(ToolReturn)
	switch {
	case f.Unsure:
		e.State, e.Words = approvals.InDoubt, wordsOf(f.Part)
	case ok && result.Outcome == OutcomeSuccess:
		e.State, e.Excerpt = approvals.Ran, wordsOf(f.Part)
	default:
		e.Words = wordsOf(f.Part)
	}
	return e
}

// wordsOf is the text of a result: a string as it is, any other value as JSON.
func wordsOf(p RequestPart) string {
	switch p := p.(type) {
	case ToolReturn:
		var s string
		if json.Unmarshal(p.Content, &s) == nil {
			return s
		}
		return string(p.Content)
	case RetryPrompt:
		return p.Content
	case UserPrompt:
		return p.Content
	}
	return ""
}

// quotable returns the execution with words that a batch may keep: a beginning of them,
// without the values of write-only arguments. If these are not known, nothing is quoted.
func quotable(ctx context.Context, store Store, id approvals.BatchID, a approvals.Approval, e approvals.Execution) (approvals.Execution, error) {
	var hide secrets
	if len(a.WriteOnly) > 0 && a.Call.Size > 0 {
		args, err := store.Args(ctx, id, a.Call.Digest)
		switch {
		case errors.Is(err, approvals.ErrNotFound):
			e.Words, e.Excerpt = "", ""
		case err != nil:
			return e, fmt.Errorf("call %q: %w", string(a.Call.ID), err)
		}
		hide = secretsOf(args, a.WriteOnly)
	}
	e.Words, e.Excerpt = excerpt(hide.scrub(e.Words)), excerpt(hide.scrub(e.Excerpt))
	return e, nil
}

// excerpt is the beginning of a text, for a batch to keep.
func excerpt(s string) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	runes := 0
	for i := range s {
		if runes++; runes > approvals.MaxExecutionWords-1 {
			return s[:i] + "…"
		}
	}
	return s
}
