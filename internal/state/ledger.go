package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

var _ agentrun.Ledger = Ledger{}

const (
	// keepEntries is how long an entry is kept. A day of any time zone began
	// less than this ago, also the one in which clocks are put back.
	keepEntries = 48 * time.Hour
	// maxEntries bounds the document of one person. A further call is not
	// entered, so it does not go ahead unasked.
	maxEntries = 10_000
	// maxLedgerTries is how often a lost race for the document is run again.
	maxLedgerTries = 100
)

type storedLedger struct {
	versioned

	Entries []storedLedgerEntry `json:"entries,omitempty"`
}

type storedLedgerEntry struct {
	Key   string    `json:"key"`
	Agent string    `json:"agent,omitempty"`
	Tool  string    `json:"tool"`
	At    time.Time `json:"at,omitzero"`
}

// A Ledger counts the calls that were allowed to run, one document a person. Its
// entries are committed on their own, before the call runs.
type Ledger struct{ c *conn }

// NewLedger returns the ledger of the store.
func NewLedger(s *Store) Ledger { return Ledger{s.conn} }

// Entries returns the calls that were allowed to run for the person in the last
// two days, in the order in which they were entered.
func (l Ledger) Entries(ctx context.Context, user approvals.UserID) ([]approvals.LedgerEntry, error) {
	_, k := l.document(user)
	entries, _, err := l.entries(ctx, k)
	return entries, wrap(err, "load ledger")
}

// Enter implements [agentrun.Ledger].
func (l Ledger) Enter(ctx context.Context, user approvals.UserID, e approvals.LedgerEntry, since time.Time) error {
	return wrap(l.change(ctx, user, func(all []approvals.LedgerEntry) ([]approvals.LedgerEntry, bool, error) {
		if slices.ContainsFunc(all, func(o approvals.LedgerEntry) bool { return o.Key == e.Key && !o.At.Before(since) }) {
			return nil, false, nil
		}
		all = slices.DeleteFunc(all, func(o approvals.LedgerEntry) bool { return o.Key == e.Key || e.At.Sub(o.At) > keepEntries })
		if len(all) >= maxEntries {
			return nil, false, fmt.Errorf("%w: more than %d calls in two days", approvals.ErrInvalid, maxEntries)
		}
		return append(all, e), true, nil
	}), "enter call in ledger")
}

// Leave implements [agentrun.Ledger].
func (l Ledger) Leave(ctx context.Context, user approvals.UserID, key string) error {
	return wrap(l.change(ctx, user, func(all []approvals.LedgerEntry) ([]approvals.LedgerEntry, bool, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(o approvals.LedgerEntry) bool { return o.Key == key })
		return left, len(left) < len(all), nil
	}), "remove call from ledger")
}

// change replaces the document at its version, so that all replicas agree on the
// order of its entries.
func (l Ledger) change(
	ctx context.Context, user approvals.UserID, move func([]approvals.LedgerEntry) (next []approvals.LedgerEntry, changed bool, err error),
) error {
	p, k := l.document(user)
	for range maxLedgerTries {
		entries, version, err := l.entries(ctx, k)
		if err != nil {
			return err
		}
		next, changed, err := move(entries)
		if err != nil {
			return err
		}
		if !changed { // perhaps by an attempt that is stored and not yet durable
			return l.c.confirm(ctx, p.n, l.c.barrier)
		}
		ch := newChangeOf(p, k)
		doc, err := encodeLedger(next)
		if err == nil {
			err = ch.put(k, version, version+1, doc)
		}
		if err != nil {
			return err
		}
		ch.expire(k, keepEntries)
		if err = l.c.applyBehind(ctx, ch); !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return approvals.ErrConflict
}

func (l Ledger) document(user approvals.UserID) (partition, hashKey) {
	p := l.c.partition(approvals.PartitionOf("ledger", string(user)))
	return p, p.ledger(user)
}

func (l Ledger) entries(ctx context.Context, k hashKey) ([]approvals.LedgerEntry, int64, error) {
	entries, version, err := load(ctx, l.c, k, decodeLedger)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, 0, nil
	}
	return entries, version, err
}

func encodeLedger(entries []approvals.LedgerEntry) ([]byte, error) {
	out := storedLedger{versioned: current}
	for _, e := range entries {
		out.Entries = append(out.Entries, storedLedgerEntry{e.Key, e.Agent, e.Tool, e.At.UTC()})
	}
	return encode(out)
}

func decodeLedger(doc []byte) ([]approvals.LedgerEntry, error) {
	in, err := decode[storedLedger](doc)
	if err != nil {
		return nil, err
	}
	entries := make([]approvals.LedgerEntry, 0, len(in.Entries))
	for _, e := range in.Entries {
		entries = append(entries, approvals.LedgerEntry(e))
	}
	return entries, nil
}
