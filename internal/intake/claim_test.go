package intake_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

func TestADecisionIsUsedOnce(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	var out *intake.OutcomeError
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorAs(t, err, &out)
	require.Equal(t, intake.OutcomePending, out.Outcome)

	w.approve(r, "c0")
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			claim, err := w.Claim(ctx, claude, r.ID, "c0")
			if err == nil {
				won.Add(1)
				require.JSONEq(t, `{"n": 9007199254740993}`, string(claim.Args))
				return
			}
			var used *intake.ClaimedError
			require.ErrorAs(t, err, &used)
			require.Equal(t, w.clock.Now(), used.At)
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), won.Load())
	require.Equal(t, w.clock.Now(), w.get(r.ID).Calls[0].ClaimedAt)
}

func TestAClaimReturnsTheBytesThatWereApproved(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	_, err = w.desk.Amend(ctx, r.Batch, "edit", approvals.Amend{
		Call: "c0", By: approvals.Principal{User: "alice"}, From: b.Approvals[0].Call.Digest, Args: []byte(`{"n" :1}`),
	})
	require.NoError(t, err)
	w.approve(r, "c0")
	got := w.get(r.ID).Calls[0]
	require.True(t, got.Edited)
	claim, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	require.Equal(t, `{"n" :1}`, string(claim.Args))
	require.Equal(t, got.Digest, claim.Digest)
}

func TestADoorThatCarriesNoEditsHasNone(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	a := ask("x", "write")
	a.Carries = intake.Carries{}
	r := w.ask(a)
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Limits{NoEdits: true, NoReasons: true}, b.Limits)
	_, err = w.desk.Amend(ctx, r.Batch, "edit", approvals.Amend{
		Call: "c0", By: approvals.Principal{User: "alice"}, From: b.Approvals[0].Call.Digest, Args: []byte(`{"n":1}`),
	})
	require.ErrorIs(t, err, approvals.ErrNoEdits)
}

func TestADecisionWaitsAsLongAsThePolicySays(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	long := needs("bob")
	long.ClaimWithin = time.Hour
	w.policy.set("slow", approvals.Ask{Requirement: long})
	quick, slow := w.ask(ask("x", "write")), w.ask(ask("y", "slow", "slow"))
	w.approve(quick, "c0")
	w.approve(slow, "c0")
	w.clock.Advance(approvals.DefaultClaimWithin)
	_, err := w.Claim(ctx, claude, quick.ID, "c0")
	require.ErrorIs(t, err, intake.ErrTooLate)

	w.clock.Advance(2 * time.Hour)
	w.approve(slow, "c1")
	w.clock.Advance(time.Hour - time.Second)
	_, err = w.Claim(ctx, claude, slow.ID, "c0")
	require.NoError(t, err, "the time begins with the last decision of the request")
	w.clock.Advance(time.Second)
	_, err = w.Claim(ctx, claude, slow.ID, "c1")
	require.ErrorIs(t, err, intake.ErrTooLate)
}

// Another call of the request does not keep it open: what is claimed counts from its
// claim, also after the rest is decided.
func TestWhatIsClaimedEarlyIsUsableFromItsClaim(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write"))
	w.approve(r, "c0")
	require.Zero(t, w.get(r.ID).Calls[0].UsableUntil, "nothing says how long it waits")
	w.clock.Advance(time.Hour)
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	until := w.clock.Now().Add(approvals.DefaultClaimWithin)
	require.Equal(t, until, w.get(r.ID).Calls[0].UsableUntil)
	w.clock.Advance(time.Hour)
	w.approve(r, "c1")
	got := w.get(r.ID)
	require.Equal(t, until, got.Calls[0].UsableUntil)
	require.Equal(t, w.clock.Now().Add(approvals.DefaultClaimWithin), got.Calls[1].UsableUntil)
}

// A permitted call that the policy refuses later is refused for good, like one that
// people approved.
func TestAPermittedCallThatIsRefusedAtItsClaimStaysRefused(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.policy.set("free", approvals.Permit{Rule: "open@1"})
	r := w.ask(ask("x", "free"))
	require.Equal(t, "open@1", r.Calls[0].Rule)
	w.policy.set("free", approvals.Refuse{Reason: "frozen", Rule: "freeze@2"})
	require.Equal(t, "open@1", w.get(r.ID).Calls[0].Rule, "the rule that ruled on it")
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	w.policy.set("free", approvals.Permit{})
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrNotUsable)
	got := w.get(r.ID).Calls[0]
	require.Equal(t, intake.OutcomeRefused, got.Outcome)
	require.Equal(t, "freeze@2", got.Rule)
}

// People see that the policy refused what they approved, also while they decide the rest.
func TestACallThatIsRefusedAtAnEarlyClaimIsRefusedOnItsCard(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write"))
	w.approve(r, "c0")
	w.policy.set("write", approvals.Refuse{Reason: "frozen", Rule: "freeze@2"})
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Execution{State: approvals.Refused, At: w.clock.Now(), Words: "frozen"}, b.Approvals[0].Execution)
	require.Equal(t, approvals.Pending, b.Approvals[1].Status)
}

