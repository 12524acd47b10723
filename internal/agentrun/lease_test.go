package agentrun_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// timed runs f in a bubble in which time passes only while all wait.
func timed(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		f(w)
	})
}

// waits is a tool whose execution the test controls, with a timeout.
func (w *world) waits(limit time.Duration, f func(ctx context.Context) error) *fake {
	return &fake{
		spec: agentrun.Spec{Name: "wait", Timeout: limit, Sequential: true},
		execute: func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
			w.note("wait " + string(c.ID))
			return agentrun.Result{}, f(ctx)
		},
	}
}

// While a tool works for long, its worker keeps the claim.
func TestTheLeaseIsRenewed(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			<-time.After(10 * time.Minute)
			return nil
		})}
		id := w.mention("go").ID
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		others := make(chan error, 50)
		go func() {
			for range cap(others) {
				<-time.After(10 * time.Second)
				others <- w.runner().Work(t.Context(), id)
			}
		}()
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		for range cap(others) {
			require.NoError(t, <-others)
		}
		require.Equal(t, []string{"wait a"}, w.executed())
		require.Equal(t, 1, w.fences)
	})
}

// A tool that hangs is stopped. What it says then counts; what nobody knows,
// people are asked.
func TestToolsThatHang(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(ctx context.Context) error
		want string
		took time.Duration
	}{
		"it stops": {func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "", time.Minute},
		"it stops, and knows": {func(ctx context.Context) error {
			<-ctx.Done()
			return &agentrun.FailedError{Message: "nothing was sent"}
		}, `a failed: "nothing was sent"`, time.Minute},
		"it is done a little late": {func(context.Context) error {
			<-time.After(61 * time.Second)
			return nil
		}, "a success: null", 61 * time.Second},
		"it does not stop": {func(context.Context) error {
			<-time.After(time.Hour)
			return nil
		}, "", 63 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			timed(t, func(w *world) {
				t := w.t
				began := time.Now()
				w.agent.Tools = []agentrun.Tool{w.waits(time.Minute, c.f)}
				run := w.say(calls([3]string{"a", "wait", ""}))
				require.Equal(t, c.took, time.Since(began))
				if c.want == "" {
					asked, _ := w.batch(run.Deferred).Approval("a")
					require.Equal(t, approvals.Doubt{
						Began: began.UTC(), Key: string(run.ID) + "/a", Unsure: true,
						Said: approvals.Quote{Text: "The tool did not finish within 1m0s and was stopped."},
					}, asked.Doubt)
				} else {
					require.Equal(t, agentrun.RunCompleted, run.Status)
					require.Contains(t, w.added()[1], c.want)
				}
				<-time.After(2 * time.Hour) // the goroutine that was left to itself ends
				require.Equal(t, []string{"wait a"}, w.executed())
			})
		})
	}
}

// A validator or a predicate that hangs leads to no execution.
func TestValidatorsThatHang(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		plain, gated := w.does("plain", ""), w.does("pred", "")
		plain.spec.Timeout, gated.spec.Timeout = time.Second, time.Second
		plain.validate = func(context.Context, agentrun.Call) error {
			<-time.After(time.Hour)
			return nil
		}
		gated.spec.NeedsApproval = func(context.Context, agentrun.Call) (bool, error) {
			<-time.After(time.Hour)
			return false, nil
		}
		w.agent.Tools = []agentrun.Tool{plain, gated}
		run := w.say(calls([3]string{"a", "plain", `{"x":1}`}, [3]string{"b", "pred", `{"x":1}`}))
		people, _ := w.pending(run)
		require.Equal(t, []string{"b"}, people)
		require.Equal(t, `a failed: "The arguments could not be checked, so the call was not run."`, w.added()[2])
		require.Empty(t, w.executed())
		<-time.After(2 * time.Hour)
	})
}

