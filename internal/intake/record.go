package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The memos of the intake, by what they are about. All of an agent are in the
// partition of its runs.
const (
	recordMemo   = "intake"          // a record, under the id of the run
	stateMemo    = "intake-state"    // the opaque state of the caller, under the id of the run; written once
	externalMemo = "intake-external" // the request that an external id names
	keyMemo      = "intake-key"      // what an idempotency key was used for
	printMemo    = "intake-print"    // the request that a fingerprint finds
	agentMemo    = "intake-agent"    // the newest requests of an agent, and how many it made
)

// schema is the version of every memo.
const schema = 1

// A record is what is kept of a request besides its run and its batch. It is
// stored before the run, so that a request which is shown is never without.
type record struct {
	Schema       int             `json:"v"`
	Agent        string          `json:"agent"`
	Door         Door            `json:"door,omitempty"`
	Credential   string          `json:"credential,omitempty"`
	ExternalID   string          `json:"external_id"`
	Joins        []string        `json:"joins,omitempty"` // further external ids that found it
	Left         []string        `json:"left,omitempty"`  // those of them whose callers do not wait any more
	Group        string          `json:"group,omitempty"`
	Session      string          `json:"session,omitempty"`
	Carries      storedCarries   `json:"carries,omitzero"`
	Until        time.Time       `json:"until,omitzero"`
	Trace        string          `json:"trace,omitempty"`
	Notify       string          `json:"notify,omitempty"`
	HasState     bool            `json:"has_state,omitempty"`
	Reuse        bool            `json:"reuse,omitempty"`
	Here         bool            `json:"here,omitempty"`       // this program executes the call
	AnsweredAt   time.Time       `json:"answered_at,omitzero"` // since then the same call is another one
	Owed         bool            `json:"owed,omitempty"`       // a caller was told to ask again for what becomes of it
	Calls        []storedCall    `json:"calls"`
	Withdrawn    bool            `json:"withdrawn,omitempty"` // by the caller: decisions that were not used are of no use
	SupersededBy approvals.RunID `json:"superseded_by,omitempty"`
	EndedAt      time.Time       `json:"ended_at,omitzero"` // when it was withdrawn or superseded, whichever came first
	CreatedAt    time.Time       `json:"created_at"`
	Keys         []string        `json:"keys,omitempty"`      // the index memos of the idempotency keys that stand for it
	RemovedAt    time.Time       `json:"removed_at,omitzero"` // nothing else is left of the request
}

type storedCarries struct {
	Edits   bool `json:"edits,omitempty"`
	Reasons bool `json:"reasons,omitempty"`
	Late    bool `json:"late,omitempty"`
}

type storedCall struct {
	ID          approvals.ToolCallID `json:"id"`
	Fingerprint string               `json:"fingerprint"`
	ClaimedAt   time.Time            `json:"claimed_at,omitzero"`
	ClaimedBy   string               `json:"claimed_by,omitempty"` // the credential
	Refused     string               `json:"refused,omitempty"`    // by the policy, when it was about to be claimed
	RefusedBy   string               `json:"refused_by,omitempty"` // the rule
	RefusedAt   time.Time            `json:"refused_at,omitzero"`
	NowAsks     bool                 `json:"now_asks,omitempty"` // nobody was asked, and the policy asked people when it was about to be claimed
	Report      *storedReport        `json:"report,omitempty"`
}

type storedReport struct {
	State   approvals.ExecutionState `json:"state"`
	Took    time.Duration            `json:"took_ns,omitempty"`
	Words   string                   `json:"words,omitempty"`
	Excerpt string                   `json:"excerpt,omitempty"`
	At      time.Time                `json:"at"`
}

// A pointer is what an index memo holds.
type pointer struct {
	Schema int             `json:"v"`
	Run    approvals.RunID `json:"run,omitempty"`
	// Replaced are the requests that the external id named before and that are not
	// known to be withdrawn yet.
	Replaced []approvals.RunID `json:"replaced,omitempty"`
	Payload  string            `json:"payload,omitempty"`    // of an idempotency key
	Turn     int               `json:"generation,omitempty"` // of a fingerprint: how many requests it has found before
}

// end returns the record of a request that its caller gave up at this time.
func (r record) end(at time.Time) record {
	if !r.Withdrawn && r.SupersededBy == "" {
		r.EndedAt = at.UTC()
	}
	return r
}

// call returns the index of the call, or -1.
func (r record) call(id approvals.ToolCallID) int {
	return slices.IndexFunc(r.Calls, func(c storedCall) bool { return c.ID == id })
}

// with returns the record with call i replaced; r keeps its own.
func (r record) with(i int, c storedCall) record {
	r.Calls = slices.Clone(r.Calls)
	r.Calls[i] = c
	return r
}

// found is a request as it is stored.
type found struct {
	id     approvals.RunID
	rec    record
	remote agentrun.RemoteRun
	fresh  bool // it was made by this very question

	version int64 // of the record, if it was found by [Service.find]
}