// A deaf store takes no change of a batch.
type deaf struct{ *state.Store }

func (deaf) CommitBatch(context.Context, approvals.BatchCommit) error {
	return errors.New("Redis is away")
}

func TestTheNextClaimShowsThatThePolicyRefusedTheFirst(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	w.policy.set("write", approvals.Refuse{Reason: "frozen", Rule: "freeze@2"})
	dying, err := intake.New(intake.Config{
		Store: w.store, Feed: state.NewFeed(w.store), Runner: w.runner, Now: w.clock.Now,
		Desk: approvals.NewDesk(deaf{w.store}, w.policy, nil, w.clock.Now),
	})
	require.NoError(t, err)
	_, err = dying.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	refused := w.clock.Now()
	w.clock.Advance(time.Minute)
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrNotUsable)
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Execution{State: approvals.Refused, At: refused, Words: "frozen"}, b.Approvals[0].Execution)
}

// An unkept store takes no change of a record.
type unkept struct{ *state.Store }

func (unkept) CommitMemo(context.Context, string, string, []byte, int64, int64) error {
	return errors.New("Redis is away")
}

// A refusal that was not stored is none: the call may be claimed, and its card must not say
// that the policy stopped it.
func TestARefusalThatWasNotStoredIsNotShown(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	w.policy.set("write", approvals.Refuse{Reason: "frozen", Rule: "freeze@2"})
	away, err := intake.New(intake.Config{Store: unkept{w.store}, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(t, err)
	_, err = away.Claim(ctx, claude, r.ID, "c0")
	require.ErrorContains(t, err, "Redis is away")
	w.policy.set("write", approvals.Permit{})
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Claimed, b.Approvals[0].Execution.State)
}

func TestThePolicyIsAskedOnceMoreAtTheClaim(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "free"))
	w.approve(r, "c0")
	w.clock.Advance(time.Minute)
	w.policy.set("write", approvals.Refuse{Reason: "frozen", Rule: "freeze@2"})
	w.policy.set("free", approvals.Ask{Requirement: needs("bob")})
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
	_, err = w.Claim(ctx, claude, r.ID, "c1")
	require.Error(t, err, "what needed nobody must still need nobody")
	w.policy.set("write", approvals.Permit{})
	var out *intake.OutcomeError
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorAs(t, err, &out, "a refusal is final")
	require.Equal(t, intake.OutcomeRefused, out.Outcome)
	got := w.get(r.ID).Calls[0]
	require.Equal(t, "freeze@2", got.Rule, "the rule that refuses, not the one that asked")
	require.Equal(t, w.clock.Now(), got.DecidedAt)
	require.Empty(t, got.By)
	b, err := w.store.Batch(ctx, r.Batch)
	require.NoError(t, err)
	require.Equal(t, approvals.Refused, b.Approvals[0].Execution.State)
	var stopped []string
	partition, err := approvals.Partition(string(r.ID))
	require.NoError(t, err)
	for e, err := range state.NewFeed(w.store).Events(ctx, partition) {
		require.NoError(t, err)
		if c, ok := e.Event.(approvals.Concluded); ok && c.Batch == r.Batch {
			stopped = append(stopped, c.Rule)
		}
	}
	require.Equal(t, []string{"freeze@2"}, stopped)
}

