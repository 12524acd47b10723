package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/agentrun"
)

// admit asks about a call and claims it in one step, if the policy permits the call
// without asking anyone. Otherwise nothing is stored and the request is zero: the
// caller goes on as with any other, with these rulings.
//
// Nothing is read first. What this process expects to find is a condition of the
// step, so being wrong costs time and changes nothing.
func (s *Service) admit(ctx context.Context, c Client, a Ask) (Request, agentrun.Ruled, error) {
	var ruled agentrun.Ruled
	if !a.Claim || a.IdempotencyKey != "" || len(a.State) > 0 || s.counters.of(c.Name).full(c, s.c.Now()) {
		return Request{}, ruled, nil
	}
	rec := s.recordOf(c, a)
	rec.Here = a.Here && !a.Pure // otherwise there is no execution that a caller could find
	index := indexID(c.Name, "print", rec.Calls[0].Fingerprint)
	at, _ := s.turns.get(index)
	for tries := 2; ; tries-- {
		key := keyOf(rec.Calls[0].Fingerprint, at.next)
		q := rec.request(c, key, a.Calls, a.Prompt)
		q.Ruled, q.Here = ruled, rec.Here
		var admission *agentrun.Admission
		var err error
		if admission, ruled, err = s.c.Runner.Permit(ctx, q); err != nil || admission == nil {
			return Request{}, ruled, err
		}
		x := found{id: admission.Run.ID, remote: admission.RemoteRun, fresh: true}
		claimed := rec.Calls[0]
		claimed.ClaimedAt, claimed.ClaimedBy = admission.Run.CreatedAt.UTC(), c.Credential
		x.rec = rec.with(0, claimed)
		if rec.Here { // the policy lets the same call run again
			x.rec.AnsweredAt = claimed.ClaimedAt
		}
		if admission.Memos, err = at.memos(c, x, index); err != nil {
			return Request{}, ruled, err
		}
		err = s.reserve(ctx, &reservation{client: c, admission: admission, request: agentRequest{Run: x.id, External: a.ExternalID, Group: a.Group, Done: true}})
		if err == nil {
			s.turns.put(index, at.used())
			r, err := s.stands(ctx, x)
			r.Claimed, r.Run = true, x.remote
			return r, ruled, err
		}
		if !errors.Is(err, errMoved) {
			return Request{}, ruled, err
		}
		var again bool
		if at, again, err = s.turnOf(ctx, c, index, rec.Calls[0].Fingerprint); !again || tries == 1 || err != nil {
			return Request{}, ruled, err
		}
	}
}

// used reports whether the decision on the only call was used, and nobody waits for what
// became of it here.
func (r record) used() bool {
	return !r.Calls[0].ClaimedAt.IsZero() && (!r.Here || !r.AnsweredAt.IsZero())
}

// errMoved is the error of an admission whose request, or external id, is there.
var errMoved = errors.New("the request is there already")

// keyOf names the request that a fingerprint finds after so many others.
func keyOf(print string, turn int) string {
	return sum(fmt.Sprintf("fingerprint/%s/%d", print, turn))
}

// A turn is what this process knows of the requests of a fingerprint. The zero value
// is that of one that nobody has asked about.
type turn struct {
	next    int   // the number of the next request
	version int64 // of the index
	behind  bool  // the index names the request before, whose decision is used
}

// used is the turn after the next request was claimed.
func (t turn) used() turn {
	if t.behind {
		t.version++
	}
	return turn{next: t.next + 1, version: t.version, behind: true}
}

// memos are what is stored with the run of an admission.
func (t turn) memos(c Client, x found, index string) ([]agentrun.MemoChange, error) {
	var all []agentrun.MemoChange
	add := func(id, surface string, v any, version int64) error {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode %s of %s: %w", surface, id, err)
		}
		all = append(all, agentrun.MemoChange{MemoRef: agentrun.MemoRef{ID: id, Surface: surface}, Version: version, Data: data})
		return nil
	}
	err := errors.Join(
		add(string(x.id), recordMemo, x.rec, 0),
		add(indexID(c.Name, "external", x.rec.ExternalID), externalMemo, pointer{Schema: schema, Run: x.id}, 0),
	)
	if t.behind {
		err = errors.Join(err, add(index, printMemo, pointer{Schema: schema, Turn: t.next}, t.version))
	}
	return all, err
}

// turnOf finds out which request of a fingerprint is the next one. It is not known while
// a caller may still be given one of them.
func (s *Service) turnOf(ctx context.Context, c Client, index, print string) (t turn, known bool, err error) {
	var at pointer
	version, err := s.load(ctx, index, printMemo, &at)
	if err != nil {
		return turn{}, false, err
	}
	rec, _, err := s.record(ctx, agentrun.RemoteRunID(Executor, c.Name, keyOf(print, at.Turn)))
	switch {
	case isRemoved(err), err == nil && rec.used():
		return turn{next: at.Turn + 1, version: version, behind: true}, true, nil
	case isNotFound(err):
		return turn{next: at.Turn, version: version}, true, nil
	}
	return turn{}, false, err
}
