package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

var errLost = errors.New("reply lost")

// shelf is a store of one process that can be made to misbehave. It keeps the
// promises of [Store] and no others. It is written by hand because these tests
// put another commit, an error or a state that no command leads to between two
// steps of the desk. Races and lost answers are tested on the real store in
// desk_store_test.go.
type shelf struct {
	mu      sync.Mutex
	batches map[BatchID]Batch
	args    map[Digest]json.RawMessage
	done    map[RequestID]bool
	facts   []Event
	commits int
	kept    []time.Duration // of each commit: how long its request is remembered

	loseReplies int                 // so many commits go through and say they did not
	conflicts   int                 // so many commits are refused without a change
	meanwhile   func(b Batch) Batch // runs before the next commit, as someone else
	loading     func(b Batch) Batch // likewise before the next load
	down        error               // what everything answers
	answeredErr error               // what Answered answers
	volatile    bool                // what is stored may be lost
	confirms    int                 // calls of Confirm
	replaced    func()              // runs before the next Confirm: a server that lacks something takes over
}

func newShelf(b Batch) *shelf {
	return &shelf{
		batches: map[BatchID]Batch{b.ID: b},
		args:    map[Digest]json.RawMessage{},
		done:    map[RequestID]bool{},
	}
}

func (s *shelf) Batch(_ context.Context, id BatchID) (Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.loading; f != nil {
		s.loading = nil
		s.batches[id] = f(s.batches[id])
	}
	b, ok := s.batches[id]
	if s.down == nil && !ok {
		return Batch{}, ErrNotFound
	}
	return b, s.down
}

func (s *shelf) ArgsOf(_ context.Context, of []ArgsKey) (map[ArgsKey]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[ArgsKey]json.RawMessage{}
	for _, k := range of {
		if raw, ok := s.args[k.Digest]; ok {
			found[k] = raw
		}
	}
	return found, nil
}

func (s *shelf) Args(_ context.Context, _ BatchID, d Digest) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	args, ok := s.args[d]
	if !ok {
		return nil, ErrNotFound
	}
	return args, nil
}

func (s *shelf) Answered(_ context.Context, _ BatchID, r RequestID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[r], s.answeredErr
}

func (s *shelf) Confirm(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirms++
	if f := s.replaced; f != nil {
		s.replaced = nil
		f()
	}
	if s.volatile {
		return ErrNotDurable
	}
	return nil
}

func (s *shelf) CommitBatch(_ context.Context, c BatchCommit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		s.batches[c.Batch.ID] = f(s.batches[c.Batch.ID])
	}
	switch {
	case s.done[c.Request]:
		return ErrAnswered
	case s.conflicts > 0:
		s.conflicts--
		return ErrConflict
	case s.batches[c.Batch.ID].Version != c.Before.Version:
		return ErrConflict
	}
	s.batches[c.Batch.ID] = c.Batch
	s.done[c.Request] = true
	s.kept = append(s.kept, c.Keep)
	s.facts = append(s.facts, c.Events...)
	s.commits++
	maps.Copy(s.args, c.Args)
	if s.loseReplies > 0 {
		s.loseReplies--
		return errLost
	}
	if s.volatile {
		return ErrNotDurable
	}
	return nil
}

// rules is a policy of one function.
type rules func(Proposal) (Ruling, error)

func (r rules) Rule(_ context.Context, p Proposal) (Ruling, error) { return r(p) }

func (rules) Strictest(at time.Time) Requirement {
	return Requirement{Quorums: []Quorum{of(3, "ann", "bo", "cy")}, Separation: true, Deadline: at.Add(time.Hour)}
}

// anyArgs finds that all arguments fit.
func anyArgs(context.Context, Batch, ToolCall) error { return nil }

func desk(s *shelf, p Policy) *Desk {
	return NewDesk(s, p, anyArgs, func() time.Time { return opened.Add(2 * time.Minute) })
}

func TestDeskAnswersALostReplyLikeTheFirst(t *testing.T) {
	b := open(t, all(of(1, "ann")))
	s := newShelf(b)
	d := desk(s, nil)
	s.loseReplies = 1
	_, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, errLost)

	got, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err, "the same attempt, though the call is settled")
	require.Equal(t, Approved, got.Approvals[0].Status)
	require.Equal(t, 1, s.commits)

	_, err = d.Decide(t.Context(), b.ID, "r2", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrSettled, "another attempt")
}