// A worker that slept through its lease finds its run taken: what it does then
// has no effect, and what it was about to do does not happen.
func TestAZombie(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		clock := time.Now()
		w.now = func() time.Time { return clock }
		id := w.mention("go").ID
		w.agent.Tools = []agentrun.Tool{w.does("plain", agentrun.KindFunction)}
		slept := false
		w.model.reply = func(r agentrun.ModelRequest) agentrun.Response {
			if !slept {
				slept = true
				clock = clock.Add(time.Minute)
				require.NoError(t, w.runner().Work(t.Context(), id)) // another one
				require.Equal(t, agentrun.RunCompleted, w.run(id).Status)
			}
			if len(r.Messages) == 1 {
				return calls([3]string{"a", "plain", `{"x":1}`})
			}
			return says("done")
		}
		before := w.run(id)
		require.Equal(t, agentrun.RunQueued, before.Status)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"plain:1"}, w.executed())
		require.Len(t, w.added(), 3)
		require.Equal(t, 2, w.fences)
	})
}

// The same, within a tool: the call is in doubt for the one who took over, its
// late end is not accepted but said, and the tool after it does not begin.
func TestAZombieWithinATool(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		clock := time.Now()
		w.now = func() time.Time { return clock }
		id := w.mention("go").ID
		another := func() error { return w.runner().Work(t.Context(), id) }
		slept := false
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			if slept {
				return nil
			}
			slept, clock = true, clock.Add(time.Minute)
			return another()
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""}, [3]string{"b", "wait", ""})}
		run := w.work(id)
		people, _ := w.pending(run)
		require.Equal(t, []string{"a"}, people)
		require.Equal(t, []string{"wait a", "wait b"}, w.executed(), "b by the one who took over")
		require.Equal(t, approvals.Ran, w.batch(run.Deferred).Approvals[0].Doubt.Late.State, "what the zombie did is said")
		require.Equal(t, approvals.Pending, w.batch(run.Deferred).Approvals[0].Status, "and decides nothing")
		entries, err := w.store.Journal(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, entries, 2)
		for _, e := range entries {
			require.Equal(t, e.Call == "a", e.State == agentrun.EntryStarted)
		}
	})
}

