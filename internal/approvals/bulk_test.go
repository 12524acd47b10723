package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

var errGone = errors.New("the process is gone")

// cabinet is a shelf that keeps sheets too, and a process that ends at its n-th
// call of the store: the call is not made, or made and not answered. It is
// written by hand so that a crash at every single call can be tried in a second;
// the real store is held to the same sheets in package state.
type cabinet struct {
	*shelf
	mu     sync.Mutex
	sheets map[SheetID]Sheet
	seen   map[RequestID]bool
	log    []Sheet // every sheet that was committed

	die   int // 0 for never
	after bool
	calls int
	sick  map[BatchID]error
}

func newCabinet(batches ...Batch) *cabinet {
	c := &cabinet{shelf: newShelf(Batch{}), sheets: map[SheetID]Sheet{}, seen: map[RequestID]bool{}, sick: map[BatchID]error{}}
	for _, b := range batches {
		c.batches[b.ID] = b
	}
	return c
}

// strike reports whether the call is made and whether it is answered.
func (c *cabinet) strike() (made, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	return c.die == 0 || c.calls < c.die || c.calls == c.die && c.after, c.die == 0 || c.calls < c.die
}

func struck[T any](c *cabinet, f func() (T, error)) (T, error) {
	made, answered := c.strike()
	var v T
	var err error
	if made {
		v, err = f()
	}
	if !answered {
		return *new(T), errGone
	}
	return v, err
}

func (c *cabinet) Batch(ctx context.Context, id BatchID) (Batch, error) {
	return struck(c, func() (Batch, error) {
		if err := c.sick[id]; err != nil {
			return Batch{}, err
		}
		return c.shelf.Batch(ctx, id)
	})
}

func (c *cabinet) Answered(ctx context.Context, id BatchID, r RequestID) (bool, error) {
	return struck(c, func() (bool, error) { return c.shelf.Answered(ctx, id, r) })
}

func (c *cabinet) CommitBatch(ctx context.Context, b BatchCommit) error {
	_, err := struck(c, func() (bool, error) { return true, c.shelf.CommitBatch(ctx, b) })
	return err
}

func (c *cabinet) Sheet(_ context.Context, id SheetID) (Sheet, error) {
	return struck(c, func() (Sheet, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		s, ok := c.sheets[id]
		if !ok {
			return Sheet{}, ErrNotFound
		}
		return s, nil
	})
}

func (c *cabinet) CommitSheet(_ context.Context, s SheetCommit) error {
	_, err := struck(c, func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch old := c.sheets[s.Sheet.ID]; {
		case c.seen[s.Request]:
			return true, nil
		case old.Version != s.Before.Version:
			return false, ErrConflict
		}
		c.seen[s.Request] = true
		c.sheets[s.Sheet.ID] = s.Sheet
		c.log = append(c.log, s.Sheet)
		return true, nil
	})
	return err
}

// office is a cabinet with services that look at one clock.
type office struct {
	*cabinet
	now time.Time
}

func newOffice(batches ...Batch) *office {
	return &office{newCabinet(batches...), opened.Add(time.Minute)}
}

func (o *office) bulk(owner string) *Bulk {
	clock := func() time.Time { return o.now }
	return NewBulk(NewDesk(o.cabinet, rules(nil), nil, clock), o.cabinet, owner, clock)
}

// bulkBatches is n batches of two calls that ann may approve, and "req" may not.
func bulkBatches(t *testing.T, n int) []Batch {
	t.Helper()
	var out []Batch
	for i := range n {
		r := Requirement{Quorums: []Quorum{of(1, "ann", "bo", "req")}, Separation: true, Deadline: deadline}
		b, _, err := Open(
			Batch{ID: BatchID(NewID("batch", i%Partitions, fmt.Sprint(i))), Run: "run-17-r", Requester: "req", OpenedAt: opened},
			[]Deferral{
				{Call: ToolCall{ID: "one", Name: "delete", Args: theArgs}, Ask: Ask{Requirement: r}},
				{Call: ToolCall{ID: "two", Name: "delete", Args: theArgs}, Ask: Ask{Requirement: r}},
			}, nil)
		require.NoError(t, err)
		out = append(out, b)
	}
	return out
}