func TestDeskAnswersARepeatedRequestWithWhatIsThere(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := newShelf(b)
	d := desk(s, nil)
	_, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	_, err = d.Retract(t.Context(), b.ID, "r2", Retract{Call: theCall, By: Principal{User: "ann"}})
	require.NoError(t, err)
	got, err := d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Empty(t, got.Approvals[0].Decisions, "what was taken back does not come back with an old message")
	_, err = d.Retract(t.Context(), b.ID, "r2", Retract{Call: theCall, By: Principal{User: "ann"}})
	require.NoError(t, err)
	require.Equal(t, 2, s.commits)
}

func TestDeskRunsALostRaceAgain(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo", "cy")))
	s := newShelf(b)
	s.conflicts = 5
	s.meanwhile = func(b Batch) Batch { return must(t, b, say(b, "bo", Approve)) }
	got, err := desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Equal(t, Approved, got.Approvals[0].Status)
	require.Len(t, got.Approvals[0].Decisions, 2)

	s = newShelf(b)
	s.meanwhile = func(b Batch) Batch { return must(t, b, say(b, "bo", Deny)) }
	_, err = desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrSettled, "the other one settled it")
	require.Zero(t, s.commits)

	s = newShelf(b)
	s.meanwhile = func(b Batch) Batch { // the same request, through another replica
		s.done[RequestOf("r1", say(b, "ann", Approve))] = true
		return must(t, b, say(b, "ann", Approve), say(b, "bo", Approve))
	}
	s.conflicts = 1
	got, err = desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Equal(t, Approved, s.batches[b.ID].Approvals[0].Status)
	require.Equal(t, b.ID, got.ID)

	s = newShelf(b)
	s.loading = func(b Batch) Batch { // and a moment earlier
		s.done[RequestOf("r1", say(b, "ann", Approve))] = true
		return must(t, b, say(b, "ann", Approve), say(b, "bo", Approve))
	}
	got, err = desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.NoError(t, err)
	require.Equal(t, Approved, got.Approvals[0].Status)

	s = newShelf(b)
	s.conflicts = 1 << 30
	_, err = desk(s, nil).Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrConflict, "it does not try for ever")
	require.ErrorIs(t, desk(s, nil).Tick(t.Context(), "?"), ErrNotFound)
}

func TestDeskFailsWhenItCannotKnow(t *testing.T) {
	b := open(t, all(of(1, "ann")))
	s := newShelf(b)
	d := desk(s, nil)
	_, err := d.Decide(t.Context(), "?", "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrNotFound)
	_, err = d.Decide(t.Context(), b.ID, "", say(b, "ann", Approve))
	require.ErrorIs(t, err, ErrInvalid, "all requests without an id would be one")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Decide(ctx, b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, d.Tick(ctx, b.ID), context.Canceled)

	s.answeredErr = errLost
	_, err = d.Decide(t.Context(), b.ID, "r1", say(b, "out", Approve))
	require.ErrorIs(t, err, errLost)
	s.answeredErr, s.down = nil, errLost
	_, err = d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve))
	require.ErrorIs(t, err, errLost)
	require.ErrorIs(t, d.Tick(t.Context(), b.ID), errLost)
	require.Zero(t, s.commits)
}

// A request that repeats a decision changes nothing, also when it arrives again after that
// decision was taken back.
func TestDeskChangesNothingForARepeatedDecision(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	b = must(t, b, say(b, "ann", Approve))
	s := newShelf(b)
	d := desk(s, nil)
	again := func() (Batch, error) { return d.Decide(t.Context(), b.ID, "r1", say(b, "ann", Approve)) }
	got, err := again()
	require.NoError(t, err)
	require.Equal(t, b, got)
	require.Empty(t, s.facts)
	_, err = d.Retract(t.Context(), b.ID, "r2", Retract{Call: theCall, By: Principal{User: "ann"}})
	require.NoError(t, err)
	got, err = again()
	require.NoError(t, err)
	require.Empty(t, got.Approvals[0].Decisions)
	require.Len(t, s.facts, 1)
}

