package state_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state/statetest"
)

// longest keeps how many words the longest script of a client had.
func longest(words *atomic.Int64) statetest.Hook {
	return func(_ context.Context, cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			if cmd.Name() == "evalsha" {
				words.Store(max(words.Load(), int64(len(cmd.Args()))))
			}
		}
		return send()
	}
}

// Some hosted servers take no script with more than 3,999 arguments. A request of as many
// calls as there may be, about which as many people are asked as may be, is opened, decided and
// withdrawn with fewer.
func TestALargeRequestFitsServersThatTakeFewArguments(t *testing.T) {
	c := statetest.Miniredis(t)
	var words atomic.Int64
	c.AddHook(longest(&words))
	s := openStore(t, c, newClock().Now)
	id := ids{5}
	opens := openBatch(t, id.batch("b"), id.run("r"), agentrun.MaxCalls, start0.Add(time.Hour))
	for i := range opens.Batch.Approvals {
		from := &opens.Batch.Approvals[i].Requirement.Quorums[0].From
		for n := i; n < approvals.MaxNamed; n += agentrun.MaxCalls {
			from.Users = append(from.Users, approvals.UserID(fmt.Sprintf("U%03d", n)))
		}
	}
	require.Greater(t, len(opens.Batch.Concerns()), approvals.MaxNamed)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
	require.NoError(t, s.CommitBatch(t.Context(), decide(t, opens.Batch, approvals.Approve, "click")))
	b, err := s.Batch(t.Context(), opens.Batch.ID)
	require.NoError(t, err)
	next, events, err := b.Apply(approvals.Expire{At: start0.Add(2 * time.Hour)})
	require.NoError(t, err)
	require.Empty(t, next.Concerns(), "it leaves all lists at once")
	require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{Request: "tick", Before: b, Batch: next, Events: events}))
	t.Log(words.Load(), "words")
	require.Less(t, words.Load(), int64(3_999))
	require.Greater(t, words.Load(), int64(1_000))
}

// A response of as many calls as there may be, all of them pure, is journalled with its
// results in one commit.
func TestAStepOfPureCallsFitsServersThatTakeFewArguments(t *testing.T) {
	c := statetest.Miniredis(t)
	var words atomic.Int64
	c.AddHook(longest(&words))
	s := openStore(t, c, newClock().Now)
	id := ids{5}
	thread := agentrun.Thread{ID: id.thread("t")}
	run := agentrun.Run{ID: id.run("r"), Thread: thread.ID, Status: agentrun.RunRunning, Owner: "mine", LeaseEnds: start0}
	step := agentrun.Commit{Thread: &thread, Runs: []agentrun.Run{run}, Append: &agentrun.Append{Thread: thread.ID}}
	for n := range agentrun.MaxCalls {
		step.Entries = append(step.Entries, agentrun.Entry{Run: run.ID, Call: approvals.ToolCallID(fmt.Sprint("c", n)), State: agentrun.EntryFinished})
		step.Append.Messages = append(step.Append.Messages, agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: "hi"}}})
	}
	require.NoError(t, s.Commit(t.Context(), step))
	t.Log(words.Load(), "words")
	require.Less(t, words.Load(), int64(3_999))
	require.Greater(t, words.Load(), int64(10*agentrun.MaxCalls))
}
