package memo

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// board is one memo, as the store keeps it.
type board struct {
	raw            []byte
	version, drawn int64
}

func (b *board) Memo(context.Context, string, string) ([]byte, int64, error) {
	return b.raw, b.version, nil
}

func (b *board) CommitMemo(_ context.Context, _, _ string, raw []byte, version, drawn int64) error {
	if version != b.version {
		return approvals.ErrConflict
	}
	b.raw, b.version, b.drawn = raw, version+1, max(b.drawn, drawn)
	return nil
}

func (*board) Confirm(context.Context, string) error { return nil }

// shelfOf is what the records of these tests hold.
type shelfOf struct {
	Things []string `json:"things"`
}

// drawers are two processes with one board and one clock.
func drawers(t *testing.T) (*board, func(time.Duration), Notes[shelfOf]) {
	t.Helper()
	b, now := &board{}, time.Unix(1_700_000_000, 0)
	return b, func(d time.Duration) { now = now.Add(d) }, Notes[shelfOf]{Memos: b, Surface: "cards", Now: func() time.Time { return now }}
}

// Who lost its claim to another drawer saves nothing over what that one does,
// and does not end that one's claim.
func TestADrawerThatWasTooSlowSavesNothing(t *testing.T) {
	_, wait, l := drawers(t)
	slow, err := l.Claim(t.Context(), "x")
	require.NoError(t, err)
	wait(lease)
	quick, err := l.Claim(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, quick.Save(t.Context(), func(a *shelfOf) { a.Things = append(a.Things, "2.2") }))

	for name, end := range map[string]func() error{
		"save": func() error {
			return slow.Save(t.Context(), func(a *shelfOf) { a.Things = append(a.Things, "1.1") })
		},
		"release": func() error { return slow.Release(t.Context(), 7) },
	} {
		require.ErrorIs(t, end(), ErrBusy, name)
	}
	_ = slow.Abandon(t.Context(), nil)
	n, _, err := l.Load(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, quick.owner, n.Owner)
	require.Equal(t, []string{"2.2"}, n.Body.Things)
}

// Most drawings are over in a moment. Whoever finds that somebody else draws
// looks again soon, and less often the longer that goes on.
func TestAClaimIsLookedAtAgainSoon(t *testing.T) {
	_, wait, l := drawers(t)
	_, err := l.Claim(t.Context(), "x")
	require.NoError(t, err)
	for _, c := range []struct{ passes, again time.Duration }{
		{0, 50 * time.Millisecond},
		{20 * time.Millisecond, 50 * time.Millisecond},
		{380 * time.Millisecond, 400 * time.Millisecond},
		{4 * time.Second, time.Second},
		{lease - 4500*time.Millisecond, 100 * time.Millisecond},
	} {
		wait(c.passes)
		_, err := l.Claim(t.Context(), "x")
		var later *slackapi.LaterError
		require.ErrorAs(t, err, &later)
		require.Equal(t, c.again, later.After)
	}
}

// What was added while somebody drew has not been drawn by them, so the due
// entry stays.
func TestACopyThatIsFoundMeanwhileIsDrawnToo(t *testing.T) {
	b, _, l := drawers(t)
	h, err := l.Claim(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, l.Edit(t.Context(), "x", func(a *shelfOf) { a.Things = append(a.Things, "9.9") }))
	require.NoError(t, h.Release(t.Context(), 7))
	require.Zero(t, b.drawn)
	n, _, err := l.Load(t.Context(), "x")
	require.NoError(t, err)
	require.Empty(t, n.Owner, "the next one may draw at once")
	require.Len(t, n.Body.Things, 1)

	h, err = l.Claim(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context(), 7))
	require.Equal(t, int64(7), b.drawn)
}