// listing is a sheet of all calls of the batches; the second of each is risky.
func listing(by UserID, batches ...Batch) Sheet {
	s := Sheet{ID: sheetID, By: by, Verdict: Approve}
	for _, b := range batches {
		for i, a := range b.Approvals {
			s.Lines = append(s.Lines, b.Line(a, i == 1))
		}
	}
	return s
}

// show shows and submits a sheet.
func (o *office) show(t *testing.T, s Sheet, ticked ...int) Sheet {
	t.Helper()
	_, err := o.bulk("w").Show(t.Context(), s)
	require.NoError(t, err)
	s, err = o.bulk("w").Submit(t.Context(), s.ID, "click", Principal{User: s.By}, ticked, "")
	require.NoError(t, err)
	return s
}

// whys is what became of each line, in order.
func whys(s Sheet) []string {
	var out []string
	for _, l := range s.Lines {
		out = append(out, string(l.Outcome)+":"+string(l.Why))
	}
	return out
}

func TestABulkDecisionDecidesWhatWasChosenAndNothingElse(t *testing.T) {
	t.Parallel()
	batches := bulkBatches(t, 3)
	o := newOffice(batches...)
	submitted := o.show(t, listing("ann", batches[:2]...), 3)
	require.Zero(t, o.commits, "submitting decides nothing")
	before := len(o.log)
	_, err := o.bulk("w").Submit(t.Context(), sheetID, "click", Principal{User: "ann"}, []int{3}, "")
	require.NoError(t, err, "a click that is delivered twice")
	require.Len(t, o.log, before)

	at := o.now
	o.now = deadline.Add(time.Minute) // nobody has swept, and she signed in time
	require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
	s := o.sheets[sheetID]
	require.Equal(t, SheetFinished, s.Status)
	require.Equal(t, []string{"signed:", ":", "signed:", "signed:"}, whys(s))
	require.Equal(t, 2, o.commits, "one for each batch")
	for i, want := range [][]Status{{Approved, Pending}, {Approved, Approved}, {Pending, Pending}} {
		for j, a := range o.batches[batches[i].ID].Approvals {
			require.Equal(t, want[j], a.Status)
			for _, d := range a.Decisions {
				require.Equal(t, at, d.At, "the time is that of the submission")
			}
		}
	}
	require.Equal(t, submitted.SubmittedAt, at)
	require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
	require.Equal(t, s, o.sheets[sheetID], "what is finished is left alone")
}

func TestWhatCannotBeSignedIsSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	b := bulkBatches(t, 9)
	amended := b[3]
	amended.Approvals = slices.Clone(amended.Approvals)
	amended.Approvals[0].Call.Digest = Digest{1}
	stillThere := func(b Batch, cmd Command) Batch { return must(t, b, cmd) }
	sign := func(b Batch, who UserID, v Verdict) Decide {
		d := say(b, who, v)
		d.Call = "one"
		return d
	}
	for name, c := range map[string]struct {
		by   UserID
		now  Batch
		want Why
	}{
		"nothing is in the way":   {"ann", b[0], ""},
		"the same said before":    {"ann", stillThere(b[0], sign(b[0], "ann", Approve)), ""},
		"settled":                 {"ann", stillThere(b[1], sign(b[1], "bo", Deny)), WhySettled},
		"expired":                 {"ann", stillThere(b[2], Expire{At: deadline}), WhyExpired},
		"the arguments changed":   {"ann", amended, WhyStale},
		"not an approver":         {"cy", b[4], WhyNotEligible},
		"their own request":       {"req", b[5], WhyOwnRequest},
		"a batch that is gone":    {"ann", Batch{}, WhyGone},
		"a batch nobody can read": {"ann", Batch{ID: "unreadable"}, WhyUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			was := b[8]
			for _, x := range b {
				if x.ID == c.now.ID {
					was = x
				}
			}
			o := newOffice(was, b[7])
			o.show(t, listing(c.by, was, b[7]))
			switch c.now.ID {
			case "":
				delete(o.batches, was.ID)
			case "unreadable":
				o.sick[was.ID] = fmt.Errorf("decode: %w", ErrUnreadable)
			default:
				o.batches[was.ID] = c.now
			}
			require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
			s := o.sheets[sheetID]
			require.Equal(t, SheetFinished, s.Status, "the rest goes on")
			require.Equal(t, c.want, s.Lines[0].Why)
			require.NotEmpty(t, s.Lines[2].Outcome)
		})
	}
}