// ahead returns a context that reads the record of the request and its run in one
// round trip, in this order.
func (s *Service) ahead(ctx context.Context, id approvals.RunID) context.Context {
	return s.c.Store.Prefetch(ctx, approvals.Reads{Memos: []approvals.MemoKey{{ID: string(id), Surface: recordMemo}}, Runs: []approvals.RunID{id}})
}

// find loads a request of the client: its record first, so that the rest is newer.
func (s *Service) find(ctx context.Context, c Client, id approvals.RunID) (found, error) {
	ctx = s.ahead(ctx, id)
	rec, version, err := s.record(ctx, id)
	if (err == nil || isRemoved(err)) && rec.Agent != c.Name {
		err = fmt.Errorf("request %s: %w", id, approvals.ErrNotFound)
	}
	if err != nil {
		return found{}, err
	}
	remote, err := s.c.Runner.Remote(ctx, id)
	if err != nil {
		return found{}, err
	}
	return found{id: id, rec: rec, remote: remote, version: version}, nil
}

// record loads a record. Without one it is [approvals.ErrNotFound].
func (s *Service) record(ctx context.Context, id approvals.RunID) (record, int64, error) {
	var rec record
	version, err := s.load(ctx, string(id), recordMemo, &rec)
	switch {
	case err != nil:
	case version == 0:
		err = fmt.Errorf("request %s: %w", id, approvals.ErrNotFound)
	case !rec.RemovedAt.IsZero():
		err = &RemovedError{Request: id, At: rec.RemovedAt}
	default:
		err = rec.check()
	}
	return rec, version, err
}

// check is nil if every call that somebody claimed has the time of its claim. One that
// lost it could be claimed again.
func (r record) check() error {
	for _, c := range r.Calls {
		if c.ClaimedAt.IsZero() && (c.ClaimedBy != "" || c.Report != nil) {
			return fmt.Errorf("%w: call %q was claimed by %q at no time", approvals.ErrUnreadable, string(c.ID), c.ClaimedBy)
		}
	}
	return nil
}

// load reads a memo; version 0 says that there is none.
func (s *Service) load(ctx context.Context, id, memo string, into any) (version int64, err error) {
	data, version, err := s.c.Store.Memo(ctx, id, memo)
	if err != nil || version == 0 {
		return 0, err
	}
	if err := approvals.DecodeMemo(data, schema, into); err != nil {
		return 0, fmt.Errorf("decode %s of %s: %w", memo, id, err)
	}
	return version, nil
}

// save stores a memo if it still has this version, else [approvals.ErrConflict].
func (s *Service) save(ctx context.Context, id, memo string, v any, version int64) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s of %s: %w", memo, id, err)
	}
	return s.c.Store.CommitMemo(ctx, id, memo, data, version, 0)
}

// keep is save for what is acknowledged: it returns once that is durable.
func (s *Service) keep(ctx context.Context, id, memo string, v any, version int64) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s of %s: %w", memo, id, err)
	}
	return s.c.Store.KeepMemo(ctx, id, memo, data, version)
}

// maxTries bounds how often a lost race is run again. Each loss means that
// another change went through.
const maxTries = 64

// update changes a memo under its version, starting from zero if there is none.
// change reports whether there is something to store.
func update[T any](ctx context.Context, s *Service, id, memo string, change func(v *T, stored bool) (bool, error)) (T, error) {
	for range maxTries {
		var v T
		version, err := s.load(ctx, id, memo, &v)
		if err != nil {
			return v, err
		}
		changed, err := change(&v, version > 0)
		if err != nil || !changed {
			return v, err
		}
		if err = s.save(ctx, id, memo, v, version); !errors.Is(err, approvals.ErrConflict) {
			return v, err
		}
	}
	var zero T
	return zero, lost(id, memo)
}

// change changes the record of a request. What it returns is durable, also if another has
// stored it.
func (s *Service) change(ctx context.Context, id approvals.RunID, change func(*record) (bool, error)) (record, error) {
	confirmed := false
	for range maxTries {
		r, version, err := s.record(ctx, id)
		if err != nil {
			return r, err
		}
		changed, err := change(&r)
		switch {
		case err != nil, !changed && confirmed:
			return r, err
		case changed:
			if err = s.keep(ctx, string(id), recordMemo, r, version); !errors.Is(err, approvals.ErrConflict) {
				return r, err
			}
		default:
			// Whoever stored it was perhaps told that it may be lost, and the server that
			// confirms now may lack it: it is read again.
			if err := s.c.Store.Confirm(ctx, string(id)); err != nil {
				return r, err
			}
			confirmed = true
		}
	}
	return record{}, lost(string(id), recordMemo)
}

func lost(id, memo string) error {
	return fmt.Errorf("change %s of %s: lost %d races: %w", memo, id, maxTries, approvals.ErrConflict)
}
