package directory

import (
	"context"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Within reports whether the call is on this list of the person.
func Within(l ref.List, who Viewer, b approvals.Batch, a approvals.Approval, channel string, mine bool, now time.Time) bool {
	switch l.Scope {
	case ref.ScopeMine:
		return mine
	case ref.ScopeChannel:
		return ref.ShownIn(b, a, channel)
	case ref.ScopeAll:
		return mine || who.Sees(b, a, channel, now)
	}
	return false
}

// ListKeys returns the stored lists in which the calls of this list are found.
func ListKeys(l ref.List, who Viewer, channel string) []approvals.ListKey {
	here := approvals.ShownIn(channel)
	switch l.Scope {
	case ref.ScopeMine:
		return who.keys
	case ref.ScopeChannel:
		return []approvals.ListKey{here}
	case ref.ScopeAll:
	}
	return append(slices.Clone(who.keys), here, approvals.AskedBy(who.User))
}

// EachListed calls f with the batches of these lists, the oldest first and up to
// [WindowSize] at a time, until f returns false or this many were read. Then there may be
// more.
func EachListed(ctx context.Context, from Lists, keys []approvals.ListKey, most int, f func([]approvals.Batch) bool) (more bool, err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	var cursor approvals.Cursor
	for looked := 0; ; {
		batches, next, err := from.Inbox(ctx, keys, cursor, WindowSize)
		if err != nil {
			return false, err
		}
		if !f(batches) {
			return true, nil
		}
		if cursor = next; cursor == "" {
			return false, nil
		}
		if looked += WindowSize; looked >= most {
			return true, nil
		}
	}
}

// A Waiting is how much waits for a person, and in a channel.
type Waiting struct {
	Mine    int       // requests in which the person can help
	AtMost  bool      // Mine is the length of the lists: it counts others too, and some twice
	Oldest  time.Time // when the first request of those that were read was opened in which the person can help
	Channel int       // requests that are shown in the channel
}

// countedExactly is up to how many requests are read to count what waits for a person.
const countedExactly = 25

// Counted returns how much waits for the person, and in the channel. It costs the same
// however much that is.
func Counted(ctx context.Context, from Lists, who Viewer, channel string, now time.Time) (w Waiting, err error) {
	lengths, err := from.Lengths(ctx, append(slices.Clone(who.keys), approvals.ShownIn(channel)))
	if err != nil {
		return Waiting{}, err
	}
	batches, more, err := from.Inbox(ctx, who.keys, "", countedExactly)
	if err != nil {
		return Waiting{}, err
	}
	last := len(who.keys)
	w.AtMost, w.Channel = more != "", lengths[last]
	if w.AtMost {
		for _, n := range lengths[:last] {
			w.Mine += n
		}
	}
	for _, b := range batches {
		if len(who.Helpful(b, now).Calls) == 0 {
			continue
		}
		if !w.AtMost {
			w.Mine++
		}
		if w.Oldest.IsZero() {
			w.Oldest = b.OpenedAt
		}
	}
	return w, nil
}

// Lists finds the open batches that concern a person, and those that they decided.
type Lists interface {
	// Inbox returns a page of the batches on any of these lists, each once, the
	// oldest first, and where the next page begins, which is empty at the end.
	Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error)
	// Lengths returns how many batches are on each of these lists.
	Lengths(ctx context.Context, keys []approvals.ListKey) ([]int, error)
	// Decided returns the batches with a decision of the person, the latest first.
	Decided(ctx context.Context, user approvals.UserID, limit int) ([]approvals.Batch, error)
}