func TestAnOppositeWordIsSkipped(t *testing.T) {
	t.Parallel()
	two := Requirement{Quorums: []Quorum{of(2, "ann", "bo", "cy")}, Deny: 2}
	b := open(t, two)
	o := newOffice(b)
	o.show(t, Sheet{ID: sheetID, By: "ann", Verdict: Deny, Lines: []Line{b.Line(b.Approvals[0], false)}})
	o.batches[b.ID] = must(t, b, say(b, "ann", Approve))
	require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
	require.Equal(t, WhyDecided, o.sheets[sheetID].Lines[0].Why)
}

func TestACallThatNeedsAReasonIsSignedWithTheOneOfTheSheet(t *testing.T) {
	t.Parallel()
	b := open(t, Requirement{Quorums: []Quorum{of(1, "ann")}, ReasonNeeded: true})
	for reason, want := range map[string]Why{"": WhyReason, "it is safe": ""} {
		o := newOffice(b)
		_, err := o.bulk("w").Show(t.Context(), Sheet{ID: sheetID, By: "ann", Verdict: Approve, Lines: []Line{b.Line(b.Approvals[0], false)}})
		require.NoError(t, err)
		_, err = o.bulk("w").Submit(t.Context(), sheetID, "click", Principal{User: "ann"}, nil, reason)
		require.NoError(t, err)
		require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
		require.Equal(t, want, o.sheets[sheetID].Lines[0].Why)
	}
}

// A call that came between the list and the click, or whose arguments changed,
// is not decided, and a sheet that someone changed in the store decides
// nothing at all.
func TestTheFrozenSetIsWhatIsDecided(t *testing.T) {
	t.Parallel()
	batches := bulkBatches(t, 3)
	for name, change := range map[string]func(s *Sheet){
		"one call more": func(s *Sheet) {
			more := batches[2].Line(batches[2].Approvals[0], false)
			more.Chosen = true
			s.Lines = append(slices.Clone(s.Lines), more)
		},
		"one argument changed": func(s *Sheet) {
			s.Lines = slices.Clone(s.Lines)
			s.Lines[0].Digest[0]++
		},
	} {
		o := newOffice(batches...)
		s := o.show(t, listing("ann", batches[:2]...))
		change(&s)
		o.sheets[sheetID] = s
		require.ErrorIs(t, o.bulk("w").Work(t.Context(), sheetID), ErrInvalid, name)
		_, err := o.bulk("w").Submit(t.Context(), sheetID, "again", Principal{User: "ann"}, nil, "")
		require.ErrorIs(t, err, ErrInvalid, name)
		require.Zero(t, o.commits, name)
	}
}

