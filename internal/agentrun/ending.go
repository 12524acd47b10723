package agentrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// complete ends the run with the model's last word.
func (s *session) complete(ctx context.Context, change func(*Run), response Response) error {
	return s.commit(ctx, []Message{response}, func(r *Run, t *Thread, out *Commit) error {
		change(r)
		r.Status, r.Output = RunCompleted, output(response.text())
		return endRun(ctx, s.claim.store, r, t, out, s.now())
	})
}

// fail ends the run with words for people. Calls without a result are closed,
// so that the next run can continue the history.
func (s *session) fail(ctx context.Context, change func(*Run), words string) error {
	return s.failWith(ctx, change, words, nil)
}

// failWith is fail in the step that carries out these plans; known are the
// results that the step has by now.
func (s *session) failWith(ctx context.Context, change func(*Run), words string, plans []*plan, known ...RequestPart) error {
	return s.failAfter(ctx, change, words, plans, nil, nil, known...)
}

// failAfter is failWith with messages that follow the results, and entries of the
// journal.
func (s *session) failAfter(ctx context.Context, change func(*Run), words string, plans []*plan, last []Message, entries []Entry, known ...RequestPart) error {
	var messages []Message
	if parts := closing(s.history, s.journal, known, s.now()); len(parts) > 0 {
		messages = append(messages, s.request(parts...))
	}
	messages = append(messages, last...)
	s.log(ctx, slog.LevelInfo, "run failed", slog.String("why", words))
	return s.commit(ctx, messages, func(r *Run, t *Thread, out *Commit) error {
		out.Entries = append(out.Entries, entries...)
		if err := s.conclude(ctx, out, plans, words); err != nil {
			return err
		}
		if change != nil {
			change(r)
		}
		r.Status, r.Failure = RunFailed, words
		return endRun(ctx, s.claim.store, r, t, out, s.now())
	})
}

// refuse ends the run because the answers do not fit its history. Nothing was
// executed.
func (s *session) refuse(ctx context.Context, err error) error {
	s.log(ctx, slog.LevelError, "answers refused", slog.Any("err", err))
	return s.fail(ctx, nil, "The answers don't match the calls that were waiting, so nothing was run.")
}

// closing answers every call of the history that has no result, from what is
// known, from the journal, or by saying that there is none.
func closing(history []Message, journal journal, known []RequestPart, now time.Time) []RequestPart {
	answered := map[approvals.ToolCallID]RequestPart{}
	var others []RequestPart
	for _, p := range known {
		if id, ok := answeredBy(p); ok {
			answered[id] = p
			continue
		}
		others = append(others, p)
	}
	var parts []RequestPart
	for _, c := range unanswered(history) {
		part, ok := answered[c.ID]
		entry := journal[c.ID]
		switch {
		case ok:
		case entry.State == EntryFinished && entry.Finish.Part != nil:
			part = entry.Finish.Part
		case entry.State == EntryStarted:
			part = returned(c, OutcomeInterrupted, doubtMessage, now)
		default:
			part = returned(c, OutcomeInterrupted, interruptedMessage, now)
		}
		parts = append(parts, part)
	}
	return append(parts, others...)
}

// What the model reads about calls that have no result.
const (
	interruptedMessage = "The run ended before this call was completed. It has no result."
	doubtMessage       = "The run ended during this call. It is not known whether the call took effect."
)

// endRun adds to out that the run has ended and that its thread belongs to the
// next run of the queue.
func endRun(ctx context.Context, store Store, r *Run, t *Thread, out *Commit, now time.Time) error {
	r.EndedAt, r.Owner, r.LeaseEnds, r.Activity = now, "", time.Time{}, nil
	out.Thread, t.Active = t, ""
	if len(t.Queue) == 0 {
		return nil
	}
	next, err := store.Run(ctx, t.Queue[0])
	if err != nil {
		return err
	}
	t.Active, t.Queue = next.ID, t.Queue[1:]
	next.Status, next.From, next.To = RunQueued, t.Messages, t.Messages
	out.Runs = append(out.Runs, next)
	return nil
}

// parked makes a run one that people must look at.
func parked(r *Run, words string) {
	r.Status, r.Failure = RunParked, words
	r.Owner, r.LeaseEnds, r.Activity = "", time.Time{}, nil
}