func TestADoorIsNoWayAroundADaysLimit(t *testing.T) {
	w := newWorld(t)
	w.policy.day = 5
	var wg sync.WaitGroup
	all := make([]intake.Request, 10)
	for i := range all {
		wg.Go(func() {
			var err error
			all[i], err = w.Ask(t.Context(), claude, ask(fmt.Sprint(i), "counted"))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	allowed := 0
	for _, r := range all {
		if r.Calls[0].Outcome == intake.OutcomeAllowed {
			allowed++
			_, err := w.Claim(t.Context(), claude, r.ID, "c0")
			require.NoError(t, err)
		}
	}
	require.Equal(t, 5, allowed)
}

// A call that was permitted before midnight and is claimed after it counts on the day on
// which it goes ahead.
func TestACallCountsOnTheDayOfItsClaim(t *testing.T) {
	w := newWorld(t)
	w.policy.day = 2
	asks := func(day string) (all []intake.Request) {
		for i := range 2 {
			r := w.ask(ask(fmt.Sprint(day, i), "counted"))
			require.Equal(t, intake.OutcomeAllowed, r.Calls[0].Outcome)
			all = append(all, r)
		}
		return all
	}
	w.clock.Advance(14*time.Hour + 55*time.Minute)
	yesterday := asks("yesterday")
	w.clock.Advance(6 * time.Minute)
	_, err := w.Claim(t.Context(), claude, yesterday[0].ID, "c0")
	require.NoError(t, err)
	require.Equal(t, intake.OutcomeAllowed, w.ask(ask("today", "counted")).Calls[0].Outcome)
	require.Equal(t, intake.OutcomeRefused, w.ask(ask("one more", "counted")).Calls[0].Outcome)
	_, err = w.Claim(t.Context(), claude, yesterday[1].ID, "c0")
	require.ErrorIs(t, err, approvals.ErrRefused)
}

func TestWhatTheCallerReportsIsOnTheCardAsItsWord(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write"))
	w.approve(r, "c0")
	said := intake.Report{State: approvals.Ran, Took: time.Second, Excerpt: "done"}
	_, err := w.Report(ctx, claude, r.ID, "c0", said)
	require.ErrorIs(t, err, intake.ErrNotClaimed)
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	execution := func() approvals.Execution {
		b, err := w.store.Batch(ctx, r.Batch)
		require.NoError(t, err)
		return b.Approvals[0].Execution
	}
	require.Equal(t, approvals.Execution{State: approvals.Claimed, At: w.clock.Now(), By: "claude"}, execution(), "though the other call is open")
	for range 2 {
		_, err = w.Report(ctx, claude, r.ID, "c0", said)
		require.NoError(t, err)
	}
	require.Equal(t, approvals.Execution{State: approvals.Ran, At: w.clock.Now(), Took: time.Second, Excerpt: "done", By: "claude"}, execution())
	said.State = approvals.RanFailed
	_, err = w.Report(ctx, claude, r.ID, "c0", said)
	require.ErrorIs(t, err, intake.ErrReported)
	said.State = approvals.InDoubt
	_, err = w.Report(ctx, claude, r.ID, "c0", said)
	require.ErrorIs(t, err, approvals.ErrInvalid)
}

func TestAWithdrawnRequestIsOver(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write"))
	w.approve(r, "c0")
	for range 2 {
		got, err := w.Withdraw(ctx, claude, r.ID, "the user answered at the terminal")
		require.NoError(t, err)
		require.Equal(t, []intake.Outcome{intake.OutcomeWithdrawn, intake.OutcomeWithdrawn}, outcomes(got))
		require.NotContains(t, got.Calls[0].Reason, "before it was approved", "it was approved")
		require.Contains(t, got.Calls[1].Reason, "the user answered at the terminal")
	}
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrNotUsable)

	done := w.ask(ask("y", "write"))
	w.deny(done, "c0", "no")
	_, err = w.Withdraw(ctx, claude, done.ID, "")
	require.ErrorIs(t, err, approvals.ErrSettled)
}

func TestARequestWhoseCallerIsGoneIsWithdrawnIfNoAnswerCanReachIt(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	late, now := ask("x", "write"), ask("y", "write")
	now.Carries.Late = false
	a, b := w.ask(late), w.ask(now)
	require.NoError(t, w.Gone(ctx, claude, a.ID))
	require.NoError(t, w.Gone(ctx, claude, b.ID))
	require.NoError(t, w.Gone(ctx, claude, b.ID))
	require.Equal(t, intake.StatePending, w.get(a.ID).State)
	require.Equal(t, intake.OutcomeWithdrawn, w.get(b.ID).Calls[0].Outcome)
	require.Contains(t, w.get(b.ID).Calls[0].Reason, "stopped waiting")
}

func TestARequestEndsWhenItsCallerOrItsAgentSays(t *testing.T) {
	w, c := newWorld(t), claude
	c.Within = time.Hour
	a := ask("x", "write")
	a.Within = 2 * time.Hour
	r, err := w.Ask(t.Context(), c, a)
	require.NoError(t, err)
	require.Equal(t, w.clock.Now().Add(time.Hour), r.ExpiresAt)
	w.clock.Advance(time.Hour)
	require.Equal(t, []intake.Outcome{intake.OutcomeExpired}, outcomes(w.get(r.ID)))
	require.Error(t, w.decide(r, "c0", approvals.Approve, ""))
}

// What is only read expires by a clock of its own: a process whose clock is ahead does not
// tell an agent that nobody decided in time while people still can.
func TestARequestThatIsReadExpiresByTheClockOfWhatIsShown(t *testing.T) {
	w, shown := newWorld(t), time.Time{}
	var err error
	w.Service, err = intake.New(intake.Config{
		Store: w.store, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now, Shown: func() time.Time { return shown },
	})
	require.NoError(t, err)
	a := ask("x", "write")
	a.Within = time.Hour
	shown = w.clock.Now()
	r := w.ask(a)
	w.clock.Advance(2 * time.Hour)
	require.Equal(t, intake.StatePending, w.get(r.ID).State)
	shown = shown.Add(time.Hour)
	require.Equal(t, []intake.Outcome{intake.OutcomeExpired}, outcomes(w.get(r.ID)))
}

// A clock that was just set ahead ends nothing, also before anyone has noticed: an agent that
// reads that its approval lapsed, or its request expired, has people asked again.
func TestNothingLapsesByAClockThatIsWrong(t *testing.T) {
	w := newWorld(t)
	right, differs := w.clock.Now(), errors.New("the clocks differ")
	noticed := false
	var err error
	w.Service, err = intake.New(intake.Config{
		Store: w.store, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now,
		Shown: func() time.Time {
			if noticed {
				return right
			}
			return w.clock.Now()
		},
		Agrees: func(context.Context) error {
			if noticed = w.clock.Now().After(right); noticed {
				return differs
			}
			return nil
		},
	})
	require.NoError(t, err)
	soon := ask("waits", "write")
	soon.Within = time.Hour
	approved, waits := w.ask(ask("approved", "write")), w.ask(soon)
	w.approve(approved, "c0")
	w.clock.Advance(48 * time.Hour)
	require.Equal(t, intake.StatePending, w.get(waits.ID).State)
	_, err = w.Claim(t.Context(), claude, approved.ID, "c0")
	require.ErrorIs(t, err, differs)
	right = w.clock.Now()
	require.Equal(t, []intake.Outcome{intake.OutcomeExpired}, outcomes(w.get(waits.ID)))
	_, err = w.Claim(t.Context(), claude, approved.ID, "c0")
	require.ErrorIs(t, err, intake.ErrTooLate)
}

func TestAWaitEndsWithTheNextChange(t *testing.T) {
	w := newWorld(t)
	r := w.ask(ask("x", "write", "write"))
	step := func(change func()) intake.Request {
		var wg sync.WaitGroup
		all, errs := make([]intake.Request, 3), make([]error, 3)
		for i := range all {
			wg.Go(func() { all[i], errs[i] = w.Wait(t.Context(), claude, r.ID, r.Version) })
		}
		change()
		wg.Wait()
		for i, got := range all {
			require.NoError(t, errs[i])
			require.NotEqual(t, r.Version, got.Version)
		}
		r = w.get(r.ID)
		return r
	}
	require.Equal(t, intake.OutcomeApproved, step(func() { w.approve(r, "c0") }).Calls[0].Outcome)
	step(func() {
		_, err := w.Claim(t.Context(), claude, r.ID, "c0")
		require.NoError(t, err)
	})
	require.Equal(t, intake.StateSettled, step(func() { w.deny(r, "c1", "no") }).State)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got, err := w.Wait(ctx, claude, r.ID, w.get(r.ID).Version)
	require.NoError(t, err, "the end of the wait is no failure")
	require.Equal(t, w.get(r.ID), got)
}

func TestEventsAreThoseOfTheAgentAndGoOnAfterTheLast(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	place, err := w.Place(ctx, claude)
	require.NoError(t, err)
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	_, err = w.Report(ctx, claude, r.ID, "c0", intake.Report{State: approvals.Ran})
	require.NoError(t, err)
	var types []string
	var last string
	for range 7 { // one at a time, each after the one before
		for e, err := range w.Events(ctx, claude, place) {
			require.NoError(t, err)
			require.Equal(t, r.ID, e.Request)
			types, place = append(types, e.Type), e.ID
			break
		}
		if last = types[len(types)-1]; last == intake.EventReported {
			break
		}
	}
	require.Equal(t, []string{
		intake.EventCreated, intake.EventDecided, intake.EventCall, intake.EventSettled, intake.EventClaimed, intake.EventReported,
	}, types)
	for _, err := range w.Events(ctx, claude, "nonsense") {
		require.ErrorIs(t, err, approvals.ErrInvalid)
	}
	// Another agent whose facts are in the same partition.
	other := claude
	for i := 0; ; i++ {
		if other.Name = fmt.Sprintf("agent-%d", i); w.samePartition(other.Name) {
			break
		}
	}
	hers, err := w.Ask(ctx, other, ask("x", "write"))
	require.NoError(t, err)
	for e, err := range w.Events(ctx, other, "0-0") {
		require.NoError(t, err)
		require.Equal(t, hers.ID, e.Request)
		break
	}
}

func (w *world) samePartition(name string) bool {
	p, err := approvals.Partition(string(w.ask(ask("p", "write")).ID))
	require.NoError(w, err)
	return p == partitionOf(name)
}

func TestAnExternalCallIsFulfilledByWhoeverMay(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	a := ask("x", "free", "write")
	a.Calls[0].External = true
	r := w.ask(a)
	require.Equal(t, []intake.Outcome{intake.OutcomePending, intake.OutcomePending}, outcomes(r))
	require.True(t, r.Calls[0].External)
	w.approve(r, "c1")
	result := approvals.ToolReturn{ReturnValue: []byte(`"42"`)}
	for name, c := range map[string]intake.Client{
		"the agent":    {Name: "claude", Fulfills: []intake.Fulfills{{"claude", "free"}}},
		"nobody":       {Name: "ci"},
		"another tool": {Name: "ci", Fulfills: []intake.Fulfills{{"claude", "write"}}},
	} {
		require.ErrorIs(t, w.Fulfill(ctx, c, r.ID, "c0", result), approvals.ErrNotFound, name)
	}
	ci := intake.Client{Name: "ci", Fulfills: []intake.Fulfills{{"claude", "free"}, {"claude", "write"}}}
	require.Error(t, w.Fulfill(ctx, ci, r.ID, "c1", result), "nobody approves by a result")
	for range 2 {
		require.NoError(t, w.Fulfill(ctx, ci, r.ID, "c0", result))
	}
	require.ErrorIs(t, w.Fulfill(ctx, ci, r.ID, "c0", approvals.ToolFailed{Message: "no"}), approvals.ErrSettled)
	got := w.get(r.ID)
	require.Equal(t, intake.StateSettled, got.State)
	require.Equal(t, intake.OutcomeFulfilled, got.Calls[0].Outcome)
	require.Equal(t, result, got.Calls[0].Result)
}

func TestAListHasTheNewestFirst(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	for i := range 5 {
		a := ask(fmt.Sprint(i), "write")
		a.Group = fmt.Sprint("g", i%2)
		w.ask(a)
		w.clock.Advance(time.Second)
	}
	names := func(f intake.Filter) []string {
		all, err := w.List(ctx, claude, f)
		require.NoError(t, err)
		var names []string
		for _, r := range all {
			names = append(names, r.ExternalID)
		}
		return names
	}
	require.Equal(t, []string{"4", "3", "2", "1", "0"}, names(intake.Filter{}))
	require.Equal(t, []string{"4", "2"}, names(intake.Filter{Group: "g0", Limit: 2}))
	require.Empty(t, names(intake.Filter{State: intake.StateSettled}))
	_, err := w.List(ctx, intake.Client{Name: "codex"}, intake.Filter{})
	require.NoError(t, err)
}

func TestAnAgentHasLimits(t *testing.T) {
	w, ctx, c := newWorld(t), t.Context(), claude
	c.OpenLimit, c.PerMinute = 2, 4
	try := func(external string) (intake.Request, *intake.LimitError) {
		r, err := w.Ask(ctx, c, ask(external, "write"))
		limit, _ := errors.AsType[*intake.LimitError](err)
		if limit == nil {
			require.NoError(t, err)
		}
		return r, limit
	}
	first, _ := try("1")
	_, limit := try("2")
	require.Nil(t, limit)
	_, limit = try("3")
	require.Equal(t, 2, limit.Limit)
	require.Positive(t, limit.RetryAfter)
	_, limit = try("1")
	require.Nil(t, limit, "it is there already")
	w.deny(first, "c0", "no")
	_, limit = try("3")
	require.Nil(t, limit)
	for i := range 2 {
		r, err := w.Ask(ctx, c, ask(fmt.Sprint("free", i), "free"))
		if i == 1 {
			require.ErrorAs(t, err, &limit, r)
		}
	}
	w.clock.Advance(time.Minute)
	_, err := w.Withdraw(ctx, c, mustFind(w, c, "2"), "")
	require.NoError(t, err)
	_, limit = try("5")
	require.Nil(t, limit)
}

func TestALimitSaysWhenToTryAgain(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Hour: 30 * time.Second, 12 * time.Second: 12 * time.Second} {
		w, c := newWorld(t), claude
		c.OpenLimit = 2
		for i, d := range []time.Duration{0, within} {
			a := ask(fmt.Sprint(i), "write")
			a.Within = d
			_, err := w.Ask(t.Context(), c, a)
			require.NoError(t, err)
		}
		_, err := w.Ask(t.Context(), c, ask("one too many", "write"))
		limit, ok := errors.AsType[*intake.LimitError](err)
		require.True(t, ok, err)
		require.Equal(t, want, limit.RetryAfter, "the first that ends by itself, and people may decide before")
	}
}

func mustFind(w *world, c intake.Client, external string) approvals.RunID {
	all, err := w.List(w.Context(), c, intake.Filter{ExternalID: external})
	require.NoError(w, err)
	require.Len(w, all, 1)
	return all[0].ID
}

// An unsure store does not know of what it stored whether it is durable. meanwhile happens
// before it says so.
type unsure struct {
	*state.Store
	meanwhile func(id, surface string)
}

func (s *unsure) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	if err := s.Store.KeepMemo(ctx, id, surface, data, version); err != nil {
		return err
	}
	s.meanwhile(id, surface)
	return approvals.ErrNotDurable
}