func TestDeskFillsInTheTime(t *testing.T) {
	b := mixed(t)
	now := opened.Add(2 * time.Minute)
	s := newShelf(b)
	d := desk(s, nil)
	cmd := say(b, "ann", Approve)
	cmd.At = time.Time{}
	got, err := d.Decide(t.Context(), b.ID, "r1", cmd)
	require.NoError(t, err)
	require.Equal(t, now, got.Approvals[0].Decisions[0].At)
	got, err = d.Fulfill(t.Context(), b.ID, "r2", Fulfill{Call: "ext", By: "svc", Result: ToolFailed{}})
	require.NoError(t, err)
	require.Equal(t, now, got.Calls[0].Ending.At)
	got, err = d.Withdraw(t.Context(), b.ID, "r3", Withdraw{By: "req"})
	require.NoError(t, err)
	require.Equal(t, now, got.Approvals[1].Ending.At)
	require.True(t, got.Settled())
	require.IsType(t, Resolved{}, s.facts[len(s.facts)-1])
}

func TestDeskExpires(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{of(1, "ann")}, Deadline: opened.Add(2 * time.Minute)})
	early := NewDesk(newShelf(b), nil, nil, func() time.Time { return opened })
	require.NoError(t, early.Tick(t.Context(), b.ID), "nothing is due")

	s := newShelf(b)
	d := desk(s, nil)
	s.conflicts = 3
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() { errs <- d.Tick(t.Context(), b.ID) })
	}
	wg.Wait()
	for range 8 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, Expired, s.batches[b.ID].Approvals[0].Status)
	require.Equal(t, 1, s.commits)
	s.conflicts = 1 << 30
	require.NoError(t, d.Tick(t.Context(), b.ID), "nothing is due any more")
}

func TestDeskExpiresWhatFallsDueLater(t *testing.T) {
	var calls []Deferral
	for i := range 3 {
		calls = append(calls, Deferral{
			Call: ToolCall{ID: ToolCallID(fmt.Sprint("c", i)), Name: "x"},
			Ask:  Ask{Requirement: Requirement{Deadline: opened.Add(time.Duration(i) * time.Hour)}},
		})
	}
	b, _, err := Open(Batch{ID: "b", Run: "r", OpenedAt: opened}, calls, nil)
	require.NoError(t, err)
	s := newShelf(b)
	now := opened
	d := NewDesk(s, nil, nil, func() time.Time { return now })
	for i := range 3 {
		require.NoError(t, d.Tick(t.Context(), b.ID))
		require.Equal(t, i+1, s.commits)
		require.Equal(t, i == 2, s.batches[b.ID].Settled())
		now = now.Add(time.Hour)
	}
}

func TestDeskOfMany(t *testing.T) {
	var users []UserID
	for i := range 40 {
		users = append(users, UserID(fmt.Sprint("u", i)))
	}
	b := open(t, all(of(40, users...)))
	s := newShelf(b)
	d := desk(s, nil)
	var wg sync.WaitGroup
	errs := make(chan error, 2*len(users))
	for _, u := range users {
		for _, r := range []RequestID{"first-", "second-"} { // a double click
			wg.Go(func() {
				_, err := d.Decide(t.Context(), b.ID, r+RequestID(u), say(b, u, Approve))
				errs <- err
			})
		}
	}
	wg.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, ErrSettled, "the second click came after the last signature")
		}
	}
	got := s.batches[b.ID]
	require.Equal(t, Approved, got.Approvals[0].Status)
	require.Len(t, got.Approvals[0].Decisions, 40)
	require.EqualValues(t, 41, got.Version)
}

