package slackapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"
)

const (
	// askTime bounds a question to Slack, which may take several calls.
	askTime = 20 * time.Second
	// Spared is how long before the deadline of its caller a question ends: the
	// caller still has to read the store and to answer.
	Spared = time.Second
	// LookupTime bounds all the questions together that one person waits for.
	LookupTime = CallTimeout
	// MaxRenewals is how many answers are renewed at the same time.
	MaxRenewals = 8
)

// ErrSlow says that Slack took longer to answer than the caller can wait.
var ErrSlow = errors.New("no answer in time")

// asks are the questions that this process is asking Slack. Callers that ask the
// same at the same time share one question and its answer. A question continues when
// a caller stops waiting: other callers still need the answer. [asks.Wait] waits
// for all questions.
type asks struct {
	flights singleflight.Group
	work    sync.WaitGroup

	mu       sync.Mutex
	renewals map[string]bool      // by key: answers that are being renewed
	limited  map[string]time.Time // by method: when the limit of Slack ends
	failed   map[string]failure   // by key: questions that Slack did not answer the last time
}

// A failure is of a question that is not asked before a time, except for people who wait.
type failure struct {
	until time.Time
	times int // in a row
}

// mostFailed bounds how many failures are kept that are over.
const mostFailed = 1000

// Share returns the answer of ask, which runs at most once at a time for each key.
// It waits until [Spared] before the caller's deadline, and then returns a
// [*LaterError]. In the background it returns one at once while Slack limits the question,
// or for a while after Slack did not answer it, longer each time. For people who wait it
// always asks.
func Share[T any](ctx context.Context, a *Client, key string, ask func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if a.Now != nil && a.Background != nil && a.Background(ctx) {
		if left := a.Asks.putOff(key, a.Now()); left > 0 {
			return none, &LaterError{After: left, Err: errUnanswered}
		}
	}
	waiting, cancel := sparing(ctx)
	defer cancel()
	if waiting.Err() != nil {
		return none, tooSlow(waiting)
	}
	var value T
	var err error
	done := make(chan struct{})
	a.Asks.work.Go(func() {
		defer close(done)
		value, err = do(ctx, a, key, ask)
	})
	select {
	case <-done:
		return value, err
	case <-waiting.Done():
		return none, tooSlow(waiting)
	}
}

// Renew asks in the background. It does nothing if this answer is being renewed
// already, or if [MaxRenewals] others are.
func Renew[T any](ctx context.Context, c *Client, key string, ask func(ctx context.Context) (T, error)) {
	a := &c.Asks
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.renewals[key] || len(a.renewals) >= MaxRenewals {
		return
	}
	if a.renewals == nil {
		a.renewals = map[string]bool{}
	}
	a.renewals[key] = true
	a.work.Go(func() {
		_, _ = do(ctx, c, key, ask) // whoever needs the answer asks again and says what went wrong
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.renewals, key)
	})
}

// do asks, or waits for the same question of another caller. The question outlives
// ctx.
func do[T any](ctx context.Context, a *Client, key string, ask func(ctx context.Context) (T, error)) (T, error) {
	got, err, _ := a.Asks.flights.Do(key, func() (value any, err error) {
		defer func() {
			if p := recover(); p != nil { // it would end the process: nobody else could catch it
				err = fmt.Errorf("panic while asking Slack for %s: %v", key, p)
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		defer cancel()
		value, err = ask(ctx)
		if a.Now != nil {
			a.Asks.answered(key, a.Now(), err)
		}
		return value, err
	})
	value, _ := got.(T)
	return value, err
}

var errUnanswered = errors.New("no answer of Slack to the same question a moment ago")

// putOff is how long the question is not asked again in the background.
func (a *asks) putOff(key string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed[key].until.Sub(now)
}

// answered notes what became of a question.
func (a *asks) answered(key string, now time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	later, ok := errors.AsType[*LaterError](err)
	if !ok {
		delete(a.failed, key)
		return
	}
	if len(a.failed) >= mostFailed {
		maps.DeleteFunc(a.failed, func(_ string, f failure) bool { return !now.Before(f.until) })
	}
	if a.failed == nil {
		a.failed = map[string]failure{}
	}
	f := failure{until: now.Add(later.After)}
	if later.Outage {
		f.times = a.failed[key].times + 1
		f.until = now.Add(min(WaitAfter(f.times-1), longestAway))
	}
	a.failed[key] = f
}

// Forget makes later callers ask again: the answer to a question that is under way
// may be from before a change.
func (a *asks) Forget(key string) { a.flights.Forget(key) }

// Wait returns when all questions are answered.
func (a *asks) Wait() { a.work.Wait() }

// sparing returns ctx with a deadline that is [Spared] earlier, which leaves the
// caller time to use the answer.
func sparing(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, end.Add(-Spared), ErrSlow)
}

func tooSlow(ctx context.Context) error {
	return &LaterError{After: WaitAfter(0), Err: context.Cause(ctx), Outage: true}
}

// ask makes the call, and returns a [*LaterError] while Slack limits the method.
func (a *Client) ask(ctx context.Context, method string, call func() error) error {
	if a.Now == nil {
		return classify(method, call())
	}
	if left := a.Asks.limitLeft(method, a.Now()); left > 0 {
		return &LaterError{After: left, Err: &callError{method: method, err: errPaused}}
	}
	err := classify(method, call())
	hear(ctx, a, method, err)
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		a.Asks.limit(method, a.Now().Add(RetryAfter(limited)))
	}
	return err
}

func (a *asks) limitLeft(method string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limited[method].Sub(now)
}

func (a *asks) limit(method string, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limited == nil {
		a.limited = map[string]time.Time{}
	}
	a.limited[method] = until
}