func (w *world) unsure(meanwhile func(id, surface string)) *intake.Service {
	w.Helper()
	s, err := intake.New(intake.Config{Store: &unsure{Store: w.store, meanwhile: meanwhile}, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(w, err)
	return s
}

func TestAClaimThatIsNotDurableUsesNoDecision(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	gone, leave := context.WithCancel(ctx)
	for _, unsure := range []*intake.Service{w.unsure(func(string, string) {}), w.unsure(func(string, string) { leave() })} {
		_, err := unsure.Claim(gone, claude, r.ID, "c0")
		require.ErrorIs(t, err, approvals.ErrNotDurable)
		require.Zero(t, w.get(r.ID).Calls[0].ClaimedAt)
	}
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err, "another process may have it")
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, intake.ErrClaimed)
}

// A late store answers before what it stores has arrived: Redis stands still, or the
// connection is slow, and the change is on its way.
type late struct {
	*state.Store
	arrive func() error
}

func (s *late) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	s.arrive = func() error { return s.Store.KeepMemo(context.WithoutCancel(ctx), id, surface, data, version) }
	return context.DeadlineExceeded
}

func TestAClaimThatArrivesAfterItsCallerHasReadThatItFailedUsesNoDecision(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	slow := &late{Store: w.store}
	s, err := intake.New(intake.Config{Store: slow, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(t, err)
	_, err = s.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, slow.arrive(), approvals.ErrConflict)
	_, err = w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
}

// Redis may have failed over to a replica that lacks the claim, and another process may have
// claimed there: that is the same version of the record.
func TestAClaimThatIsNotDurableLeavesThatOfAnother(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	var other time.Time
	unsure := w.unsure(func(id, surface string) {
		keys, err := w.client.Keys(ctx, w.prefix+":*memo:"+surface+":"+id).Result()
		require.NoError(t, err)
		require.Len(t, keys, 1)
		data, _, err := w.store.Memo(ctx, id, surface)
		require.NoError(t, err)
		claimed := w.clock.Now()
		other = claimed.Add(time.Microsecond)
		require.Contains(t, string(data), claimed.Format(time.RFC3339Nano))
		require.NoError(t, w.client.HSet(ctx, keys[0], "d", strings.Replace(string(data), claimed.Format(time.RFC3339Nano), other.Format(time.RFC3339Nano), 1)).Err())
	})
	_, err := unsure.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, approvals.ErrNotDurable)
	require.Equal(t, other, w.get(r.ID).Calls[0].ClaimedAt)
}

