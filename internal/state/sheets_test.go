package state_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var sheetID = approvals.NewSheetID("T1", "ann", "s")

// listed is a sheet with all calls of the batches; the second of each is risky.
func listed(batches ...approvals.Batch) approvals.Sheet {
	s := approvals.Sheet{ID: sheetID, By: "ann", Verdict: approvals.Approve, Reason: "tidy", Origin: "D1/1.2"}
	for _, b := range batches {
		for i, a := range b.Approvals {
			s.Lines = append(s.Lines, b.Line(a, i == 1))
		}
	}
	return s
}

func ann() approvals.Principal {
	return approvals.Principal{User: "ann", Groups: []approvals.GroupID{"sre"}, GroupsAt: start0}
}

func newBulk(s *state.Store, owner string, now func() time.Time) *approvals.Bulk {
	return approvals.NewBulk(newDesk(s, now), s, owner, now)
}

// sheets: stored by version and under their seal, due while there is work, and
// taken away by the server when nobody submits them.
func sheets(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	ctx := t.Context()
	_, err := s.Sheet(ctx, sheetID)
	require.ErrorIs(t, err, approvals.ErrNotFound)
	_, err = s.Sheet(ctx, "forged")
	require.ErrorIs(t, err, approvals.ErrNotFound)
	opens := openBatch(t, ids{4}.batch("b"), ids{4}.run("r"), 3, time.Time{})
	shown, err := approvals.NewSheet(listed(opens.Batch), k.Now())
	require.NoError(t, err)
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Request: "show", Sheet: shown}))
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Request: "show", Sheet: shown}))
	require.ErrorIs(t, s.CommitSheet(ctx, approvals.SheetCommit{Request: "twice", Sheet: shown}), approvals.ErrConflict)
	got, err := s.Sheet(ctx, sheetID)
	require.NoError(t, err)
	require.Equal(t, shown, got)
	key := sheetKey(t, s)
	require.Equal(t, 24*time.Hour, c.PTTL(ctx, key).Val().Round(time.Minute))
	require.Empty(t, due(t, s, state.Sheets))

	submit := func(s approvals.Sheet) approvals.Sheet {
		next, err := s.Submit(approvals.Submission{Request: "r", By: ann(), Ticked: []int{1}, At: k.Now()})
		require.NoError(t, err)
		return next
	}
	// One call more, one argument changed, also with a seal that fits.
	for name, change := range map[string]func(s *approvals.Sheet){
		"one call more": func(s *approvals.Sheet) {
			s.Lines = append(s.Lines, approvals.Line{Batch: "batch-01-x", Call: "x", Digest: approvals.Digest{1}, Tool: "t"})
		},
		"one argument changed": func(s *approvals.Sheet) { s.Lines[0].Digest[0]++ },
		"one call less":        func(s *approvals.Sheet) { s.Lines = s.Lines[:2] },
	} {
		changed := submit(shown)
		change(&changed)
		err := s.CommitSheet(ctx, approvals.SheetCommit{Before: shown, Sheet: changed})
		require.ErrorIs(t, err, approvals.ErrInvalid, name)
		changed, err = approvals.NewSheet(changed, k.Now())
		require.NoError(t, err)
		err = s.CommitSheet(ctx, approvals.SheetCommit{Before: shown, Sheet: submit(changed)})
		require.ErrorIs(t, err, approvals.ErrInvalid, name)
		require.NotErrorIs(t, err, approvals.ErrConflict, name)
	}

	submitted := submit(shown)
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Before: shown, Sheet: submitted}))
	require.ErrorIs(t, s.CommitSheet(ctx, approvals.SheetCommit{Before: shown, Sheet: submitted}), approvals.ErrConflict)
	got, err = s.Sheet(ctx, sheetID)
	require.NoError(t, err)
	require.Equal(t, submitted, got)
	require.Negative(t, c.PTTL(ctx, key).Val(), "what is submitted stays")
	requireScore(t, s, state.Sheets, string(sheetID), k.Now())

	held, err := submitted.Claim("w", k.Now(), k.Now().Add(time.Minute))
	require.NoError(t, err)
	attempts := strings.Replace(key, "sheet:"+string(sheetID), "attempts", 1)
	require.NoError(t, c.HSet(ctx, attempts, "sheets|"+string(sheetID), 3).Err())
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Before: submitted, Sheet: held}))
	requireScore(t, s, state.Sheets, string(sheetID), k.Now().Add(time.Minute))
	require.Equal(t, "3", c.HGet(ctx, attempts, "sheets|"+string(sheetID)).Val(), "a claim is no success")
	half, err := held.Record("w", k.Now().Add(time.Hour), []approvals.LineResult{{Line: 0, Outcome: approvals.LineSigned}})
	require.NoError(t, err)
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Before: held, Sheet: half}))
	requireScore(t, s, state.Sheets, string(sheetID), k.Now().Add(time.Hour))
	require.Empty(t, c.HGet(ctx, attempts, "sheets|"+string(sheetID)).Val(), "getting on is")
	require.Empty(t, due(t, s, state.Answers))
	done, err := half.Record("w", k.Now(), []approvals.LineResult{
		{Line: 1, Outcome: approvals.LineSigned}, {Line: 2, Outcome: approvals.LineSkipped, Why: approvals.WhyStale},
	})
	require.NoError(t, err)
	require.NoError(t, s.CommitSheet(ctx, approvals.SheetCommit{Before: half, Sheet: done}))
	require.Empty(t, due(t, s, state.Sheets))
	requireScore(t, s, state.Answers, string(sheetID), k.Now())
	require.Equal(t, 30*24*time.Hour, c.PTTL(ctx, key).Val().Round(time.Minute))
	require.NoError(t, s.CommitMemo(ctx, string(sheetID), string(state.Answers), []byte("said"), 0, done.Version))
	require.Empty(t, due(t, s, state.Answers))
}

