package directory

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

const (
	// claimTime is for how long other replicas wait for the one that asks Slack.
	// It is shorter than a request may take, so that a replica that is killed
	// while it asks costs people some time, and not their click.
	claimTime = 1500 * time.Millisecond
	// claimLook is how often they look whether the answer is there.
	claimLook = 50 * time.Millisecond
)

// An aged answer says when Slack was asked for it.
type aged interface{ fetched() time.Time }

// A subject is one thing about which Slack is asked.
type subject[T aged] struct {
	*Directory

	kind string // of the memo
	what string // as [LookupError] calls it
	id   string
	ask  func(ctx context.Context, old T) (T, error) // is given what was known before
}

// remembered answers from the memo if that is young enough, and asks Slack
// otherwise: one question for all in this process who need the answer at the
// same time, and one for all replicas unless it takes longer than [claimTime].
// An answer that is needed while it is about to become too old is renewed in
// the background. An error is never remembered. A memo that cannot be read or
// written costs a question, no more.
func remembered[T aged](ctx context.Context, d *Directory, kind, what, id string, ask func(ctx context.Context, old T) (T, error)) (T, error) {
	s := subject[T]{Directory: d, kind: kind, what: what, id: id, ask: ask}
	n, err := s.recall(ctx)
	if err == nil && d.young(n.known, d.accepts()) {
		if early := d.Age - d.Ahead; d.Ahead > 0 && !d.leisurely && !d.young(n.known, early) {
			slackapi.Renew(ctx, &d.Api.Asks, s.key(), func(ctx context.Context) (T, error) { return s.lookUp(ctx, early) })
		}
		return n.known, nil
	}
	fresh, err := slackapi.Share(ctx, &d.Api.Asks, s.key(), func(ctx context.Context) (T, error) { return s.lookUp(ctx, d.Age) })
	if err != nil {
		return fresh, &LookupError{What: what, Id: id, Err: err}
	}
	return fresh, nil
}

// accepts is how old an answer may be.
func (d *Directory) accepts() time.Duration {
	if d.leisurely {
		return max(d.Age, leisure)
	}
	return d.Age
}

// young reports whether the answer is of this age at most. One from the future
// is of no age.
func (d *Directory) young(x aged, most time.Duration) bool {
	age := d.Now().Sub(x.fetched())
	return age >= 0 && age <= most
}

func (s subject[T]) key() string { return s.Key(s.kind, s.id) }

// A memory is the memo of a subject as it was read.
type memory[T aged] struct {
	raw     []byte
	version int64
	known   T
	asking  time.Time // until then a replica has claimed to ask
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
	if json.Unmarshal(raw, &n.known) != nil || json.Unmarshal(raw, &claim) != nil {
		n.known = *new(T) // nothing that makes sense
	}
	n.asking = claim.Asking
	return n, nil
}

// lookUp asks Slack, unless somebody else has an answer of this age by then, and
// remembers what it says.
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
		raw = n.raw // others may ask now
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	// If the memo has moved, somebody else's answer is there, which is as good,
	// or what was known was forgotten, and so is this.
	_ = s.Memos.CommitMemo(ctx, s.key(), s.kind, raw, n.version, 0)
	return fresh, askErr
}

// claim makes the caller the only one of all replicas who asks. Whoever waits
// for another replica for longer than a claim lasts asks too. answered is
// whether there is an answer of this age by then. The error is that nothing is
// claimed.
func (s subject[T]) claim(ctx context.Context, most time.Duration) (n memory[T], answered bool, err error) {
	inVain := time.NewTimer(claimTime)
	defer inVain.Stop()
	for last := false; ; {
		if n, err = s.recall(ctx); err != nil {
			return n, false, err
		}
		if s.young(n.known, most) {
			return n, true, nil
		}
		left := n.asking.Sub(s.Now())
		if last || left <= 0 || left > claimTime { // it is over, or from a clock that is wrong
			err = s.Memos.CommitMemo(ctx, s.key(), s.kind, claimed(n.raw, s.Now().Add(claimTime)), n.version, 0)
			if err == nil {
				n.version++
			}
			if last || !errors.Is(err, approvals.ErrConflict) {
				return n, false, err
			}
		}
		select {
		case <-time.After(claimLook):
		case <-inVain.C:
			last = true
		case <-ctx.Done():
			return n, false, ctx.Err()
		}
	}
}

// claimed is a memo with the claim in it. Whoever knows nothing of claims reads
// it as it was.
func claimed(raw []byte, until time.Time) []byte {
	fields := map[string]any{}
	if json.Unmarshal(raw, &fields) != nil {
		fields = map[string]any{}
	}
	fields["asking"] = until
	marked, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return marked
}