// The process ends at each of its calls of the store in turn, before it and
// after it, and another one finishes: nothing is approved twice, nothing is lost.
func TestABulkDecisionIsFinishedAfterACrashAtAnyCall(t *testing.T) {
	t.Parallel()
	batches := bulkBatches(t, 70) // more than are recorded at a time
	points := 0
	for n, more := 1, true; more; n += 3 {
		more = false
		for _, after := range []bool{false, true} {
			o := newOffice(batches...)
			frozen := o.show(t, listing("ann", batches...))
			o.calls, o.die, o.after = 0, n, after
			err := o.bulk("doomed").Work(t.Context(), sheetID)
			if o.calls >= n {
				require.ErrorIs(t, err, errGone)
				more = true
			}
			o.die = 0
			require.NoError(t, o.bulk("heir").Work(t.Context(), sheetID), "it is held, and that is no failure")
			o.now = o.now.Add(time.Hour)
			require.NoError(t, o.bulk("heir").Work(t.Context(), sheetID))

			s := o.sheets[sheetID]
			require.Equal(t, SheetFinished, s.Status)
			require.Equal(t, SheetSummary{Signed: 70, NotChosen: 70}, s.Summary())
			require.NoError(t, s.Check())
			require.Equal(t, frozen.Seal, s.Seal)
			require.Equal(t, 70, o.commits, "one for each batch, crash or not")
			for _, b := range o.batches {
				if b.ID == "" {
					continue
				}
				require.Len(t, b.Approvals[0].Decisions, 1)
				require.Equal(t, frozen.SubmittedAt, b.Approvals[0].Decisions[0].At)
				require.Empty(t, b.Approvals[1].Decisions, "it was not chosen")
			}
			require.LessOrEqual(t, len(o.log), 2+3+2, "sheet commits are few")
		}
		points++
	}
	require.Greater(t, points, 60)
}

// What was approved before a crash and then taken back is not signed again, while
// its request is known and after.
func TestWhatWasTakenBackIsNotSignedAgain(t *testing.T) {
	t.Parallel()
	b := open(t, all(of(2, "ann", "bo")))
	for _, c := range []struct {
		wait time.Duration
		why  Why
	}{{time.Minute, WhyTakenBack}, {26 * time.Hour, WhyTooLate}} {
		o := newOffice(b)
		o.show(t, Sheet{ID: sheetID, By: "ann", Verdict: Approve, Lines: []Line{b.Line(b.Approvals[0], false)}})
		o.die = o.calls + 6 // the sheet, the claim, whether it is answered, the batch, the decision; then its outcome
		require.ErrorIs(t, o.bulk("doomed").Work(t.Context(), sheetID), errGone)
		o.die = 0
		require.Len(t, o.batches[b.ID].Approvals[0].Decisions, 1)
		o.batches[b.ID] = must(t, o.batches[b.ID], Retract{Call: theCall, By: Principal{User: "ann"}, At: o.now})
		o.now = o.now.Add(c.wait)
		if c.wait > time.Hour {
			clear(o.done)
		}
		require.NoError(t, o.bulk("heir").Work(t.Context(), sheetID))
		require.Equal(t, c.why, o.sheets[sheetID].Lines[0].Why)
		require.Empty(t, o.batches[b.ID].Approvals[0].Decisions)
	}
}

// An error of one batch leaves its lines open and the others are recorded.
func TestAnErrorOfTheStoreIsTriedAgain(t *testing.T) {
	t.Parallel()
	batches := bulkBatches(t, 100)
	o := newOffice(batches...)
	o.show(t, listing("ann", batches...))
	broken := errors.New("broken")
	o.sick[batches[3].ID] = broken
	require.ErrorIs(t, o.bulk("w").Work(t.Context(), sheetID), broken)
	require.Equal(t, SheetSummary{Signed: 99, NotChosen: 100, Open: 1}, o.sheets[sheetID].Summary())
	delete(o.sick, batches[3].ID)
	require.NoError(t, o.bulk("w").Work(t.Context(), sheetID))
	require.Equal(t, SheetSummary{Signed: 100, NotChosen: 100}, o.sheets[sheetID].Summary())
	require.Equal(t, 100, o.commits)
}

// Two workers at the same time: one has the sheet, and the other leaves it.
func TestTwoWorkersDoNotShareASheet(t *testing.T) {
	t.Parallel()
	batches := bulkBatches(t, 20)
	o := newOffice(batches...)
	o.show(t, listing("ann", batches...))
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = o.bulk(fmt.Sprint("w", i)).Work(t.Context(), sheetID) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, SheetFinished, o.sheets[sheetID].Status)
	require.Equal(t, 20, o.commits)
	require.Len(t, o.log, 4, "shown, submitted, claimed, finished")
}
