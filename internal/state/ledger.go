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

var _ agentrun.Ledger = (*Store)(nil)

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
	Schema  int                 `json:"v"`
	Entries []storedLedgerEntry `json:"entries,omitempty"`
}

type storedLedgerEntry struct {
	Key   string    `json:"key"`
	Agent string    `json:"agent,omitempty"`
	Tool  string    `json:"tool"`
	At    time.Time `json:"at,omitzero"`
}

// Entries returns the calls that went ahead for the person in the last two days,
// in the order in which they were entered.
func (s *Store) Entries(ctx context.Context, user approvals.UserID) ([]approvals.LedgerEntry, error) {
	_, k := s.ledger(user)
	entries, _, err := s.entries(ctx, k)
	return entries, wrap(err, "load ledger")
}

// Enter implements [agentrun.Ledger].
func (s *Store) Enter(ctx context.Context, user approvals.UserID, e approvals.LedgerEntry) error {
	return wrap(s.moveLedger(ctx, user, func(all []approvals.LedgerEntry) ([]approvals.LedgerEntry, bool, error) {
		if slices.ContainsFunc(all, func(o approvals.LedgerEntry) bool { return o.Key == e.Key }) {
			return nil, false, nil
		}
		all = slices.DeleteFunc(all, func(o approvals.LedgerEntry) bool { return e.At.Sub(o.At) > keepEntries })
		if len(all) >= maxEntries {
			return nil, false, fmt.Errorf("%w: more than %d calls in two days", approvals.ErrInvalid, maxEntries)
		}
		return append(all, e), true, nil
	}), "enter call in ledger")
}

// Leave implements [agentrun.Ledger].
func (s *Store) Leave(ctx context.Context, user approvals.UserID, key string) error {
	return wrap(s.moveLedger(ctx, user, func(all []approvals.LedgerEntry) ([]approvals.LedgerEntry, bool, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(o approvals.LedgerEntry) bool { return o.Key == key })
		return left, len(left) < len(all), nil
	}), "remove call from ledger")
}

// moveLedger changes the document under its version, so that all replicas agree
// on the order of its entries.
func (s *Store) moveLedger(
	ctx context.Context, user approvals.UserID, move func([]approvals.LedgerEntry) (next []approvals.LedgerEntry, changed bool, err error),
) error {
	p, k := s.ledger(user)
	for range maxLedgerTries {
		entries, version, err := s.entries(ctx, k)
		if err != nil {
			return err
		}
		next, changed, err := move(entries)
		if err != nil {
			return err
		}
		if !changed { // perhaps by an attempt that is stored and not yet durable
			return s.confirm(ctx, p.n, s.barrier)
		}
		ch := newChange(p, p.request("ledger", newRequest("")), 0)
		doc, err := encodeLedger(next)
		if err == nil {
			err = ch.put(k, version, version+1, doc)
		}
		if err != nil {
			return err
		}
		ch.expire(k, keepEntries)
		if err = s.applyBehind(ctx, ch); !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return approvals.ErrConflict
}

func (s *Store) ledger(user approvals.UserID) (partition, hashKey) {
	p := s.partition(approvals.PartitionOf("ledger", string(user)))
	return p, p.ledger(user)
}

func (s *Store) entries(ctx context.Context, k hashKey) ([]approvals.LedgerEntry, int64, error) {
	d, version, err := s.document(ctx, k)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	entries, err := decodeLedger(d)
	return entries, version, err
}

func encodeLedger(entries []approvals.LedgerEntry) ([]byte, error) {
	out := storedLedger{Schema: schema}
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
