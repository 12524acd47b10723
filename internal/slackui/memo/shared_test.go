package memo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A busy store counts what is done with it. The first commit waits until it is let go.
type busy struct {
	records

	count         sync.Mutex
	reads, writes int
	begun, goes   chan struct{}
}

func (s *busy) Memo(ctx context.Context, id, surface string) ([]byte, int64, error) {
	s.count.Lock()
	s.reads++
	s.count.Unlock()
	return s.records.Memo(ctx, id, surface)
}

func (s *busy) MemoVersion(ctx context.Context, id, surface string) (int64, error) {
	_, version, err := s.records.Memo(ctx, id, surface)
	return version, err
}

func (s *busy) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	s.count.Lock()
	s.writes++
	first := s.writes == 1 && s.goes != nil
	s.count.Unlock()
	if first {
		close(s.begun)
		<-s.goes
	}
	return s.records.CommitMemo(ctx, id, surface, data, version, drawn)
}

func adds(name string) func(*document) {
	return func(d *document) { d.Things = append(d.Things, name) }
}

// A record is read again only if it has changed, whoever has changed it.
func TestASharedRecordIsReadOnce(t *testing.T) {
	store := &busy{}
	l, here, there := Notes[document]{Memos: store, Surface: "list"}, &Shared[document]{}, &Shared[document]{}
	for n := range 3 {
		after, err := here.Edit(t.Context(), l, batch, adds(fmt.Sprint(n)))
		require.NoError(t, err)
		require.Len(t, after.Body.Things, n+1)
		store.reads = 0
		for range 10 {
			found, err := here.Look(t.Context(), l, batch)
			require.NoError(t, err)
			require.Len(t, found.Body.Things, n+1)
		}
		require.Zero(t, store.reads)
		for range 10 {
			found, err := there.Look(t.Context(), l, batch)
			require.NoError(t, err)
			require.Len(t, found.Body.Things, n+1)
		}
		require.Equal(t, 1, store.reads)
	}
}

// Changes that come while one is stored are stored together.
func TestChangesOfASharedRecordAreStoredTogether(t *testing.T) {
	const many = 10
	store := &busy{begun: make(chan struct{}), goes: make(chan struct{})}
	l, shared := Notes[document]{Memos: store, Surface: "list"}, &Shared[document]{}
	var all sync.WaitGroup
	edits := func(name string) {
		all.Go(func() {
			after, err := shared.Edit(t.Context(), l, batch, adds(name))
			if err != nil || !slices.Contains(after.Body.Things, name) {
				t.Errorf("%s is not in what was stored: %v", name, err)
			}
		})
	}
	edits("first")
	<-store.begun
	for n := range many {
		edits(fmt.Sprint(n))
	}
	k := shared.of(batch)
	for waiting := 0; waiting < many; {
		k.mu.Lock()
		waiting = len(k.edits)
		k.mu.Unlock()
	}
	close(store.goes)
	all.Wait()
	require.Equal(t, 2, store.writes)
	n, _, err := l.Load(t.Context(), batch)
	require.NoError(t, err)
	require.Len(t, n.Body.Things, many+1)
}

// Who gives up waiting holds nobody up.
func TestWhoGivesUpASharedRecordHoldsNobodyUp(t *testing.T) {
	store := &busy{begun: make(chan struct{}), goes: make(chan struct{})}
	l, shared := Notes[document]{Memos: store, Surface: "list"}, &Shared[document]{}
	first := make(chan error, 1)
	go func() {
		_, err := shared.Edit(context.Background(), l, batch, adds("first"))
		first <- err
	}()
	<-store.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := shared.Edit(ctx, l, batch, adds("second"))
	require.ErrorIs(t, err, context.Canceled)
	close(store.goes)
	require.NoError(t, <-first)
	after, err := shared.Edit(t.Context(), l, batch, adds("third"))
	require.NoError(t, err)
	require.Subset(t, after.Body.Things, []string{"first", "third"})
}

// However many records there are, few are kept in memory.
func TestFewSharedRecordsAreKept(t *testing.T) {
	shared := &Shared[document]{}
	for n := range 3 * mostKept {
		shared.of(fmt.Sprint(n))
	}
	require.Len(t, shared.kept, mostKept)
}