func sheetKey(t *testing.T, s *state.Store) string {
	t.Helper()
	n, err := approvals.Partition(string(sheetID))
	require.NoError(t, err)
	return fmt.Sprintf("%s:{p%02d}:sheet:%s", s.Prefix(), n, sheetID)
}

// bulk: what is submitted is decided by whoever hears of it, and answered, over
// connections that are cut at random.
func bulk(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	k := newClock()
	s := openStore(t, c, k.Now)
	batches := storeBatches(t, s, 90)
	sheet := listed(batches...)
	answered := make(chan string, 10)
	var cut atomic.Int64
	for _, owner := range []string{"one", "two"} {
		d := state.NewDue(s, state.DueOptions{
			Sweep: 50 * time.Millisecond, Attempts: 100, Backoff: func(int) time.Duration { return 10 * time.Millisecond },
		})
		s := openStoreAt(t, harmed(t, c, func(sent []byte) statetest.Fault {
			if n := cut.Add(1); isScript(sent) && n%9 == 0 {
				return []statetest.Fault{statetest.LostReply, statetest.LostRequest}[n%2]
			}
			return statetest.None
		}), k.Now, s.Prefix())
		work(t, d, state.Sheets, func(ctx context.Context, id string) error {
			return newBulk(s, owner, k.Now).Work(ctx, approvals.SheetID(id))
		})
		work(t, d, state.Answers, func(ctx context.Context, id string) error {
			sheet, err := s.Sheet(ctx, approvals.SheetID(id))
			if err != nil {
				return err
			}
			_, version, err := s.Memo(ctx, id, string(state.Answers))
			if err != nil {
				return err
			}
			err = s.CommitMemo(ctx, id, string(state.Answers), []byte("said"), version, sheet.Version)
			if err == nil && version == 0 {
				answered <- fmt.Sprint(sheet.Summary())
			}
			return err
		})
	}
	_, err := newBulk(s, "front", k.Now).Show(t.Context(), sheet)
	require.NoError(t, err)
	_, err = newBulk(s, "front", k.Now).Submit(t.Context(), sheetID, "click", ann(), []int{3}, "")
	require.NoError(t, err)
	statetest.Await(t, "nothing to be left", func() bool {
		k.Advance(time.Second) // a worker that lost its connection holds the sheet for a while
		return len(due(t, s, state.Sheets))+len(due(t, s, state.Answers)) == 0
	})
	require.Equal(t, "{91 [] 89 0}", wait(t, "the answer", answered))
	require.Empty(t, answered, "said once")
	requireSigned(t, s, batches, []int{3})
	all := c.Keys(t.Context(), s.Prefix()+":{p*}:request:*").Val()
	for _, b := range batches {
		requests := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return !strings.Contains(key, ":request:"+string(b.ID)+":") })
		require.Len(t, requests, 1)
		require.Greater(t, c.PTTL(t.Context(), requests[0]).Val(), 24*time.Hour, "known for as long as the sheet may decide")
	}
}

