package approvals_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	. "github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// lossy is the real store. It commits and then loses so many of its answers.
type lossy struct {
	*state.Store
	lose int
}

func (l *lossy) CommitBatch(ctx context.Context, c BatchCommit) error {
	err := l.Store.CommitBatch(ctx, c)
	if err == nil && l.lose > 0 {
		l.lose--
		return errLost
	}
	return err
}

// stored opens a real store that has the batch.
func stored(t *testing.T, b Batch) *lossy {
	t.Helper()
	s, err := state.Open(t.Context(), state.Options{Client: statetest.Miniredis(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &agentrun.OpenBatch{Batch: b}}))
	return &lossy{Store: s}
}

func deskOn(s Store) *Desk {
	return NewDesk(s, nil, nil, func() time.Time { return opened.Add(time.Minute) })
}

func TestRacingDesksCountEachDecisionOnce(t *testing.T) {
	const people = 30
	var from []UserID
	for i := range people {
		from = append(from, UserID(fmt.Sprint("u", i)))
	}
	b := open(t, all(of(people, from...)))
	s := stored(t, b)
	var wg sync.WaitGroup
	problems := make([]error, 2*people)
	for i := range problems { // each request twice, through two desks
		wg.Go(func() {
			who := from[i%people]
			_, problems[i] = deskOn(s).Decide(t.Context(), b.ID, RequestID(who), say(b, who, Approve))
		})
	}
	wg.Wait()
	for _, err := range problems {
		require.NoError(t, err)
	}
	got, err := s.Batch(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, Approved, got.Approvals[0].Status)
	require.Len(t, got.Approvals[0].Decisions, people)
	require.Equal(t, b.Version+people, got.Version, "one commit for each decision")
	facts, err := state.NewFeed(s.Store).Facts(t.Context(), 17, "", 100)
	require.NoError(t, err)
	require.Len(t, facts, people+2, "and one that the call is settled, and one that it was the last")
}

func TestACommitWhoseAnswerIsLostIsAnsweredByItsRepetition(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := stored(t, b)
	s.lose = 1
	cmd := say(b, "ann", Approve)
	_, err := deskOn(s).Decide(t.Context(), b.ID, "r1", cmd)
	require.ErrorIs(t, err, errLost)
	_, err = deskOn(s).Decide(t.Context(), b.ID, "r2", say(b, "bo", Deny))
	require.NoError(t, err, "meanwhile the call is denied")

	got, err := deskOn(s).Decide(t.Context(), b.ID, "r1", cmd)
	require.NoError(t, err, "the first answer, not that the call is settled")
	require.Equal(t, Denied, got.Approvals[0].Status)
	require.Equal(t, b.Version+2, got.Version)
	_, err = deskOn(s).Decide(t.Context(), b.ID, "r3", say(b, "cy", Approve))
	require.ErrorIs(t, err, ErrSettled, "another request is another command")
}

func TestWhatWasTakenBackIsNotMadeAgainByARepetition(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := stored(t, b)
	s.lose = 1
	both := []Decide{say(b, "ann", Approve)}
	_, _, err := deskOn(s).DecideAll(t.Context(), b.ID, "sheet", both)
	require.ErrorIs(t, err, errLost)
	_, err = deskOn(s).Retract(t.Context(), b.ID, "back", Retract{Call: theCall, By: Principal{User: "ann"}})
	require.NoError(t, err)

	got, _, err := deskOn(s).DecideAll(t.Context(), b.ID, "sheet", both)
	require.NoError(t, err)
	require.Empty(t, got.Approvals[0].Decisions)
	require.Equal(t, b.Version+2, got.Version)
}
