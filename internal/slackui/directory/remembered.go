package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

const (
	// claimTime is how long other replicas wait for the one that asks Slack. It is
	// shorter than a request may take: if that replica is killed, people wait
	// longer, but their clicks do not fail.
	claimTime = 1500 * time.Millisecond
	// claimPoll is how often they look for the answer.
	claimPoll = 50 * time.Millisecond
)

// An aged answer says when Slack was asked.
type aged interface{ fetched() time.Time }

// A subject is one thing that Slack is asked about.
type subject[T aged] struct {
	*Directory

	kind string // of the memo
	id   string
	ask  func(ctx context.Context, old T) (T, error) // takes what was known before
}

// remembered returns the answer in the memo if it is fresh enough, and asks Slack
// otherwise. All callers in this process share one question, and so do all
// replicas unless it takes longer than [claimTime]. An answer in use that is about
// to become too old is renewed in the background. An error is never remembered. If
// the memo cannot be read or written, Slack is asked once more often.
func remembered[T aged](ctx context.Context, d *Directory, kind, what, id string, ask func(ctx context.Context, old T) (T, error)) (T, error) {
	s := subject[T]{Directory: d, kind: kind, id: id, ask: ask}
	n, err := s.recall(ctx)
	if err == nil && d.fresh(n.known, d.maxAge()) {
		if early := d.Age - d.Ahead; d.Ahead > 0 && !d.forDisplay && !d.fresh(n.known, early) {
			slackapi.Renew(ctx, d.API, s.key(), func(ctx context.Context) (T, error) { return s.lookUp(ctx, early) })
		}
		return n.known, nil
	}
	fresh, err := slackapi.Share(ctx, d.API, s.key(), func(ctx context.Context) (T, error) { return s.lookUp(ctx, d.Age) })
	if err != nil {
		return fresh, &LookupError{What: what, ID: id, Err: err}
	}
	return fresh, nil
}

// maxAge is how old a remembered answer may be.
func (d *Directory) maxAge() time.Duration {
	if d.forDisplay {
		return max(d.Age, displayAge)
	}
	return d.Age
}

// fresh reports whether the answer is at most this old. An answer from the future
// is not fresh.
func (d *Directory) fresh(x aged, most time.Duration) bool {
	age := d.Now().Sub(x.fetched())
	return age >= 0 && age <= most
}

func (s subject[T]) key() string { return s.Key(s.kind, s.id) }

// A memory is the memo of a subject as it was read.
type memory[T aged] struct {
	raw     []byte
	version int64
	known   T
	asking  time.Time // when the claim of a replica that asks ends
}

func (s subject[T]) recall(ctx context.Context) (memory[T], error) {
	var n memory[T]
	raw, version, err := s.Memos.Memo(ctx, s.key(), s.kind)
	if err != nil {
		return n, err
	}
	n.raw, n.version = raw, version
	var claim struct {
		Asking time.Time `json:"asking"`
	}
	err = jsonv1.Unmarshal(raw, &n.known)
	if err == nil && bytes.Contains(raw, []byte(`"asking"`)) { // see [claimed]
		err = jsonv1.Unmarshal(raw, &claim)
	}
	if err != nil {
		n.known = *new(T) // it cannot be decoded, so nothing is known
	}
	n.asking = claim.Asking
	return n, nil
}

// lookUp asks Slack and remembers the answer, unless another replica remembers one
// of at most this age first.
func (s subject[T]) lookUp(ctx context.Context, most time.Duration) (T, error) {
	n, answered, err := s.claim(ctx, most)
	if answered {
		return n.known, nil
	}
	fresh, askErr := s.ask(ctx, n.known)
	if err != nil {
		return fresh, askErr // nothing is claimed
	}
	raw, jsonErr := json.Marshal(fresh)
	if askErr != nil || jsonErr != nil {
		raw = n.raw // without the claim, so that others may ask
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	// After a conflict the memo has another replica's answer, which is as good,
	// or it was forgotten, and then this answer is not to be kept either.
	_ = s.Memos.CommitMemo(ctx, s.key(), s.kind, raw, n.version, 0)
	return fresh, askErr
}

// claim makes this replica the only one that asks. If another replica asks, claim
// waits for its answer until that replica's claim ends. answered says whether there
// is an answer of at most this age. After an error nothing is claimed.
func (s subject[T]) claim(ctx context.Context, most time.Duration) (n memory[T], answered bool, err error) {
	inVain := time.NewTimer(claimTime)
	defer inVain.Stop()
	for last := false; ; {
		if n, err = s.recall(ctx); err != nil {
			return n, false, err
		}
		if s.fresh(n.known, most) {
			return n, true, nil
		}
		left := n.asking.Sub(s.Now())
		if last || left <= 0 || left > claimTime { // it has ended, or a clock is wrong
			err = s.Memos.CommitMemo(ctx, s.key(), s.kind, claimed(n.raw, s.Now().Add(claimTime)), n.version, 0)
			if err == nil {
				n.version++
			}
			if last || !errors.Is(err, approvals.ErrConflict) {
				return n, false, err
			}
		}
		select {
		case <-time.After(claimPoll):
		case <-inVain.C:
			last = true
		case <-ctx.Done():
			return n, false, ctx.Err()
		}
	}
}

// claimed returns the memo with a claim in it. The other fields stay as they are.
func claimed(raw []byte, until time.Time) []byte {
	fields := map[string]any{}
	if jsonv1.Unmarshal(raw, &fields) != nil {
		fields = map[string]any{}
	}
	fields["asking"] = until
	marked, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return marked
}