func TestDeskAmendsUnderTheCurrentPolicy(t *testing.T) {
	args := json.RawMessage(`{"path":"/srv/b"}`)
	base := open(t, all(of(1, "ann", "bo")))
	base.Channel, base.Approvals[0].Gate = "C1", GateRaised
	cmd := Amend{
		Call: theCall, From: base.Approvals[0].Call.Digest, Args: args, By: Principal{User: "ann"},
		Ruling: Permit{}, // whoever sends a ruling along is not believed
	}
	ask := Ask{Requirement: all(of(2, "bo", "cy")), Why: "larger"}
	now := opened.Add(2 * time.Minute)
	strictest := rules(nil).Strictest(now)
	for name, tt := range map[string]struct {
		ruling Ruling
		policy error
		want   Requirement
		err    error
	}{
		"permit keeps the gate":     {Permit{}, nil, base.Approvals[0].Requirement, nil},
		"ask replaces it":           {ask, nil, ask.Requirement, nil},
		"refuse refuses":            {Refuse{Reason: "never"}, nil, Requirement{}, ErrRefused},
		"an error is the strictest": {Permit{}, errLost, strictest, nil},
		"nothing is the strictest":  {nil, nil, strictest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(base)
			var asked Proposal
			d := desk(s, rules(func(p Proposal) (Ruling, error) { asked = p; return tt.ruling, tt.policy }))
			got, err := d.Amend(t.Context(), base.ID, "r1", cmd)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, Proposal{
				Call: ToolCall{ID: theCall, Name: "delete", Args: args}, Gate: GateRaised,
				Agent: "billing", Requester: "req", Channel: "C1", At: now,
			}, asked)
			if err != nil {
				require.Zero(t, s.commits)
				return
			}
			require.Equal(t, tt.want, got.Approvals[0].Requirement)
			require.Equal(t, tt.policy != nil || tt.ruling == nil, got.Approvals[0].Unjudged)
			require.Equal(t, args, s.args[got.Approvals[0].Call.Digest])
			call, err := d.Call(t.Context(), got, theCall)
			require.NoError(t, err)
			require.Equal(t, ToolCall{ID: theCall, Name: "delete", Args: args}, call)

			_, err = d.Amend(t.Context(), base.ID, "r1", cmd)
			require.NoError(t, err, "the same attempt again")
			_, err = d.Amend(t.Context(), base.ID, "r2", cmd)
			require.Error(t, err, "another one on arguments that are gone")
			require.Equal(t, 1, s.commits)
		})
	}

	s := newShelf(base)
	d := desk(s, rules(func(Proposal) (Ruling, error) { return Permit{}, nil }))
	bad := cmd
	bad.Args = json.RawMessage(`{"a":1,"a":2}`)
	_, err := d.Amend(t.Context(), base.ID, "r1", bad)
	require.ErrorIs(t, err, ErrInvalid)
	bad = cmd
	bad.Call = "?"
	_, err = d.Amend(t.Context(), base.ID, "r1", bad)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = d.Call(t.Context(), base, "?")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = d.Call(t.Context(), base, theCall)
	require.ErrorIs(t, err, ErrNotFound, "no such document")
	s.args[base.Approvals[0].Call.Digest] = args
	_, err = d.Call(t.Context(), base, theCall)
	require.ErrorIs(t, err, ErrStale, "other bytes than were signed")
}

// several is a batch of n calls that ann and bo sign, each call alone.
func several(t *testing.T, n int) (Batch, func(UserID, Verdict) []Decide) {
	t.Helper()
	var calls []Deferral
	for i := range n {
		calls = append(calls, Deferral{
			Call: ToolCall{ID: ToolCallID(fmt.Sprint("c", i)), Name: "x"},
			Ask:  Ask{Requirement: all(of(1+i%2, "ann", "bo"))},
		})
	}
	b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: opened}, calls, nil)
	require.NoError(t, err)
	return b, func(u UserID, v Verdict) []Decide {
		var cmds []Decide
		for _, a := range b.Approvals {
			cmds = append(cmds, Decide{Decision{Call: a.Call.ID, By: Principal{User: u}, Verdict: v, Digest: a.Call.Digest}})
		}
		return cmds
	}
}

