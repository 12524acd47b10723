package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
)

// How a tool can end without an answer.
var (
	errPanicked = errors.New("panicked")
	errHung     = errors.New("did not return after it was told to stop")
)

// grace is how long a tool has to return after it was told to stop. Then its
// goroutine is left to itself.
const grace = 3 * time.Second

// MaxResult is how many bytes of a result the model reads; what is longer is
// cut, and the model is told.
const MaxResult = 128 << 10

// What the model reads about executions that did not end well. None of them
// says more than is known.
const (
	failedMessage   = "The tool failed, and gave no reason that can be passed on."
	panickedMessage = "The tool broke down while it ran. It is not known whether the call took effect; it is not repeated."
	lateMessage     = "The tool did not finish within %s and was told to stop. It is not known whether the call took effect; it is not repeated."
)

func timeout(t Tool) time.Duration {
	if d := t.Spec().Timeout; d > 0 {
		return d
	}
	return DefaultToolTimeout
}

// guard calls f, which somebody else has written, and comes back whatever f
// does. late says that f ran into its timeout; ctx itself may have ended as well.
func guard[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (value T, err error, late bool) {
	type result struct {
		value T
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%w: it left its goroutine", errPanicked)} // unless it returns
		defer func() {
			if v := recover(); v != nil {
				r.err = panicked(v)
			}
			done <- r
		}()
		r.value, r.err = f(limited)
	}()
	select {
	case r := <-done:
		return r.value, r.err, limited.Err() != nil
	case <-limited.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.value, r.err, true
	case <-patience.C:
		return value, errHung, true
	}
}

// panicked keeps of a panic what cannot hold arguments: the place, and the
// words of the runtime.
func panicked(v any) error {
	words := fmt.Sprintf("%T", v)
	var known runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &known) {
		words = known.Error()
	}
	return fmt.Errorf("%w: %s\n%s", errPanicked, words, debug.Stack())
}

// executeAll runs what is to be executed, in parallel between tools that run
// alone. After an error nothing more begins, but what has begun is waited for.
func (w *worker) executeAll(ctx context.Context, run Run, plans []*plan, retry map[string]int) error {
	var group errgroup.Group
	group.SetLimit(w.r.c.Parallel)
	var stopped atomic.Bool
	start := func(p *plan) error {
		if stopped.Load() {
			return nil
		}
		err := w.execute(ctx, run, p, retry[p.call.Name])
		if err != nil {
			stopped.Store(true)
		}
		return err
	}
	for _, p := range plans {
		if !p.execute || p.ran {
			continue
		}
		if !p.tool.Spec().Sequential {
			group.Go(func() error { return start(p) })
			continue
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := start(p); err != nil {
			return err
		}
	}
	return group.Wait()
}

// finishOf turns what a tool did into what is kept of it. known is false when
// the worker itself was told to stop, and the tool did not say what it did.
func (w *worker) finishOf(ctx context.Context, p *plan, result Result, err error, late bool) (f Finish, known bool) {
	var (
		asked    *ApprovalRequired
		deferred *CallDeferred
		retry    *RetryError
		failed   *FailedError
	)
	call := slog.String("call", string(p.call.ID))
	switch {
	case err == nil:
		part := returned(p.call, OutcomeSuccess, "", w.now())
		part.Content, part.Metadata = value(result.Value), w.metadata(ctx, p.call, result.Metadata)
		return Finish{Part: part, Prompt: cut(result.Content)}, true
	case errors.As(err, &asked):
		return Finish{Aside: AsideApproval, Metadata: w.metadata(ctx, p.call, asked.Metadata)}, true
	case errors.As(err, &deferred):
		return Finish{Aside: AsideExternal, Metadata: w.metadata(ctx, p.call, deferred.Metadata)}, true
	case errors.As(err, &retry):
		return Finish{Part: w.again(p.call, cut(retry.Message))}, true
	case errors.As(err, &failed):
		return Finish{Part: returned(p.call, OutcomeFailed, cut(failed.Message), w.now())}, true
	}
	w.log(ctx, slog.LevelError, "tool failed", call, slog.String("tool", p.call.Name), slog.String("err", class(err)))
	words := failedMessage
	switch {
	case errors.Is(err, errPanicked):
		words = panickedMessage
	case ctx.Err() != nil:
		return Finish{}, false
	case late:
		words = fmt.Sprintf(lateMessage, timeout(p.tool))
	}
	return Finish{Part: returned(p.call, OutcomeFailed, words, w.now())}, true
}

// outcome names, for the log, how an execution ended. The empty Finish is one
// whose outcome nobody knows.
func outcome(f Finish, err error, late bool) string {
	_, said := errors.AsType[*FailedError](err)
	switch part := f.Part.(type) {
	case RetryPrompt:
		return "retry"
	case ToolReturn:
		switch {
		case part.Outcome != OutcomeFailed || said:
			return string(part.Outcome)
		case errors.Is(err, errPanicked):
			return "panicked"
		case late:
			return "timeout"
		}
		return string(part.Outcome)
	case UserPrompt, nil: // no execution ends in a prompt
	}
	switch f.Aside {
	case AsideApproval:
		return "approval_required"
	case AsideExternal:
		return "deferred"
	case AsideNone:
	}
	return "unknown"
}

// value returns a result as JSON of a size that a model can read.
func value(v json.RawMessage) json.RawMessage {
	switch {
	case len(v) == 0:
		return json.RawMessage("null")
	case !json.Valid(v) || len(v) > MaxResult:
		return jsonString(cut(string(v)))
	}
	return v
}

// cut shortens text to [MaxResult] bytes, between two characters, and says so.
func cut(s string) string {
	if len(s) <= MaxResult {
		return s
	}
	end := MaxResult
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[cut: the first %d of %d bytes]", s[:end], end, len(s))
}
