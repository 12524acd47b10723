package memo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// batch has a card to draw.
const batch = "batch-07-one"

// document is what the records of these tests hold.
type document struct {
	Things []string `json:"things"`
}

// drawers are two processes with one store and one clock. due reports whether
// the card is still to be drawn.
func drawers(t *testing.T) (due func() bool, wait func(time.Duration), l Notes[document]) {
	t.Helper()
	client := statetest.Miniredis(t)
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return now }
	s, err := state.Open(t.Context(), state.Options{Client: client, Now: clock})
	require.NoError(t, err)
	b, events, err := approvals.Open(approvals.Batch{ID: batch, Run: "run-07-one", Requester: "alice", OpenedAt: now},
		nil, []approvals.Deferral{{Call: approvals.ToolCall{ID: "c", Name: "look", Args: []byte(`{}`)}}})
	require.NoError(t, err)
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Batch: b, Events: events}))
	due = func() bool {
		at, err := s.DueAt(t.Context(), state.Cards, batch)
		require.NoError(t, err)
		return !at.IsZero()
	}
	return due, func(d time.Duration) { now = now.Add(d) }, Notes[document]{Memos: s, Surface: "cards", Now: clock}
}

// A claim lasts for all processes equally long, however much their clocks differ from each
// other: two who draw a card at the same time would post it twice.
func TestAClaimHoldsAlsoWhereTheClockIsAhead(t *testing.T) {
	_, wait, l := drawers(t)
	ahead, behind := l, l
	ahead.Now = func() time.Time { return l.Now().Add(7 * time.Second) }
	behind.Now = func() time.Time { return l.Now().Add(-7 * time.Second) }
	h, err := behind.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(lease - time.Second)
	_, err = ahead.Claim(t.Context(), batch)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, h.Save(t.Context(), func(*document) {}))
	wait(lease)
	_, err = ahead.Claim(t.Context(), batch)
	require.NoError(t, err, "it has ended for the one behind as well")
}

// Who lost its claim to another drawer saves nothing over what that one does,
// and does not end that one's claim.
func TestADrawerThatWasTooSlowSavesNothing(t *testing.T) {
	_, wait, l := drawers(t)
	slow, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(lease)
	quick, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, quick.Save(t.Context(), func(a *document) { a.Things = append(a.Things, "2.2") }))

	for name, end := range map[string]func() error{
		"save": func() error {
			return slow.Save(t.Context(), func(a *document) { a.Things = append(a.Things, "1.1") })
		},
		"release": func() error { return slow.Release(t.Context(), 1) },
	} {
		require.ErrorIs(t, end(), ErrBusy, name)
	}
	_ = slow.Abandon(t.Context(), nil)
	n, _, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, quick.owner, n.Owner)
	require.Equal(t, []string{"2.2"}, n.Body.Things)
}

// Most drawings are over in a moment. Whoever finds that somebody else draws
// looks again soon, and less often the longer that goes on.
func TestAClaimIsLookedAtAgainSoon(t *testing.T) {
	_, wait, l := drawers(t)
	_, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	for _, c := range []struct{ passes, again time.Duration }{
		{0, 50 * time.Millisecond},
		{20 * time.Millisecond, 50 * time.Millisecond},
		{380 * time.Millisecond, 400 * time.Millisecond},
		{4 * time.Second, time.Second},
		{lease - 4500*time.Millisecond, 100 * time.Millisecond},
	} {
		wait(c.passes)
		_, err := l.Claim(t.Context(), batch)
		var later *slackapi.LaterError
		require.ErrorAs(t, err, &later)
		require.Equal(t, c.again, later.After)
	}
}

// What was added while somebody drew has not been drawn by them, so the due
// entry stays.
func TestACopyThatIsFoundMeanwhileIsDrawnToo(t *testing.T) {
	due, _, l := drawers(t)
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, l.Edit(t.Context(), batch, func(a *document) { a.Things = append(a.Things, "9.9") }))
	require.NoError(t, h.Release(t.Context(), 1))
	require.True(t, due())
	n, _, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, n.Owner, "the next one may draw at once")
	require.Len(t, n.Body.Things, 1)

	h, err = l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context(), 1))
	require.False(t, due())
}

// A drawing that is to be looked at in an hour, because more people may be asked then, is
// looked at soon if something was added meanwhile: nothing else would draw it.
func TestACopyThatIsFoundMeanwhileDoesNotWait(t *testing.T) {
	_, _, l := drawers(t)
	for _, c := range []struct {
		adds  bool
		after time.Duration
	}{{false, time.Hour}, {true, lookAgain(0)}, {false, time.Hour}} {
		err := l.Reconcile(t.Context(), batch, func(ctx context.Context, h *Claim[document]) (int64, error) {
			if c.adds {
				require.NoError(t, l.Edit(ctx, batch, func(a *document) { a.Things = append(a.Things, "9.9") }))
			}
			return 1, &slackapi.LaterError{After: time.Hour, Err: io.EOF}
		})
		var later *slackapi.LaterError
		require.ErrorAs(t, err, &later)
		require.Equal(t, c.after, later.After)
		require.ErrorIs(t, err, io.EOF)
	}
}

