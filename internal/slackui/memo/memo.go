package memo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign/countersign/internal/approvals"
)

// Attempts is how often a change of a memo is tried when others change it too.
const Attempts = 8

// A Record is what a memo holds: the claim, and what is remembered.
type Record[T any] struct {
	Owner string    `json:"owner,omitempty"` // holds the claim; empty: nobody
	Until time.Time `json:"until,omitzero"`  // when the claim ends, by the time of the store
	Away  int       `json:"away,omitempty"`  // outages of Slack since the last step that worked
	Body  T         `json:"body"`
}

// Notes are the records that a surface keeps beside documents of one kind.
type Notes[T any] struct {
	Memos   Store
	Surface string
	Now     func() time.Time

	// Lease is how long a claim lasts after it was made or last saved; 0 and more than
	// eight seconds are eight seconds.
	Lease time.Duration
	// Outdate makes a body say that Slack shows nothing of it, so that whoever draws the
	// record next sends all of it. It is called when a drawer has lost its claim: what it
	// sent may be shown over something newer. It is nil for messages that never change.
	Outdate func(body *T)
	// Due is the kind of work that draws the record; empty if that is part of other work,
	// which comes again after an error.
	Due string
	// Derived is set for records that can be made again from what is stored elsewhere, or
	// that may be forgotten. One that cannot be decoded is logged here, and counts as
	// missing: the next change replaces it. It is nil for records that are the truth, such
	// as which messages show a request: one that cannot be decoded stays an error.
	Derived *slog.Logger
}

// Load returns the record beside a document and its version, which is 0 if there
// is none. It may have a version and be empty, see Derived.
func (l Notes[T]) Load(ctx context.Context, id string) (Record[T], int64, error) {
	var n Record[T]
	raw, version, err := l.Memos.Memo(ctx, id, l.Surface)
	if errors.Is(err, approvals.ErrNotFound) {
		return n, 0, nil
	}
	if err != nil {
		return n, 0, err
	}
	if len(raw) > 0 {
		err := jsonv1.Unmarshal(raw, &n)
		if err != nil && l.Derived != nil {
			l.Derived.WarnContext(ctx, "a memo cannot be read, and is made again",
				slog.String("surface", l.Surface), slog.String("id", id), slog.Any("err", err))
			return Record[T]{}, version, nil
		}
		if err != nil {
			return n, version, fmt.Errorf("%w: the %s memo of %s: %w", ErrUnreadable, l.Surface, id, err)
		}
	}
	return n, version, nil
}

// ErrUnreadable says that a stored memo cannot be decoded.
var ErrUnreadable = errors.New("cannot be read")

// Store commits a record if the stored one still has the version. With drawn > 0
// it also removes the due entry of the surface, if the document still has that
// version.
func (l Notes[T]) Store(ctx context.Context, id string, n Record[T], version, drawn int64) error {
	return l.write(id, n, func(raw []byte) error { return l.Memos.CommitMemo(ctx, id, l.Surface, raw, version, drawn) })
}

// store is Store of a record of which nothing was drawn.
func (l Notes[T]) store(ctx context.Context, id string, n Record[T], version int64) error {
	return l.Store(ctx, id, n, version, 0)
}

// storeDue is store, and makes the document due if a kind of work draws the record.
func (l Notes[T]) storeDue(ctx context.Context, id string, n Record[T], version int64) error {
	if l.Due == "" {
		return l.store(ctx, id, n, version)
	}
	return l.write(id, n, func(raw []byte) error { return l.Memos.Redraw(ctx, id, l.Surface, l.Due, raw, version) })
}

// write encodes a record for commit.
func (l Notes[T]) write(id string, n Record[T], commit func(raw []byte) error) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("write the %s memo of %s: %w", l.Surface, id, err)
	}
	return commit(raw)
}

// Done removes the due entry of the surface if the document still has the version drawn.
// It is for a document that has no record and needs none.
func (l Notes[T]) Done(ctx context.Context, id string, drawn int64) error {
	return l.Memos.CommitMemo(ctx, id, l.Surface, nil, 0, drawn)
}

// Edit changes a record without a claim. Whoever holds one takes the change over
// with its next save.
func (l Notes[T]) Edit(ctx context.Context, id string, change func(*T)) error {
	_, _, err := l.edit(ctx, id, change, l.store)
	return err
}

// EditDue is Edit, and makes the document due in the same step, so that the change is drawn.
func (l Notes[T]) EditDue(ctx context.Context, id string, change func(*T)) error {
	_, _, err := l.edit(ctx, id, change, l.storeDue)
	return err
}

// edit is Edit with this way to store, and returns what it has stored, and its version.
func (l Notes[T]) edit(ctx context.Context, id string, change func(*T), store func(ctx context.Context, id string, n Record[T], version int64) error) (Record[T], int64, error) {
	for range Attempts {
		n, version, err := l.Load(ctx, id)
		if err != nil {
			return n, version, err
		}
		change(&n.Body)
		err = store(ctx, id, n, version)
		if !errors.Is(err, approvals.ErrConflict) {
			return n, version + 1, err
		}
	}
	return Record[T]{}, 0, fmt.Errorf("change the %s memo of %s: %w", l.Surface, id, approvals.ErrConflict)
}

// Store keeps bytes of a surface beside a document. MemoVersion reads only their version,
// 0 if there are none. CommitMemo stores them if the memo still has the version, and
// returns [approvals.ErrConflict] otherwise. With drawn > 0 it also removes the due entry
// of the surface, if the document still has that version. KeepMemo stores them on the same
// condition and returns once they are durable; what was only committed may be lost with
// the machine of the store. Redraw does it on that condition too, and makes the document
// due for work of the kind. Prefetch returns a context in which the first read of any of
// these documents reads all of them, and each is handed out once. Time is about the same in
// all processes that compare their clocks with that of the store: claims go by it.
type Store interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	MemoVersion(ctx context.Context, id, surface string) (int64, error)
	CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error
	KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error
	Redraw(ctx context.Context, id, surface, kind string, data []byte, version int64) error
	Prefetch(ctx context.Context, r approvals.Reads) context.Context
	Time() time.Time
}