// A failing store loses in Confirm what another process has stored and was not confirmed:
// Redis fails over to a replica that lacks it.
type failing struct {
	*state.Store
	over func()
}

func (s failing) Confirm(ctx context.Context, id string) error {
	s.over()
	return s.Store.Confirm(ctx, id)
}

// A report that is repeated finds that of the first attempt. If that is lost before it is
// durable, it is stored again, and not only answered.
func TestAReportThatIsRepeatedIsStoredIfTheFirstIsLost(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.approve(r, "c0")
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	keys, err := w.client.Keys(ctx, w.prefix+":*memo:intake:"+string(r.ID)).Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	claimed, err := w.client.HGetAll(ctx, keys[0]).Result()
	require.NoError(t, err)
	ran := intake.Report{State: approvals.Ran}
	_, err = w.Report(ctx, claude, r.ID, "c0", ran)
	require.NoError(t, err)

	once := sync.OnceFunc(func() { require.NoError(t, w.client.HSet(ctx, keys[0], claimed).Err()) })
	s, err := intake.New(intake.Config{Store: failing{w.store, once}, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(t, err)
	_, err = s.Report(ctx, claude, r.ID, "c0", ran)
	require.NoError(t, err)
	require.NotNil(t, w.get(r.ID).Calls[0].Report)
}

// A refusal at a claim is no decision of the request: the time that its other decisions
// have has begun, and what was said of it stays true.
func TestARefusedClaimGivesTheOtherDecisionsNoMoreTime(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write", "other"))
	w.policy.set("other", approvals.Ask{Requirement: needs("bob")})
	for _, call := range []approvals.ToolCallID{"c0", "c1", "c2"} {
		w.approve(r, call)
	}
	until := w.clock.Now().Add(approvals.DefaultClaimWithin)
	w.clock.Advance(time.Minute)
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)

	w.clock.Advance(approvals.DefaultClaimWithin - time.Minute - time.Second)
	w.policy.set("other", approvals.Refuse{Reason: "Not today.", Rule: "today@1"})
	var refused *approvals.RefusedError
	_, err = w.Claim(ctx, claude, r.ID, "c2")
	require.ErrorAs(t, err, &refused)
	got := w.get(r.ID)
	require.Equal(t, w.clock.Now(), got.Calls[2].DecidedAt, "the policy decided about this one now")
	require.Equal(t, until, got.Calls[0].UsableUntil)
	require.Equal(t, until, got.Calls[1].UsableUntil)
	w.clock.Advance(time.Second)
	_, err = w.Claim(ctx, claude, r.ID, "c1")
	require.ErrorIs(t, err, intake.ErrTooLate)
}

// The time of an outcome is that of what decided it. A receipt that says since when a call
// was superseded would otherwise name the moment at which people approved it.
func TestWhatItsCallerGaveUpWasDecidedWhenItDid(t *testing.T) {
	for outcome, end := range map[intake.Outcome]func(w *world, r intake.Request){
		intake.OutcomeSuperseded: func(w *world, _ intake.Request) { w.ask(ask("x", "write")) },
		intake.OutcomeWithdrawn: func(w *world, r intake.Request) {
			_, err := w.Withdraw(t.Context(), claude, r.ID, "")
			require.NoError(t, err)
		},
	} {
		w := newWorld(t)
		w.policy.set("read", approvals.Permit{Rule: "reads@1"})
		r := w.ask(ask("x", "write", "write", "write", "read"))
		w.approve(r, "c0")
		w.approve(r, "c1")
		approved := w.clock.Now()
		_, err := w.Claim(t.Context(), claude, r.ID, "c0")
		require.NoError(t, err)
		claimed := w.get(r.ID).Calls[0]
		w.clock.Advance(time.Minute)
		end(w, r)
		ended := w.clock.Now()
		w.clock.Advance(time.Minute)
		end(w, r) // a repetition changes nothing
		got := w.get(r.ID).Calls
		require.Equal(t, intake.OutcomeApproved, got[0].Outcome, "it was used before")
		require.Equal(t, approved, got[0].DecidedAt)
		require.Equal(t, claimed.UsableUntil, got[0].UsableUntil)
		for _, c := range got[1:] {
			require.Equal(t, outcome, c.Outcome, "%s", c.ID)
			require.Equal(t, ended, c.DecidedAt, "%s %s", outcome, c.ID)
		}
	}
}

// A clock that was ahead is set back. What was decided meanwhile can be claimed as long as
// it said, and a receipt whose time ends before it begins cannot be signed: its caller would
// get no answer to the claim.
func TestAClaimBeforeItsDecisionByTheClockKeepsItsTime(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write"))
	w.clock.Advance(time.Hour)
	w.approve(r, "c0")
	before := w.get(r.ID).Calls[0]
	w.clock.Advance(-time.Hour)
	_, err := w.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
	after := w.get(r.ID).Calls[0]
	require.True(t, after.ClaimedAt.Before(after.DecidedAt))
	require.Equal(t, before.UsableUntil, after.UsableUntil)
}

// A store that cannot read the states of callers.
type stateless struct {
	*state.Store

	fails bool
}

var errStateless = errors.New("the state cannot be read")

func (s *stateless) Memo(ctx context.Context, id, memo string) ([]byte, int64, error) {
	if s.fails && memo == "intake-state" {
		return nil, 0, errStateless
	}
	return s.Store.Memo(ctx, id, memo)
}

// A caller whose claim failed claims again, so one that is stored has its answer.
func TestAClaimIsStoredOnlyWithItsAnswer(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	store := &stateless{Store: w.store}
	s, err := intake.New(intake.Config{Store: store, Feed: state.NewFeed(w.store), Runner: w.runner, Desk: w.desk, Now: w.clock.Now})
	require.NoError(t, err)
	a := ask("x", "write")
	a.State = []byte(`{"step":1}`)
	r := w.ask(a)
	w.approve(r, "c0")
	store.fails = true
	_, err = s.Claim(ctx, claude, r.ID, "c0")
	require.ErrorIs(t, err, errStateless)
	require.Zero(t, w.get(r.ID).Calls[0].ClaimedAt)
	store.fails = false
	_, err = s.Claim(ctx, claude, r.ID, "c0")
	require.NoError(t, err)
}

// A request whose calls people decide has its time from what they decided, whatever the clock
// said when it was made.
func TestARequestMadeByAClockThatWasAheadGivesNoMoreTime(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(time.Hour)
	r := w.ask(ask("x", "write"))
	w.clock.Advance(-time.Hour)
	w.approve(r, "c0")
	got := w.get(r.ID).Calls[0]
	require.Equal(t, got.DecidedAt.Add(approvals.DefaultClaimWithin), got.UsableUntil)
}

// A request of which nothing says when it was superseded was decided when people decided it,
// also if its caller withdraws it later: receipts say so already.
func TestARequestThatHadEndedEndsNoLater(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.ask(ask("x", "write", "write"))
	w.approve(r, "c0")
	w.ask(ask("x", "write"))
	data, version, err := w.store.Memo(ctx, string(r.ID), "intake")
	require.NoError(t, err)
	at := regexp.MustCompile(`"ended_at":"[^"]+",`)
	require.Regexp(t, at, string(data))
	require.NoError(t, w.store.CommitMemo(ctx, string(r.ID), "intake", at.ReplaceAll(data, nil), version, 0))
	before := w.get(r.ID).Calls[0]
	require.Equal(t, intake.OutcomeSuperseded, before.Outcome)
	w.clock.Advance(time.Hour)
	_, err = w.Withdraw(ctx, claude, r.ID, "")
	require.NoError(t, err)
	require.Equal(t, before.DecidedAt, w.get(r.ID).Calls[0].DecidedAt)
}

// A decision counts for whoever asks later who had signed, also where it is not what the
// call ended with. One that was taken back, or was about other arguments, does not.
func TestACallSaysWhoHadDecidedItWhateverItsOutcome(t *testing.T) {
	for outcome, end := range map[intake.Outcome]func(w *world, r intake.Request){
		intake.OutcomeApproved: func(w *world, r intake.Request) {
			require.NoError(t, w.decideAs("carol", r, "c0", approvals.Approve, ""))
		},
		intake.OutcomeDenied:  func(w *world, r intake.Request) { require.NoError(t, w.decideAs("carol", r, "c0", approvals.Deny, "")) },
		intake.OutcomeExpired: func(w *world, _ intake.Request) { w.clock.Advance(2 * time.Hour) },
		intake.OutcomeWithdrawn: func(w *world, r intake.Request) {
			_, err := w.Withdraw(t.Context(), claude, r.ID, "")
			require.NoError(t, err)
		},
		intake.OutcomeSuperseded: func(w *world, _ intake.Request) { w.ask(ask("x", "write")) },
		intake.OutcomeRefused: func(w *world, r intake.Request) {
			require.NoError(t, w.decideAs("carol", r, "c0", approvals.Approve, ""))
			w.policy.set("two", approvals.Refuse{Reason: "frozen", Rule: "freeze@1"})
			_, err := w.Claim(t.Context(), claude, r.ID, "c0")
			require.Error(t, err)
		},
	} {
		w := newWorld(t)
		asks := needs("bob", "carol")
		asks.Deny, asks.Deadline = 2, w.clock.Now().Add(time.Hour)
		asks.Quorums[1].From.Users = append(asks.Quorums[1].From.Users, "dave", "erin")
		w.policy.set("two", approvals.Ask{Requirement: asks})
		r := w.ask(ask("x", "two"))
		require.NoError(t, w.decideAs("dave", r, "c0", approvals.Deny, ""))
		require.NoError(t, w.decideAs("erin", r, "c0", approvals.Approve, ""))
		_, err := w.desk.Retract(t.Context(), r.Batch, "retract", approvals.Retract{Call: "c0", By: approvals.Principal{User: "erin"}, At: w.clock.Now()})
		require.NoError(t, err)
		require.NoError(t, w.decideAs("bob", r, "c0", approvals.Approve, ""))
		end(w, r)

		got := w.get(r.ID).Calls[0]
		require.Equal(t, outcome, got.Outcome)
		approvers, deniers := []approvals.Seat{{User: "bob"}}, []approvals.UserID{"dave"}
		if slices.Contains([]intake.Outcome{intake.OutcomeApproved, intake.OutcomeRefused}, outcome) {
			approvers = append(approvers, approvals.Seat{User: "carol"})
		}
		if outcome == intake.OutcomeDenied {
			deniers = append(deniers, "carol")
		}
		require.Equal(t, approvers, got.Approvers, outcome)
		require.Equal(t, deniers, got.Deniers, outcome)
	}
}

// A request may be withdrawn without a word. Its external call has no result then, and
// nobody gave one.
func TestAnExternalCallThatWasWithdrawnIsNotFulfilled(t *testing.T) {
	for _, reason := range []string{"", " ", "not needed"} {
		n := newNotified(t)
		a := ask("x", "free")
		a.Calls[0].External, a.Notify = true, "ci"
		r, err := n.Ask(t.Context(), hooked, a)
		require.NoError(t, err)
		for range 2 {
			got, err := n.Withdraw(t.Context(), hooked, r.ID, reason)
			require.NoError(t, err, "it may be repeated")
			require.Equal(t, intake.OutcomeWithdrawn, got.Calls[0].Outcome, "%q", reason)
			require.Nil(t, got.Calls[0].Result)
		}
		require.NotContains(t, n.announced(r), intake.EventFulfilled+" c0")
	}
	w := newWorld(t)
	a := ask("x", "free")
	a.Calls[0].External = true
	r := w.ask(a)
	ci := intake.Client{Name: "ci", Fulfills: []intake.Fulfills{{Agent: "claude", Tool: "free"}}}
	require.NoError(t, w.Fulfill(t.Context(), ci, r.ID, "c0", approvals.ToolDenied{Message: "not from here"}))
	require.Equal(t, intake.OutcomeFulfilled, w.get(r.ID).Calls[0].Outcome, "a denial by whoever executes the call is its result")
}

// An external call may have run when another request takes its place.
func TestASupersededExternalCallMayHaveRun(t *testing.T) {
	w := newWorld(t)
	a := ask("x", "free")
	a.Calls[0].External = true
	r := w.ask(a)
	w.ask(ask("x", "write"))
	got := w.get(r.ID).Calls[0]
	require.Equal(t, intake.OutcomeSuperseded, got.Outcome)
	require.Contains(t, got.Reason, approvals.UnansweredMessage)
}

// An approval counts for the arguments that it was given for. Of those that the call ended
// with, the receipt names the editors, and who approved them in whose place.
func TestACallSaysWhoHadApprovedTheArgumentsThatItEndedWith(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	asks := needs("bob", "carol")
	asks.Delegation = true
	asks.Deadline = w.clock.Now().Add(time.Hour)
	w.policy.set("two", approvals.Ask{Requirement: asks})
	r := w.ask(ask("x", "two"))
	require.NoError(t, w.decideAs("carol", r, "c0", approvals.Approve, ""))
	b, err := w.desk.Batch(ctx, r.Batch)
	require.NoError(t, err)
	b, err = w.desk.Amend(ctx, r.Batch, "edit", approvals.Amend{
		Call: "c0", From: b.Approvals[0].Call.Digest, Args: []byte(`{"n": 1}`), By: approvals.Principal{User: "bob"},
	})
	require.NoError(t, err)
	until := w.clock.Now().Add(time.Hour)
	_, err = w.desk.Decide(ctx, r.Batch, "dave", approvals.Decide{Decision: approvals.Decision{
		Call: "c0", Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest,
		By: approvals.Principal{User: "dave", For: []approvals.Absent{{User: "bob", Until: until}, {User: "carol", Until: until}}},
	}})
	require.NoError(t, err)
	w.clock.Advance(time.Hour)

	got := w.get(r.ID).Calls[0]
	require.Equal(t, intake.OutcomeExpired, got.Outcome)
	require.JSONEq(t, `{"n": 1}`, string(got.Args))
	require.Equal(t, []approvals.UserID{"bob"}, got.Editors)
	require.Equal(t, []approvals.Seat{{User: "dave", For: "carol"}}, got.Approvers, "bob edited, so nobody approves in his place")
}