// What a drawer has only noted is in the record once it releases its claim, also
// where someone else has changed the record meanwhile.
func TestWhatIsNotedIsStoredWithTheNextSave(t *testing.T) {
	due, _, l := drawers(t)
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	thing := func(name string) func(*document) {
		return func(a *document) { a.Things = append(a.Things, name) }
	}
	require.NoError(t, h.Note(t.Context(), thing("1.1")))
	require.NoError(t, h.Note(t.Context(), thing("2.2")))
	require.Equal(t, []string{"1.1", "2.2"}, h.Body.Things)
	n, version, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, n.Body.Things)
	require.EqualValues(t, 1, version)
	require.NoError(t, l.Edit(t.Context(), batch, thing("9.9")))
	require.NoError(t, h.Release(t.Context(), 1))
	n, _, err = l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, []string{"9.9", "1.1", "2.2"}, n.Body.Things)
	require.True(t, due())
}

// A note renews the claim when the next call to Slack might outlast it.
func TestANoteRenewsAClaimThatIsGettingOld(t *testing.T) {
	_, wait, l := drawers(t)
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(l.noteFor() + time.Millisecond)
	require.NoError(t, h.Note(t.Context(), func(*document) {}))
	wait(slackapi.CallTimeout + l.noteFor())
	_, err = l.Claim(t.Context(), batch)
	require.ErrorIs(t, err, ErrBusy)
}

// A Slack counts the calls that reach it.
type slack struct{ calls int }