// Nothing begins when most of the lease is gone, unless it can be renewed.
func TestNoBeginningLateInTheLease(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		clock := time.Now()
		w.now = func() time.Time { return clock }
		id := w.mention("go").ID
		plain, slow := w.does("plain", agentrun.KindFunction), 16*time.Second
		plain.validate = func(context.Context, agentrun.Call) error {
			clock, slow = clock.Add(slow), 0
			return nil
		}
		w.agent.Tools = []agentrun.Tool{plain}
		w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`})}
		down := errors.New("down")
		w.store.before = func(_ int, c agentrun.Commit) error {
			if held := w.run(id).Owner != ""; held && len(c.Entries) == 0 && clock.Sub(w.run(id).LeaseEnds.Add(-30*time.Second)) > 15*time.Second {
				return down
			}
			return nil
		}
		require.ErrorIs(t, w.runner().Work(t.Context(), id), down)
		require.Empty(t, w.executed())
		w.store.before = nil
		clock = clock.Add(time.Minute)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"plain:1"}, w.executed())
	})
}

// A worker that cannot renew its lease stops what it does when the lease ends.
func TestARenewalThatFails(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		stopped := time.Duration(0)
		var down atomic.Bool
		w.store.before = func(int, agentrun.Commit) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		began := time.Now()
		w.model.answers = []any{func(ctx context.Context) (agentrun.Response, error) {
			down.Store(true)
			<-ctx.Done()
			stopped = time.Since(began)
			return agentrun.Response{}, ctx.Err()
		}}
		require.NoError(t, w.runner().Work(t.Context(), id))
		require.Equal(t, 30*time.Second, stopped.Round(time.Second))
		down.Store(false)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
	})
}

// A hanging store answers nothing while it is away, and each request to it fails after a
// while only.
type hanging struct {
	agentrun.Store

	away atomic.Bool
}

func (s *hanging) Commit(ctx context.Context, c agentrun.Commit) error {
	if !s.away.Load() {
		return s.Store.Commit(ctx, c)
	}
	select {
	case <-time.After(25 * time.Second):
		return errors.New("timeout")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The same with a store that hangs: when the lease ends, another worker may take the run.
func TestARenewalThatHangs(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		store, began, stopped := &hanging{Store: w.store}, time.Time{}, time.Duration(0)
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(ctx context.Context) error {
			store.away.Store(true)
			began = time.Now()
			<-ctx.Done()
			stopped = time.Since(began)
			return ctx.Err()
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""})}
		runner := agentrun.NewRunner(agentrun.Config{Store: store, Policy: w.policy, Agents: w.agents, Now: time.Now})
		_ = runner.Work(t.Context(), w.mention("go").ID)
		require.Equal(t, agentrun.DefaultLease, stopped)
	})
}

// A renewal whose reply is lost was made all the same.
func TestARenewalWhoseReplyIsLost(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		w.store.after = func(n int, _ agentrun.Commit) error {
			if n == 4 { // after the mention, the claim and the prompt
				return errors.New("reply lost")
			}
			return nil
		}
		w.model.answers = []any{func(context.Context) (agentrun.Response, error) {
			<-time.After(20 * time.Second)
			return says("done"), nil
		}}
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, 1, w.fences)
	})
}

// Draining stops at the next commit: the response that was paid for is kept, no
// call begins, and another worker continues at once.
func TestDrain(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		runner := w.runner()
		w.model.answers = []any{func(context.Context) (agentrun.Response, error) {
			runner.Drain()
			runner.Drain()
			return calls([3]string{"p", "plain", `{"x":1}`}), nil
		}}
		require.NoError(t, runner.Work(t.Context(), id))
		run := w.run(id)
		require.Equal(t, agentrun.RunQueued, run.Status)
		require.Empty(t, run.Owner)
		require.Empty(t, w.executed())
		require.NoError(t, runner.Work(t.Context(), id))
		require.Equal(t, agentrun.RunQueued, w.run(id).Status)
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"plain:1"}, w.executed())
		require.Len(t, w.model.requests, 2)
	})
}

// What has begun when a runner drains is waited for and kept.
func TestDrainWithinAStep(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		runner := w.runner()
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			runner.Drain()
			<-time.After(time.Minute)
			return nil
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""}, [3]string{"b", "wait", ""})}
		require.NoError(t, runner.Work(t.Context(), id))
		require.Equal(t, agentrun.RunQueued, w.run(id).Status)
		require.Equal(t, []string{"wait a"}, w.executed())
		require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
		require.Equal(t, []string{"wait a", "wait b"}, w.executed())
		require.Equal(t, 2, w.run(id).Usage.ToolCalls)
	})
}

// A context that ends is no failure of the run. A call that it interrupted is
// in doubt, unless the tool says what it did.
func TestAContextThatEnds(t *testing.T) {
	timed(t, func(w *world) {
		t := w.t
		id := w.mention("go").ID
		ctx, cancel := context.WithCancel(t.Context())
		w.model.answers = []any{func(ctx context.Context) (agentrun.Response, error) {
			cancel()
			return agentrun.Response{}, ctx.Err()
		}}
		require.ErrorIs(t, w.runner().Work(ctx, id), context.Canceled)
		require.Equal(t, agentrun.RunQueued, w.run(id).Status)

		for name, c := range map[string]struct {
			says error
			want agentrun.Status
		}{"done": {nil, agentrun.RunCompleted}, "cut off": {errors.New("cut off"), agentrun.RunDeferred}} {
			w := newWorld(t)
			w.now = time.Now
			ctx, cancel := context.WithCancel(t.Context())
			w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
				cancel()
				return c.says
			})}
			w.model.answers = []any{calls([3]string{"a", "wait", ""})}
			id := w.mention(name).ID
			require.ErrorIs(t, w.runner().Work(ctx, id), context.Canceled)
			<-time.After(time.Minute)
			require.Equal(t, c.want, w.work(id).Status)
			require.Equal(t, []string{"wait a"}, w.executed(), "once")
		}
	})
}

// Many workers are stopped within a tool and wake up after people have decided, or
// before: none stores a result over what was decided, each is said on the card, and
// no call runs more often than people let it.
func TestZombiesReportAndDoubleNothing(t *testing.T) {
	const zombies = 60
	reported, doubled := 0, 0
	verdicts := []approvals.Verdict{"", approvals.GiveUp, approvals.Happened, approvals.RunAgain}
	for n := range zombies {
		timed(t, func(w *world) {
			clock := time.Now()
			w.now = func() time.Time { return clock }
			id, verdict, slept, ran := w.mention("go").ID, verdicts[n%len(verdicts)], false, 0
			var first approvals.BatchID
			meanwhile := func() error {
				if err := w.runner().Work(w.t.Context(), id); err != nil {
					return err
				}
				first = w.run(id).Deferred
				if verdict != "" { // otherwise people decide later
					w.doubt = verdict
					w.answerDoubts(first)
					w.resume(first)
				}
				return nil
			}
			w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
				if ran++; slept {
					return nil
				}
				slept, clock = true, clock.Add(time.Duration(31+n)*time.Second)
				return meanwhile()
			})}
			w.model.answers = []any{calls([3]string{"a", "wait", ""}), says("done"), says("done")}
			require.NoError(w.t, w.runner().Work(w.t.Context(), id))
			asked, _ := w.batch(first).Approval("a")
			if asked.Doubt.Late.State == approvals.Ran {
				reported++
			}
			want := map[bool]int{true: 2, false: 1}[verdict == approvals.RunAgain]
			doubled += max(0, ran-want)
			require.Equal(w.t, map[approvals.Verdict]approvals.Status{
				"": approvals.Pending, approvals.GiveUp: approvals.Denied, approvals.Happened: approvals.Confirmed, approvals.RunAgain: approvals.Approved,
			}[verdict], asked.Status)
		})
	}
	t.Logf("%d stopped workers woke up: %d told what they did, %d calls ran once too often", zombies, reported, doubled)
	require.Equal(t, zombies, reported)
	require.Zero(t, doubled)
}

// plainCall is a run whose model makes one call without approval, by a clock that the test
// moves.
func (w *world) plainCall() (clock *time.Time, id approvals.RunID) {
	clock = new(time.Now())
	w.now = func() time.Time { return *clock }
	w.agent.Tools = []agentrun.Tool{w.does("plain", agentrun.KindFunction)}
	w.model.answers = []any{calls([3]string{"a", "plain", `{"x":1}`}), says("done")}
	return clock, w.mention("go").ID
}

// The same before the tool: the reply that the beginning of the call is stored comes after
// the lease, when another worker has asked people about the call. It does not begin any
// more, whatever they decided.
func TestAZombieBeforeATool(t *testing.T) {
	for _, verdict := range []approvals.Verdict{approvals.GiveUp, approvals.Happened, approvals.RunAgain} {
		t.Run(string(verdict), func(t *testing.T) {
			timed(t, func(w *world) {
				t := w.t
				clock, id := w.plainCall()
				slept := false
				w.store.after = func(_ int, c agentrun.Commit) error {
					if slept || len(c.Entries) == 0 || c.Entries[0].State != agentrun.EntryStarted {
						return nil
					}
					slept, *clock = true, clock.Add(time.Minute)
					require.NoError(t, w.runner().Work(t.Context(), id)) // another one
					w.doubt = verdict
					w.answerDoubts(w.run(id).Deferred)
					w.resume(w.run(id).Deferred)
					return nil
				}
				require.NoError(t, w.runner().Work(t.Context(), id))
				require.True(t, slept)
				var want []string
				if verdict == approvals.RunAgain {
					want = []string{"plain:1"} // by the one who took over
				}
				require.Equal(t, want, w.executed())
			})
		})
	}
}

// If nobody has taken the run over meanwhile, the lease is renewed, and the call runs.
// If that fails, the call has not begun, and is not in doubt.
func TestABeginningThatIsStoredLate(t *testing.T) {
	for name, fails := range map[string]bool{"renewed": false, "not renewed": true} {
		t.Run(name, func(t *testing.T) {
			timed(t, func(w *world) {
				t := w.t
				clock, id := w.plainCall()
				late, down := false, errors.New("down")
				w.store.after = func(_ int, c agentrun.Commit) error {
					if !late && len(c.Entries) > 0 && c.Entries[0].State == agentrun.EntryStarted {
						late, *clock = true, clock.Add(time.Minute)
					}
					return nil
				}
				w.store.before = func(_ int, c agentrun.Commit) error {
					if late && fails && len(c.Entries) == 0 && len(c.Runs) == 1 {
						fails = false
						return down
					}
					return nil
				}
				err := w.runner().Work(t.Context(), id)
				if name == "renewed" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, down)
					require.Empty(t, w.executed())
					*clock = clock.Add(time.Minute)
				}
				require.Equal(t, agentrun.RunCompleted, w.work(id).Status)
				require.Equal(t, []string{"plain:1"}, w.executed())
			})
		})
	}
}