func TestDeskDecidesSeveralInOneCommit(t *testing.T) {
	b, each := several(t, 4)
	s := newShelf(b)
	d := desk(s, nil)
	_, err := d.Decide(t.Context(), b.ID, "r0", each("bo", Deny)[0])
	require.NoError(t, err)

	cmds := each("ann", Approve)
	cmds[3].Digest = Digest{1}
	cmds = append(cmds, Decide{Decision{Call: "?", By: Principal{User: "ann"}}})
	check := func(got Batch, skipped []Skipped, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Len(t, skipped, 3)
		for i, want := range []Skipped{{"c0", ErrSettled}, {"c3", ErrStale}, {"?", ErrNotFound}} {
			require.Equal(t, want.Call, skipped[i].Call)
			require.ErrorIs(t, skipped[i].Err, want.Err)
		}
		require.Equal(t, Pending, got.Approvals[1].Status)
		require.Equal(t, Approved, got.Approvals[2].Status)
		require.EqualValues(t, 4, got.Version)
		require.Equal(t, 2, s.commits)
	}
	s.loseReplies = 1
	_, _, err = d.DecideAll(t.Context(), b.ID, "r1", cmds)
	require.ErrorIs(t, err, errLost)
	check(d.DecideAll(t.Context(), b.ID, "r1", cmds))
	check(d.DecideAll(t.Context(), b.ID, "r1", cmds))
	require.Equal(t, []time.Duration{0, 25 * time.Hour}, s.kept, "longer than a sheet may be gone on with")

	_, skipped, err := d.DecideAll(t.Context(), b.ID, "r2", each("out", Approve))
	require.NoError(t, err)
	require.Len(t, skipped, 4)
	require.Equal(t, 2, s.commits, "an outsider redraws no card")

	var own []Decide
	for _, cmd := range cmds {
		if cmd.Call == "c1" && cmd.By.User == "ann" {
			own = append(own, cmd)
		}
	}
	_, skipped, err = d.DecideAll(t.Context(), b.ID, "again", own)
	require.NoError(t, err)
	require.Empty(t, skipped, "it is decided already")

	// What was taken back since is not said to be decided.
	_, err = d.Retract(t.Context(), b.ID, "r3", Retract{Call: "c1", By: Principal{User: "ann"}})
	require.NoError(t, err)
	_, skipped, err = d.DecideAll(t.Context(), b.ID, "r1", cmds)
	require.NoError(t, err)
	require.Len(t, skipped, 4)
	require.Equal(t, Skipped{"c1", skipped[1].Err}, skipped[1])
	require.ErrorIs(t, skipped[1].Err, ErrAnswered)
	_, skipped, err = d.DecideAll(t.Context(), b.ID, "again", own)
	require.NoError(t, err)
	require.Equal(t, []Skipped{{"c1", skipped[0].Err}}, skipped)
	require.ErrorIs(t, skipped[0].Err, ErrAnswered)

	_, _, err = d.DecideAll(t.Context(), "?", "r4", cmds)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestDeskDecidesFiveHundredInOneCommit(t *testing.T) {
	b, each := several(t, 500)
	s := newShelf(b)
	got, skipped, err := desk(s, nil).DecideAll(t.Context(), b.ID, "r1", each("ann", Deny))
	require.NoError(t, err)
	require.Empty(t, skipped)
	require.True(t, got.Settled())
	require.Equal(t, 1, s.commits)
}

// TestARequestIDUsedForTwoThingsSwallowsNeither: an adapter that mints ids
// badly must not turn an acknowledged click into nothing.
func TestARequestIDUsedForTwoThingsSwallowsNeither(t *testing.T) {
	b := open(t, all(of(2, "ann", "bo")))
	s := newShelf(b)
	d := desk(s, nil)
	_, err := d.Decide(t.Context(), b.ID, "same", say(b, "ann", Approve))
	require.NoError(t, err)
	got, err := d.Decide(t.Context(), b.ID, "same", say(b, "bo", Approve))
	require.NoError(t, err)
	require.Equal(t, Approved, got.Approvals[0].Status)

	_, err = d.Decide(t.Context(), b.ID, "same", say(b, "bo", Deny))
	require.ErrorIs(t, err, ErrSettled, "the opposite is not what was said before")
	_, err = d.Withdraw(t.Context(), b.ID, "same", Withdraw{By: "ann"})
	require.ErrorIs(t, err, ErrSettled)
	require.Equal(t, 2, s.commits)
}

// TestDeskChecksWhatSomeoneWrote: new arguments fit their tool before the
// policy sees them, and nobody learns of the tool who may not change them.
func TestDeskChecksWhatSomeoneWrote(t *testing.T) {
	b := open(t, all(of(1, "ann", "bo")))
	cmd := Amend{
		Call: theCall, From: b.Approvals[0].Call.Digest, Args: json.RawMessage(`{"path":7}`), By: Principal{User: "ann"},
	}
	edit := func(change func(*Amend)) Amend { c := cmd; change(&c); return c }
	wrong := errors.New("path: a text is needed")
	for name, tt := range map[string]struct {
		cmd     Amend
		answer  error
		none    bool
		checked int
		ruled   int
		err     error
	}{
		"it fits":             {cmd: cmd, checked: 1, ruled: 1},
		"it does not fit":     {cmd: cmd, answer: wrong, checked: 1, err: wrong},
		"nothing can check":   {cmd: cmd, none: true, err: ErrInvalid},
		"by an outsider":      {cmd: edit(func(a *Amend) { a.By.User = "out" }), answer: wrong, err: ErrNotEligible},
		"of an old card":      {cmd: edit(func(a *Amend) { a.From = Digest{1} }), answer: wrong, err: ErrStale},
		"of no such call":     {cmd: edit(func(a *Amend) { a.Call = "?" }), answer: wrong, err: ErrNotFound},
		"what it already was": {cmd: edit(func(a *Amend) { a.Args = theArgs }), answer: wrong},
	} {
		t.Run(name, func(t *testing.T) {
			var order []string
			check := func(_ context.Context, got Batch, c ToolCall) error {
				require.Equal(t, b, got)
				require.Equal(t, ToolCall{ID: theCall, Name: "delete", Args: tt.cmd.Args}, c)
				order = append(order, "check")
				return tt.answer
			}
			if tt.none {
				check = nil
			}
			p := rules(func(Proposal) (Ruling, error) { order = append(order, "rule"); return Permit{}, nil })
			s := newShelf(b)
			_, err := NewDesk(s, p, check, func() time.Time { return opened }).Amend(t.Context(), b.ID, "r1", tt.cmd)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, append(slices.Repeat([]string{"check"}, tt.checked), slices.Repeat([]string{"rule"}, tt.ruled)...), append([]string{}, order...))
			require.Equal(t, tt.ruled, s.commits)
		})
	}
}

