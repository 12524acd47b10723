package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

var errKilled = errors.New("killed")

// A killer ends the process at its nth step that changes something: before the
// step is done, or after it and before anybody hears.
type killer struct {
	steps, at int
	after     bool
	dead      bool
}

func (k *killer) step(do func() error) error {
	if k.dead {
		return errKilled
	}
	k.steps++
	if k.dead = k.steps == k.at; !k.dead {
		return do()
	}
	if k.after {
		_ = do()
	}
	return errKilled
}

type dyingStore struct {
	*state.Store
	k *killer
}

func (s dyingStore) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	return s.k.step(func() error { return s.Store.CommitMemo(ctx, id, surface, data, version, drawn) })
}

func (s dyingStore) ChangeMemo(ctx context.Context, m agentrun.MemoChange) error {
	return s.k.step(func() error { return s.Store.ChangeMemo(ctx, m) })
}

func (s dyingStore) KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error {
	return s.k.step(func() error { return s.Store.KeepMemo(ctx, id, surface, data, version) })
}

func (s dyingStore) RevertMemo(ctx context.Context, id, surface string, is, to []byte, version int64) error {
	return s.k.step(func() error { return s.Store.RevertMemo(ctx, id, surface, is, to, version) })
}

func (s dyingStore) Confirm(ctx context.Context, id string) error {
	return s.k.step(func() error { return s.Store.Confirm(ctx, id) })
}

type dyingRunner struct {
	*agentrun.Runner
	k *killer
}

func (r dyingRunner) Submit(ctx context.Context, q agentrun.RemoteRequest) (out agentrun.RemoteRun, err error) {
	err = r.k.step(func() error { out, err = r.Runner.Submit(ctx, q); return err })
	return out, err
}

func (r dyingRunner) Admit(ctx context.Context, memo agentrun.MemoChange, all ...*agentrun.Admission) error {
	return r.k.step(func() error { return r.Runner.Admit(ctx, memo, all...) })
}

func (r dyingRunner) Clear(ctx context.Context, x agentrun.RemoteRun, call approvals.ToolCall) error {
	return r.k.step(func() error { return r.Runner.Clear(ctx, x, call) })
}

type dyingDesk struct {
	*approvals.Desk
	k *killer
}

func (d dyingDesk) Withdraw(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Withdraw) (b approvals.Batch, err error) {
	err = d.k.step(func() error { b, err = d.Desk.Withdraw(ctx, id, r, cmd); return err })
	return b, err
}

func (d dyingDesk) Conclude(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Conclude) (b approvals.Batch, err error) {
	err = d.k.step(func() error { b, err = d.Desk.Conclude(ctx, id, r, cmd); return err })
	return b, err
}

// dying is a service that is killed at the nth step of what it does.
func (w *world) dying(at int, after bool) (*intake.Service, *killer) {
	w.Helper()
	k := &killer{at: at, after: after}
	s, err := intake.New(intake.Config{
		Store: dyingStore{w.store, k}, Feed: state.NewFeed(w.store), Runner: dyingRunner{w.runner, k}, Desk: dyingDesk{w.desk, k}, Now: w.clock.Now,
	})
	require.NoError(w, err)
	return s, k
}

// killed runs do on services that are killed one step later each time, before and
// after the step, until one survives.
func killed(t *testing.T, do func(w *world, s *intake.Service) (finished bool, check func())) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w := newWorld(t)
			s, k := w.dying(at, after)
			finished, check := do(w, s)
			require.True(t, finished || k.dead, "not killed, and still not finished")
			check()
			if !k.dead {
				require.Greater(t, at, 2)
				break
			}
			require.Less(t, at, 50)
		}
	}
}

func TestAnAskThatWasCutOffAnywhereIsTakenOnceWhenItIsRepeated(t *testing.T) {
	for name, of := range map[string]func() intake.Ask{
		"named":  func() intake.Ask { return ask("x", "write", "free") },
		"reused": func() intake.Ask { return again("x") },
		"with a key": func() intake.Ask {
			a := ask("", "write")
			a.IdempotencyKey, a.Payload = "k", approvals.Digest{1}
			return a
		},
		"with its state": func() intake.Ask { a := ask("x", "write"); a.State = []byte(`{"n":1}`); return a },
	} {
		t.Run(name, func(t *testing.T) {
			killed(t, func(w *world, s *intake.Service) (bool, func()) {
				_, err := s.Ask(t.Context(), claude, of())
				return err == nil, func() {
					r := w.ask(of())
					require.Equal(t, r, w.ask(of()))
					require.Equal(t, string(of().State), string(r.StateDoc))
					open, _, err := w.store.Inbox(t.Context(), []approvals.ListKey{approvals.Everything}, "", 10)
					require.NoError(t, err)
					require.Len(t, open, 1)
				}
			})
		})
	}
}

func TestASupersedingThatWasCutOffAnywhereLeavesOneRequestOpen(t *testing.T) {
	killed(t, func(w *world, s *intake.Service) (bool, func()) {
		first := w.ask(ask("x", "write"))
		_, err := s.Ask(t.Context(), claude, ask("x", "write", "write"))
		return err == nil, func() {
			second := w.ask(ask("x", "write", "write"))
			require.Equal(t, []intake.Outcome{intake.OutcomePending, intake.OutcomePending}, outcomes(second))
			require.Equal(t, []intake.Outcome{intake.OutcomeSuperseded}, outcomes(w.get(first.ID)))
			b, err := w.store.Batch(t.Context(), first.Batch)
			require.NoError(t, err)
			require.True(t, b.Settled(), "its card is over")
		}
	})
}

func TestAClaimThatWasCutOffAnywhereIsMadeOnceAtMost(t *testing.T) {
	killed(t, func(w *world, s *intake.Service) (bool, func()) {
		r := w.ask(ask("x", "write"))
		w.approve(r, "c0")
		_, err := s.Claim(t.Context(), claude, r.ID, "c0")
		acknowledged := err == nil
		return acknowledged, func() {
			_, again := w.Claim(t.Context(), claude, r.ID, "c0")
			if acknowledged {
				require.ErrorIs(t, again, intake.ErrClaimed)
			}
			_, third := w.Claim(t.Context(), claude, r.ID, "c0")
			require.ErrorIs(t, third, intake.ErrClaimed)
			b, err := w.store.Batch(t.Context(), r.Batch)
			require.NoError(t, err)
			require.Equal(t, approvals.Claimed, b.Approvals[0].Execution.State, "the card says so in the end")
		}
	})
}

func TestAWithdrawalThatWasCutOffAnywhereIsFinishedWhenItIsRepeated(t *testing.T) {
	killed(t, func(w *world, s *intake.Service) (bool, func()) {
		r := w.ask(ask("x", "write", "write"))
		w.approve(r, "c0")
		_, err := s.Withdraw(t.Context(), claude, r.ID, "over")
		return err == nil, func() {
			got, err := w.Withdraw(t.Context(), claude, r.ID, "over")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint([]intake.Outcome{"withdrawn", "withdrawn"}), fmt.Sprint(outcomes(got)))
		}
	})
}
