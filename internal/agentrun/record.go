package agentrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// longestBurst is the longest wait between the first attempts to store an entry, which
// take about a second together.
const longestBurst = time.Second

// record stores the entry's next state. It gives up when the store has not answered for
// about a second: without this entry nothing begins, so another worker can do the same.
func (x *executor) record(ctx context.Context, e *Entry, s EntryState) error {
	return x.write(ctx, e, s, func(wait time.Duration) bool { return wait <= longestBurst && pause(ctx, wait) })
}

// keep stores what became of an execution that has begun. Only this worker knows it, and
// without it the call is in doubt. So it repeats the request, about once a second, until
// the lease is over or the claim is lost. A worker that is told to stop still makes the
// first attempts.
func (x *executor) keep(ctx context.Context, e *Entry, s EntryState) error {
	claim := x.session.claim
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), claim.lease)
	defer cancel()
	return x.write(saving, e, s, func(wait time.Duration) bool {
		if wait <= longestBurst {
			return pause(saving, wait)
		}
		return saving.Err() == nil && pause(ctx, min(time.Second, claim.lease/20)) && claim.lasts()
	})
}

// write stores the entry's next state. If the store does not answer, it repeats the
// same request, which counts once, for as long as again waits and returns true.
func (x *executor) write(ctx context.Context, e *Entry, s EntryState, again func(wait time.Duration) bool) error {
	e.State, e.At = s, x.session.now()
	c := Commit{
		Request: approvals.RequestID(fmt.Sprintf("%s:%s:%s:%d:%s", e.Run, e.Fence, s, e.Version, e.Call)),
		Owner:   &Ownership{Run: e.Run, Fence: x.session.claim.fence},
		Entries: []Entry{*e},
	}
	for wait := 10 * time.Millisecond; ; wait = min(4*wait, 2*longestBurst) {
		err := x.session.claim.store.Commit(ctx, c)
		if err == nil {
			e.Version++
			return nil
		}
		if errors.Is(err, approvals.ErrConflict) {
			return errClaimLost
		}
		if !again(wait) {
			return fmt.Errorf("journal %s of %s: %w", e.Call, e.Run, err)
		}
	}
}

// pause waits, and reports whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
