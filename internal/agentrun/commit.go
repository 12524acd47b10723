package agentrun

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

func (w *worker) now() time.Time { return w.claim.now() }

func (w *worker) log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("run", string(w.claim.id)))
	w.claim.log.LogAttrs(ctx, level, msg, attrs...) //nolint:sloglint // the callers' messages are static
}

// request returns a request of this run, with the words of this step's authors.
func (w *worker) request(parts ...RequestPart) Request {
	return Request{Parts: parts, Authors: append([]approvals.UserID{}, w.authors...), RunID: w.claim.id, At: w.now()}
}

// append commits messages at the end of the thread, with a change of the run.
func (w *worker) append(ctx context.Context, change func(*Run), messages ...Message) error {
	return w.commit(ctx, messages, func(r *Run, _ *Thread, _ *Commit) error {
		if change != nil {
			change(r)
		}
		return nil
	})
}

// commit adds messages to the thread and moves the run in one step.
func (w *worker) commit(ctx context.Context, messages []Message, change func(*Run, *Thread, *Commit) error) error {
	err := w.claim.commit(ctx, func(r *Run, t *Thread, out *Commit) error {
		if len(messages) > 0 {
			out.Append = &Append{Thread: t.ID, At: r.To, Messages: messages}
			r.To += len(messages)
			t.Messages = r.To
			out.Thread = t
		}
		return change(r, t, out)
	})
	if err == nil {
		w.history = append(w.history, messages...)
	}
	return err
}

// complete ends the run with the model's last word.
func (w *worker) complete(ctx context.Context, change func(*Run), response Response) error {
	return w.commit(ctx, []Message{response}, func(r *Run, t *Thread, out *Commit) error {
		change(r)
		r.Status, r.Output = RunCompleted, output(response.text())
		return endRun(ctx, w.claim.store, r, t, out, w.now())
	})
}

// fail ends the run with words for people. What has no result yet is closed, so
// that the next run finds a history that it can go on with.
func (w *worker) fail(ctx context.Context, change func(*Run), words string, known ...RequestPart) error {
	var messages []Message
	if parts := closing(w.history, w.journal, known, w.now()); len(parts) > 0 {
		messages = append(messages, w.request(parts...))
	}
	w.log(ctx, slog.LevelInfo, "run failed")
	return w.commit(ctx, messages, func(r *Run, t *Thread, out *Commit) error {
		if change != nil {
			change(r)
		}
		r.Status, r.Failure = RunFailed, words
		return endRun(ctx, w.claim.store, r, t, out, w.now())
	})
}

// park stops the run for people to look at: a call is in doubt.
func (w *worker) park(ctx context.Context, tool string) error {
	w.log(ctx, slog.LevelError, "run parked", slog.String("tool", tool))
	return w.commit(ctx, nil, func(r *Run, _ *Thread, _ *Commit) error {
		parked(r, fmt.Sprintf("The bot stopped while %s was running. It may or may not have happened, "+
			"so it is not repeated. Please check, then end this run.", tool))
		return nil
	})
}
