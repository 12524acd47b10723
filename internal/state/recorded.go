package state

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Calls walks through the calls of every thread in which people were asked
// something at that time or later: each thread once, with the calls that were
// made since then, in order. Threads in which nobody was ever asked are in no
// index and are left out, and so are calls with arguments that no policy was
// asked about, see [approvals.CheckArgs].
//
// A call comes with what was known when the model made it: the arguments as the
// model wrote them, who had asked, and what the request had led to. The history
// does not keep why the tool itself asked for approval, so Gate is always
// [approvals.GateNone].
//
// A thread that cannot be read is an error in its place, and the walk continues
// unless the loop ends it.
func (s *Store) Calls(ctx context.Context, since time.Time) iter.Seq2[approvals.Proposal, error] {
	r := recordReader{s}
	return func(yield func(approvals.Proposal, error) bool) {
		seen := make(map[agentrun.ThreadID]bool)
		for run, err := range r.deferrals(ctx, since) {
			var calls []approvals.Proposal
			if err == nil && !seen[run.Thread] {
				seen[run.Thread] = true
				calls, err = r.recorded(ctx, run)
			}
			if err != nil && !yield(approvals.Proposal{}, err) {
				return
			}
			for _, c := range calls {
				if !c.At.Before(since) && !yield(c, nil) {
					return
				}
			}
		}
	}
}

// A recordReader finds the calls that were recorded in the documents of a store.
type recordReader struct{ store *Store }

// deferrals walks through the runs that opened a batch and are still there.
func (r recordReader) deferrals(ctx context.Context, since time.Time) iter.Seq2[agentrun.Run, error] {
	return func(yield func(agentrun.Run, error) bool) {
		feed := NewFeed(r.store)
		for n := range approvals.Partitions {
			for e, err := range feed.Events(ctx, n) {
				opened, ok := e.Event.(approvals.Opened)
				if err == nil && (!ok || opened.At.Before(since)) {
					continue
				}
				var run agentrun.Run
				if err == nil {
					run, err = r.store.Run(ctx, opened.Run)
				}
				if !errors.Is(err, approvals.ErrNotFound) && !yield(run, err) {
					return
				}
			}
		}
	}
}

// A history is a thread with everything that its messages refer to.
type history struct {
	messages []agentrun.Message
	runs     map[approvals.RunID]agentrun.Run
	lapsed   map[approvals.ToolCallID]bool
}

// recorded returns the calls of the thread of a run: none if it was removed meanwhile.
func (r recordReader) recorded(ctx context.Context, of agentrun.Run) ([]approvals.Proposal, error) {
	h, err := r.history(ctx, of.Thread)
	if errors.Is(err, approvals.ErrNotFound) {
		if _, gone := r.store.Run(ctx, of.ID); errors.Is(gone, approvals.ErrNotFound) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the calls of %s: %w", of.Thread, err)
	}
	var out []approvals.Proposal
	for i, m := range h.messages {
		response, ok := m.(agentrun.Response)
		if !ok {
			continue
		}
		run := h.runs[response.RunID]
		from := min(h.began(run), i)
		soFar := agentrun.SoFar(h.messages[from:i+1], h.lapsed)
		for _, p := range response.Parts {
			c, ok := p.(agentrun.CallPart)
			if !ok || approvals.CheckArgs(c.Args) != nil {
				continue
			}
			out = append(out, approvals.Proposal{
				Call: c.ToolCall, Agent: run.Agent, Requester: run.Requester, Channel: run.Origin.Channel,
				Place: c.Place, SoFar: soFar, At: response.At,
			})
		}
	}
	return out, nil
}

// history reads a thread.
func (r recordReader) history(ctx context.Context, id agentrun.ThreadID) (history, error) {
	h := history{runs: make(map[approvals.RunID]agentrun.Run), lapsed: make(map[approvals.ToolCallID]bool)}
	thread, err := r.store.Thread(ctx, id)
	if err != nil {
		return h, err
	}
	if h.messages, err = r.store.Messages(ctx, id, 0, thread.Messages); err != nil {
		return h, err
	}
	for _, m := range h.messages {
		run := approvals.RunID("")
		switch m := m.(type) {
		case agentrun.Response:
			run = m.RunID
		case agentrun.Request:
			run = m.RunID
		}
		if err := r.follow(ctx, h, run); err != nil {
			return h, err
		}
	}
	return h, nil
}

// follow reads a run and those that it resumes, with their batches.
func (r recordReader) follow(ctx context.Context, h history, id approvals.RunID) error {
	for id != "" {
		if _, known := h.runs[id]; known {
			return nil
		}
		run, err := r.store.Run(ctx, id)
		if err != nil {
			return err
		}
		h.runs[id] = run
		if run.Deferred != "" {
			b, err := r.store.Batch(ctx, run.Deferred)
			if err != nil {
				return err
			}
			for _, call := range agentrun.Lapsed(b) {
				h.lapsed[call] = true
			}
		}
		id = run.Parent
	}
	return nil
}

// began is where the request begins that the run works at.
func (h history) began(r agentrun.Run) int {
	for r.Parent != "" {
		r = h.runs[r.Parent]
	}
	return r.From
}
