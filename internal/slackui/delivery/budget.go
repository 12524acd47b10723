package delivery

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// DefaultPerMinute is how many new messages a channel or a person gets in any
// minute, if nothing else is configured.
const DefaultPerMinute = 10

// A Budget limits how many new messages a channel or a person gets in any minute. It
// is kept in a memo of the channel, so that all replicas share it.
type Budget struct {
	Memos    memo.Store
	Team     string
	Cards    int // for a channel
	Messages int // for a person, their digest among them
	Now      func() time.Time
	Log      *slog.Logger
}

// spent is the memo of one channel: the messages that were posted there in the last
// minute or are about to be.
type spent struct {
	Slots []slot `json:"slots,omitempty"`
}

// A slot is one message of the budget. For names the message, so that a second
// attempt to post it takes no second slot.
type slot struct {
	For string    `json:"for"`
	At  time.Time `json:"at"`
}

func (s *spent) forget(now time.Time) {
	s.Slots = slices.DeleteFunc(s.Slots, func(x slot) bool { return now.Sub(x.At).Abs() >= slackapi.BudgetSpan }) // a clock that was ahead has dated the future
}

func (s *spent) has(what string) bool {
	return slices.ContainsFunc(s.Slots, func(x slot) bool { return x.For == what })
}

// room returns how many of the messages, from the first on, fit into the limit.
func (s *spent) room(what []string, limit int) int {
	free := limit - len(s.Slots)
	for i, w := range what {
		if s.has(w) {
			continue
		}
		if free--; free < 0 {
			return i
		}
	}
	return len(what)
}

func (s *spent) take(what []string, now time.Time) {
	for _, w := range what {
		if !s.has(w) {
			s.Slots = append(s.Slots, slot{For: w, At: now})
		}
	}
}

func (b *Budget) limit(channel string) int {
	if ofOnePerson(channel) {
		return max(1, b.Messages-1) // one is for the digest
	}
	return b.Cards
}

// ofOnePerson reports whether what is posted there is read by one person.
func ofOnePerson(channel string) bool { return strings.HasPrefix(channel, "D") }

// channelID is the id under which something of a channel is kept.
func channelID(kind, team, channel string) string {
	return approvals.NewID(kind, approvals.PartitionOf(team, channel), strings.ToLower(team+"-"+channel))
}

// take takes slots for these messages, from the first on, and returns for how many
// the budget of the channel had room. If the store does not answer, that is an error
// and never a full budget. After too many lost races it is a [*slackapi.LaterError].
func (b *Budget) take(ctx context.Context, channel string, what ...string) (granted int, err error) {
	err = b.change(ctx, channelID("budget", b.Team, channel), func(s *spent, now time.Time) (bool, error) {
		s.forget(now)
		granted = s.room(what, b.limit(channel))
		if !slices.ContainsFunc(what[:granted], func(w string) bool { return !s.has(w) }) {
			return false, nil // nothing new: there is nothing to write
		}
		s.take(what[:granted], now)
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	return granted, nil
}

// takeReserved takes a slot for a message that a person must get, from a budget that
// other messages do not use. Such a message never becomes part of a digest: without a
// free slot it waits, with a [*slackapi.LaterError].
func (b *Budget) takeReserved(ctx context.Context, channel, what string) error {
	return b.change(ctx, channelID("own", b.Team, channel), func(s *spent, now time.Time) (bool, error) {
		if s.forget(now); s.has(what) {
			return false, nil
		}
		if s.room([]string{what}, b.Messages) == 0 {
			return false, &slackapi.LaterError{After: s.Slots[0].At.Add(slackapi.BudgetSpan).Sub(now), Err: errReservedFull}
		}
		s.take([]string{what}, now)
		return true, nil
	})
}

// change stores what take changes, if it reports that it changed anything.
func (b *Budget) change(ctx context.Context, id string, take func(s *spent, now time.Time) (changed bool, err error)) error {
	l := memo.Notes[spent]{Memos: b.Memos, Surface: "budget", Now: b.Now, Derived: b.Log}
	for range memo.Attempts {
		n, version, err := l.Load(ctx, id)
		if err != nil {
			return err
		}
		if changed, err := take(&n.Body, b.Now()); err != nil || !changed {
			return err
		}
		if err := l.Store(ctx, id, n, version, 0); !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return lostRace(approvals.ErrConflict)
}

var errReservedFull = errors.New("the person got as many messages in the last minute as are allowed")

// lostRace is the error for a memo that many change at once. The jitter lets them try
// again one after the other.
func lostRace(err error) *slackapi.LaterError {
	wait := 50*time.Millisecond + rand.N(100*time.Millisecond) //nolint:gosec // jitter is no secret
	return &slackapi.LaterError{After: wait, Err: err}
}
