package agentrun

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

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
	doubtMessage       = "The run ended while this call was going on. It is not known whether it took effect."
)

// endRun lets go of a run that has its outcome, and gives its thread to the next
// in the queue, all in out.
func endRun(ctx context.Context, store Store, r *Run, t *Thread, out *Commit, now time.Time) error {
	r.EndedAt, r.Owner, r.LeaseEnds, r.Activity = now, "", time.Time{}, nil
	out.Thread, t.Active = t, ""
	if len(t.Queue) == 0 {
		return nil
	}
	next, err := store.Run(ctx, t.Queue[0])
	if err != nil {
		return fmt.Errorf("load run %s: %w", t.Queue[0], err)
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
