package agentrun

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// How a tool can end without an answer.
var (
	errPanicked = errors.New("panicked")
	errHung     = errors.New("did not return after it was told to stop")
)

// grace is how long a tool has to return after it was told to stop. Then its
// goroutine is left to itself.
const grace = 3 * time.Second

// timeout is how long a call of the tool may take.
func timeout(t Tool) time.Duration {
	if d := t.Spec().Timeout; d > 0 {
		return d
	}
	return DefaultToolTimeout
}

// guard calls f, which is foreign code, and returns whatever f does. late says
// that f ran into its timeout; ctx itself may have ended as well.
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

// class says what an error is without its text, in which a tool or a policy may have put
// arguments. Of a panic it keeps what [panicked] keeps.
func class(err error) string {
	switch {
	case errors.Is(err, errPanicked):
		return err.Error()
	case errors.Is(err, errHung):
		return errHung.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout: " + typesOf(err)
	case errors.Is(err, context.Canceled):
		return "canceled: " + typesOf(err)
	}
	return typesOf(err)
}

// typesOf names the types of an error and of those that it wraps.
func typesOf(err error) string {
	name := fmt.Sprintf("%T", err)
	switch err := err.(type) { //nolint:errorlint // it walks the chain itself
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			return name + " > " + typesOf(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			if inner != nil {
				name += " > " + typesOf(inner)
			}
		}
	}
	return name
}