func (s *slack) RoundTrip(*http.Request) (*http.Response, error) {
	s.calls++
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"ok":true,"ts":"1.1"}`))}, nil
}

// sends returns a drawing that sends a message.
func (s *slack) sends() func(context.Context, *Claim[document]) (int64, error) {
	api := slackapi.New(func() string { return "token" }, "https://slack.example/api", s)
	return func(ctx context.Context, _ *Claim[document]) (int64, error) {
		return 1, api.Update(ctx, "C1", "1.1", blockkit.Message{})
	}
}

// The claim is looked at right before each call to Slack: it is renewed if it may end
// before the call does, and nothing is sent if someone else has taken it.
func TestNothingIsSentWithoutAClaim(t *testing.T) {
	_, wait, l := drawers(t)
	s := &slack{}
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, h.Draw(t.Context(), func(ctx context.Context, h *Claim[document]) (int64, error) {
		wait(lease + time.Minute) // nobody else wants it
		_, err := s.sends()(ctx, h)
		wait(slackapi.CallTimeout)
		_, busy := l.Claim(ctx, batch)
		require.ErrorIs(t, busy, ErrBusy)
		return 0, err
	}))
	require.Equal(t, 1, s.calls)

	h, err = l.Claim(t.Context(), batch)
	require.NoError(t, err)
	err = h.Draw(t.Context(), func(ctx context.Context, h *Claim[document]) (int64, error) {
		wait(lease)
		_, err := l.Claim(ctx, batch)
		require.NoError(t, err)
		_, err = s.sends()(ctx, h)
		require.ErrorIs(t, err, ErrLost)
		_, err = s.sends()(ctx, h)
		return 0, err
	})
	require.ErrorIs(t, err, ErrLost)
	require.Equal(t, 1, s.calls)
}

// What a drawer sent that has lost its claim may cover what is drawn now. The record says
// then that nothing is drawn, and is due; but not while someone draws it, who would store
// again what is covered.
func TestWhatMayBeCoveredIsDrawnAnew(t *testing.T) {
	due, wait, l := drawers(t)
	l.Due, l.Outdate = "cards", func(d *document) { d.Things = nil }
	slow, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	err = slow.Draw(t.Context(), func(ctx context.Context, h *Claim[document]) (int64, error) {
		version, err := (&slack{}).sends()(ctx, h)
		wait(lease)
		quick, taken := l.Claim(ctx, batch)
		require.NoError(t, taken)
		require.NoError(t, quick.Note(ctx, func(d *document) { d.Things = []string{"newest"} }))
		left, busy := l.outdate(ctx, batch, false)
		require.NoError(t, busy)
		require.Positive(t, left)
		require.NoError(t, quick.Release(ctx, 1))
		require.False(t, due())
		return version, err
	})
	require.ErrorIs(t, err, ErrLost)
	require.True(t, due())
	n, _, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, n.Body.Things)
	require.Empty(t, n.Owner)
}

// A drawer that had sent nothing covers nothing.
func TestALostClaimUnderWhichNothingWasSentIsForgotten(t *testing.T) {
	due, wait, l := drawers(t)
	l.Due, l.Outdate = "cards", func(d *document) { d.Things = nil }
	slow, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.ErrorIs(t, slow.Draw(t.Context(), func(ctx context.Context, _ *Claim[document]) (int64, error) {
		wait(lease)
		quick, err := l.Claim(ctx, batch)
		require.NoError(t, err)
		return 1, quick.Release(ctx, 1)
	}), ErrLost)
	require.False(t, due())
}

// A short claim ends with its lease. Slack may take a call of a process that died after
// that, so whoever takes the claim over draws at once, and again when no such call can
// arrive any more.
func TestAClaimThatWasTakenOverIsDrawnTwice(t *testing.T) {
	due, wait, l := drawers(t)
	l.Due, l.Outdate, l.Lease = "cards", func(d *document) { d.Things = nil }, time.Second
	_, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(time.Second)
	again := errors.New("not everything could be drawn")
	for i, end := range []error{nil, again, nil} {
		h, err := l.Claim(t.Context(), batch)
		require.NoError(t, err)
		err = h.Draw(t.Context(), func(ctx context.Context, h *Claim[document]) (int64, error) {
			return 1, errors.Join(end, h.Save(ctx, func(d *document) { d.Things = []string{"newest"} }))
		})
		n, _, loaded := l.Load(t.Context(), batch)
		require.NoError(t, loaded)
		switch i {
		case 0:
			var later *slackapi.LaterError
			require.ErrorAs(t, err, &later)
			require.Equal(t, lease-lease/8-time.Second+time.Second/8, later.After)
			require.Empty(t, n.Body.Things)
			require.True(t, due())
			wait(later.After)
		case 1:
			require.ErrorIs(t, err, again)
			require.True(t, due())
		case 2:
			require.NoError(t, err)
			require.Equal(t, []string{"newest"}, n.Body.Things)
			require.False(t, due())
		}
	}
}

// A claim of the usual length outlasts every call that was begun under it.
func TestAUsualClaimThatWasTakenOverIsDrawnOnce(t *testing.T) {
	due, wait, l := drawers(t)
	l.Due, l.Outdate, l.Lease = "cards", func(d *document) { d.Things = nil }, 30*time.Second
	_, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(lease)
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context(), 1))
	require.False(t, due())
}

// What a drawer that took a claim over could not draw is drawn again, and so is what it
// could.
func TestAClaimThatWasTakenOverAndAbandonedIsOutdated(t *testing.T) {
	_, wait, l := drawers(t)
	l.Due, l.Outdate, l.Lease = "cards", func(d *document) { d.Things = nil }, time.Second
	_, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	wait(time.Second)
	h, err := l.Claim(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, h.Note(t.Context(), func(d *document) { d.Things = []string{"newest"} }))
	require.ErrorIs(t, h.Abandon(t.Context(), errLost()), ErrLost)
	n, _, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, n.Body.Things)
}

// A call to Slack may take longer than a claim lasts: the claim is renewed meanwhile.
func TestAClaimIsRenewedWhileItsHolderDraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Notes[document]{Memos: &records{}, Surface: "cards", Now: time.Now, Lease: 2 * time.Second}
		h, err := l.Claim(t.Context(), batch)
		require.NoError(t, err)
		require.NoError(t, h.Draw(t.Context(), func(ctx context.Context, h *Claim[document]) (int64, error) {
			time.Sleep(slackapi.CallTimeout)
			_, err := l.Claim(ctx, batch)
			require.ErrorIs(t, err, ErrBusy)
			require.NoError(t, l.Edit(ctx, batch, func(d *document) { d.Things = append(d.Things, "theirs") }))
			time.Sleep(slackapi.CallTimeout)
			return 0, h.Save(ctx, func(d *document) { d.Things = append(d.Things, "ours") })
		}))
		n, version, err := l.Load(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, []string{"theirs", "ours"}, n.Body.Things)
		require.Empty(t, n.Owner)
		time.Sleep(time.Minute)
		_, after, err := l.Load(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, version, after, "nobody renews it any more")
	})
}

// records are a store of one memo, in which no time passes.
type records struct {
	Store

	mu      sync.Mutex
	data    []byte
	version int64
}

func (s *records) Memo(context.Context, string, string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.version, nil
}

func (s *records) CommitMemo(_ context.Context, _, _ string, data []byte, version, _ int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != s.version {
		return approvals.ErrConflict
	}
	s.data, s.version = data, version+1
	return nil
}

func (s *records) Prefetch(ctx context.Context, _ approvals.Reads) context.Context { return ctx }

func (s *records) Time() time.Time { return time.Now() }

// A derived record that cannot be decoded counts as missing, and the next change replaces
// it. Any other is an error, and stays as it is.
func TestOnlyADerivedRecordIsReplacedIfItCannotBeRead(t *testing.T) {
	var log strings.Builder
	for name, c := range map[string]struct {
		derived *slog.Logger
		err     error
		data    string
	}{
		"derived": {slog.New(slog.NewTextHandler(&log, nil)), nil, `{"body":{"things":["new"]}}`},
		"a truth": {nil, ErrUnreadable, `{"body":"damaged"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &records{data: []byte(`{"body":"damaged"}`), version: 3}
			l := Notes[document]{Memos: s, Surface: "homes", Now: time.Now, Derived: c.derived}
			err := l.Edit(t.Context(), batch, func(d *document) { d.Things = append(d.Things, "new") })
			require.ErrorIs(t, err, c.err)
			require.JSONEq(t, c.data, string(s.data))
		})
	}
	require.Contains(t, log.String(), `msg="a memo cannot be read, and is made again" surface=homes id=`+batch+" err=")
}
