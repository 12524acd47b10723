package directory

import (
	"context"
	"fmt"
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

// EachListed calls f with the batches of these lists, the oldest first, until f
// returns false or this many were read. Then it sets more.
func EachListed(ctx context.Context, from Lists, keys []approvals.ListKey, most int, f func(approvals.Batch) bool, more *bool) error {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	var cursor approvals.Cursor
	for looked := 0; ; {
		batches, next, err := from.Inbox(ctx, keys, cursor, WindowSize)
		if err != nil {
			return fmt.Errorf("read an inbox: %w", err)
		}
		for _, b := range batches {
			if !f(b) {
				*more = true
				return nil
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
		if looked += WindowSize; looked >= most {
			*more = true
			return nil
		}
	}
}

// Lists finds the open batches that concern a person, and those that they decided.
type Lists interface {
	// Inbox returns a page of the batches on any of these lists, each once, the
	// oldest first, and where the next page begins, which is empty at the end.
	Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error)
	// Decided returns the batches with a decision of the person, the latest first.
	Decided(ctx context.Context, user approvals.UserID, limit int) ([]approvals.Batch, error)
}