// storeBatches stores n batches of two calls that ann must approve.
func storeBatches(t *testing.T, s *state.Store, n int) []approvals.Batch {
	t.Helper()
	var out []approvals.Batch
	for i := range n {
		id := ids{i % approvals.Partitions}
		opens := openBatch(t, id.batch(fmt.Sprintf("b%04d", i)), id.run("r"), 2, time.Time{})
		require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
		out = append(out, opens.Batch)
	}
	return out
}

// requireSigned: the first call of each batch is approved, once, and the second
// if its line was ticked.
func requireSigned(t *testing.T, s *state.Store, batches []approvals.Batch, ticked []int) {
	t.Helper()
	for i, b := range batches {
		got, err := s.Batch(t.Context(), b.ID)
		require.NoError(t, err)
		second := 0
		if slices.Contains(ticked, 2*i+1) {
			second = 1
		}
		require.Len(t, got.Approvals[0].Decisions, 1)
		require.Len(t, got.Approvals[1].Decisions, second)
		require.EqualValues(t, 2+second, got.Version, "nothing is decided twice")
	}
}

// bulkCrashes: the process that works on a sheet ends at each of its commands
// in turn, before it and after it, and another one finishes. Nothing is approved
// twice, nothing is lost, and nothing is approved that was not chosen.
func bulkCrashes(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	const size = 4
	points := 0
	for n := int64(1); ; n++ {
		reached := false
		for _, after := range []bool{false, true} {
			k := newClock()
			calm := openStore(t, c, k.Now)
			batches := storeBatches(t, calm, size)
			_, err := newBulk(calm, "front", k.Now).Show(t.Context(), listed(batches...))
			require.NoError(t, err)
			frozen, err := newBulk(calm, "front", k.Now).Submit(t.Context(), sheetID, "click", ann(), []int{1}, "")
			require.NoError(t, err)

			fatal := &crash{at: n, after: after}
			hooked := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
			hooked.AddHook(statetest.Hook(fatal.pass))
			doomed := openStoreAt(t, hooked, k.Now, calm.Prefix())
			fatal.armed = true
			err = newBulk(doomed, "doomed", k.Now).Work(t.Context(), sheetID)
			if fatal.count.Load() >= fatal.at {
				reached = true
				require.ErrorIs(t, err, errCrash)
			}
			k.Advance(time.Minute)
			for _, id := range due(t, calm, state.Sheets) {
				require.NoError(t, newBulk(calm, "heir", k.Now).Work(t.Context(), approvals.SheetID(id)))
			}
			got, err := calm.Sheet(t.Context(), sheetID)
			require.NoError(t, err)
			require.Equal(t, approvals.SheetSummary{Signed: size + 1, NotChosen: size - 1}, got.Summary())
			require.Equal(t, frozen.Seal, got.Seal)
			requireSigned(t, calm, batches, []int{1})
			require.Empty(t, due(t, calm, state.Sheets))
			require.Equal(t, []string{string(sheetID)}, due(t, calm, state.Answers))
		}
		if !reached {
			break
		}
		points++
	}
	t.Logf("%d commands, each with a crash before and after it", points)
	require.Greater(t, points, 3*size)
}