// TestTimeMovesABatchInOneCommit: what is overdue ends and the rest climbs, and
// many sweepers do it once.
func TestTimeMovesABatchInOneCommit(t *testing.T) {
	soon, late := opened.Add(time.Minute), opened.Add(time.Hour)
	ask := func(deadline time.Time, ladder ...Rung) Ask {
		return Ask{Requirement: Requirement{Quorums: []Quorum{of(1, "ann")}, Deadline: deadline, Ladder: ladder}}
	}
	b, _, err := Open(Batch{ID: "b", Run: "r", OpenedAt: opened}, []Deferral{
		{Call: ToolCall{ID: "ends", Name: "x"}, Ask: ask(soon)},
		{Call: ToolCall{ID: "climbs", Name: "x"}, Ask: ask(late, Rung{At: soon, Kind: Remind}, Rung{At: late, Kind: Remind})},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, soon, b.Next())
	s := newShelf(b)
	now := soon.Add(-1)
	d := NewDesk(s, nil, nil, func() time.Time { return now })
	require.NoError(t, d.Tick(t.Context(), b.ID))
	require.Zero(t, s.commits)

	now = soon
	s.conflicts = 2
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() { errs <- d.Tick(t.Context(), b.ID) })
	}
	wg.Wait()
	for range 8 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, 1, s.commits)
	require.Equal(t, []Event{
		Settled{Batch: "b", Call: "ends", Status: Expired, At: soon},
		Reminded{Batch: "b", Call: "climbs", Rung: 1, At: soon},
	}, s.facts)
	require.Equal(t, late, s.batches["b"].Next(), "the deadline, at which no rung is taken")

	now = late
	require.NoError(t, d.Tick(t.Context(), b.ID))
	require.True(t, s.batches["b"].Settled())
	require.Len(t, s.facts, 4, "the end, and that it was the last")
	require.True(t, s.batches["b"].Next().IsZero())
}
