package state_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var errCrash = errors.New("the process is gone")

// A crash ends a process at its n-th command: the command is not sent, or done
// and its reply not read. From then on nothing is sent.
type crash struct {
	at    int64
	after bool
	armed bool // set once the store is open
	count atomic.Int64
}

func (c *crash) pass(_ context.Context, cmds []redis.Cmder, send func() error) error {
	if !c.armed || slices.Contains([]string{"hello", "auth", "select", "client", "readonly"}, cmds[0].Name()) { // with those a connection begins
		return send()
	}
	n := c.count.Add(1)
	if n < c.at {
		return send()
	}
	if n == c.at && c.after {
		_ = send()
	}
	return statetest.Fail(cmds, errCrash)
}

// A process is one bot: it opens a batch, hears two clicks, draws the card,
// resumes the run and finishes it. Every step may be made again, by itself or
// by another process.
type process struct {
	s      *state.Store
	opens  agentrun.OpenBatch
	clicks []approvals.BatchCommit
	due    func(k state.Kind) []string
}

// crashes: a process ends at each of its commands in turn, before it and after
// it, and another one continues. What was committed is kept, the run is resumed
// once, and the card shows the last version.
func crashes(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	opens := openBatch(t, ids{11}.batch("b"), ids{11}.run("r"), 2, start0.AddDate(1, 0, 0))
	one := decide(t, opens.Batch, approvals.Approve, "one")
	call := one.Batch.Approvals[1].Call
	settled, events, err := one.Batch.Apply(approvals.Decide{Decision: approvals.Decision{
		Call: call.ID, By: approvals.Principal{User: "ann"}, Verdict: approvals.Deny, Digest: call.Digest, At: start0,
	}})
	require.NoError(t, err)
	clicks := []approvals.BatchCommit{one, {Request: "two", Before: one.Batch, Batch: settled, Events: events}}

	points := 0
	for n := int64(1); ; n++ {
		reached := false
		for _, after := range []bool{false, true} {
			k := newClock()
			calm := openStore(t, c, k.Now)
			fatal := &crash{at: n, after: after}
			hooked := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
			hooked.AddHook(statetest.Hook(fatal.pass))
			doomed := openStoreAt(t, hooked, k.Now, calm.Prefix())
			fatal.armed = true
			found := func(k state.Kind) []string { return due(t, calm, k) }
			err := process{doomed, opens, clicks, found}.live(t.Context())
			if fatal.count.Load() >= fatal.at {
				reached = true
				require.ErrorIs(t, err, errCrash)
			}
			require.NoError(t, process{calm, opens, clicks, found}.live(t.Context()))

			b, err := calm.Batch(t.Context(), opens.Batch.ID)
			require.NoError(t, err)
			require.Equal(t, settled, b)
			drawn, _, err := calm.Memo(t.Context(), string(b.ID), "cards")
			require.NoError(t, err)
			require.Equal(t, "3", string(drawn))
			run, err := calm.Run(t.Context(), ids{11}.run("resume"))
			require.NoError(t, err)
			require.Equal(t, agentrun.RunCompleted, run.Status)
			require.EqualValues(t, 2, run.Version, "created and finished, once each")
			facts, err := state.NewFeed(calm).Facts(t.Context(), 11, "", 100)
			require.NoError(t, err)
			require.Len(t, facts, len(opens.Events)+len(one.Events)+len(events))
			for _, kind := range []state.Kind{state.Runs, state.Resumes, state.Cards, state.Deadlines} {
				require.Empty(t, due(t, calm, kind), kind)
			}
		}
		if !reached {
			break
		}
		points++
	}
	t.Logf("%d commands, each with a crash before and after it", points)
	require.Greater(t, points, 12)
}

// live is the life of the process. Any error ends it.
func (p process) live(ctx context.Context) error {
	err := p.s.Commit(ctx, agentrun.Commit{Request: "open", Opens: &p.opens})
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return p.work(ctx, state.Cards, p.draw) },
		func() error { return p.click(ctx, p.clicks[0]) },
		func() error { return p.click(ctx, p.clicks[1]) },
		func() error { return p.work(ctx, state.Cards, p.draw) },
		func() error { return p.work(ctx, state.Resumes, p.resume) },
		func() error { return p.work(ctx, state.Runs, p.run) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// work does what is due.
func (p process) work(ctx context.Context, k state.Kind, f func(context.Context, string) error) error {
	for _, id := range p.due(k) {
		if err := f(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// click is what a person does until it says that it was recorded.
func (p process) click(ctx context.Context, click approvals.BatchCommit) error {
	err := madeOnce(p.s.CommitBatch(ctx, click))
	if !errors.Is(err, approvals.ErrConflict) {
		return err
	}
	known, err := p.s.Answered(ctx, click.Batch.ID, click.Request)
	if err == nil && !known {
		err = errors.New("a click was lost")
	}
	return err
}

func (p process) draw(ctx context.Context, id string) error { return draw(ctx, p.s, id) }

func (p process) resume(ctx context.Context, id string) error {
	b, err := p.s.Batch(ctx, approvals.BatchID(id))
	if err != nil || !b.Settled() {
		return err
	}
	run := agentrun.Run{ID: ids{11}.run("resume"), Status: agentrun.RunQueued, CreatedAt: start0, Batch: b.ID}
	err = p.s.Commit(ctx, agentrun.Commit{
		Request: approvals.RequestID("resume-" + strconv.FormatInt(b.Version, 10)), Runs: []agentrun.Run{run}, Resumes: &b,
	})
	if errors.Is(err, approvals.ErrConflict) {
		return nil
	}
	return err
}

func (p process) run(ctx context.Context, id string) error {
	r, err := p.s.Run(ctx, approvals.RunID(id))
	if err != nil || r.Status != agentrun.RunQueued {
		return err
	}
	r.Status = agentrun.RunCompleted
	return p.s.Commit(ctx, agentrun.Commit{Request: "finish", Runs: []agentrun.Run{r}})
}
