package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	. "github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// The call of these tests needs three of four people. Two can deny it.
var (
	linearPeople = []UserID{"ann", "bo", "cy", "di"}
	linearRule   = Requirement{Quorums: []Quorum{of(3, linearPeople...)}, Deny: 2}
)

// A linearState is what the specification knows of the call. It is written down
// without the core: a set of decisions, and which requests were answered.
type linearState struct {
	version   int64 // commits since the call was opened
	decisions [4]Verdict
	carried   uint64 // bits of the ids of requests that count no more
}

func (s linearState) count(v Verdict) (n int) {
	for _, d := range s.decisions {
		if d == v {
			n++
		}
	}
	return n
}

func (s linearState) status() Status {
	switch {
	case s.count(Deny) >= 2:
		return Denied
	case s.count(Approve) >= 3:
		return Approved
	}
	return Pending
}

// A linearInput is what a client asks of a desk. One that has no request reads.
type linearInput struct {
	request int
	who     int
	verdict Verdict // empty: the decision is taken back
	byCase  bool    // as a surface asks, that has read the batch
}

// A linearOutput is what it was told.
type linearOutput struct {
	unknown   bool  // nothing: the change may have been made or not
	refused   error // no decision was changed
	status    Status
	version   int64
	decisions [4]Verdict
}

// does returns the state after the input, or why it is refused.
func (s linearState) does(in linearInput) (linearState, error) {
	own := s.decisions[in.who]
	switch {
	case in.request == 0:
		return s, nil
	case s.carried&(1<<in.request) != 0:
		if s.status() == Pending && in.verdict != "" && own != "" && own != in.verdict {
			return s, ErrDecided
		}
		return s, nil
	case s.status() != Pending:
		return s, ErrSettled
	case in.verdict == "" && own == "":
		return s, ErrNoDecision
	case in.verdict != "" && own == in.verdict:
		s.carried |= 1 << in.request // nothing changes, but the request is remembered
		return s, nil
	case in.verdict != "" && own != "":
		s.carried |= 1 << in.request // so that it stays refused
		return s, ErrDecided
	}
	s.decisions[in.who] = in.verdict
	s.carried |= 1 << in.request
	s.version++
	return s, nil
}

// linearModel allows what one person after another could have seen.
var linearModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{linearState{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		next, refused := s.does(in)
		switch {
		case out.unknown:
			return []any{s, next}
		case out.refused != nil || refused != nil:
			if refused == nil || !errors.Is(out.refused, refused) {
				return nil
			}
			return []any{next}
		case out.status != next.status() || out.version != next.version || out.decisions != next.decisions:
			return nil
		}
		return []any{next}
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}).ToModel()

// A linearHistory records what clients ask and are told.
type linearHistory struct {
	began   time.Time
	mu      sync.Mutex
	ops     []porcupine.Operation
	unknown int // operations whose answer was lost
}

// note records one operation of a client.
func (h *linearHistory) note(client int, in linearInput, do func() (Batch, error)) (known bool) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: time.Since(h.began).Nanoseconds()}
	b, err := do()
	op.Return = time.Since(h.began).Nanoseconds()
	out := linearOutput{}
	switch {
	case errors.Is(err, ErrSettled), errors.Is(err, ErrDecided), errors.Is(err, ErrNoDecision):
		out.refused = err
	case err != nil:
		out.unknown = true
		op.Return = math.MaxInt64 // it may still be on its way
	default:
		a := b.Approvals[0]
		out.status, out.version = a.Status, b.Version-1
		for _, d := range a.Decisions {
			for i, u := range linearPeople {
				if d.By.User == u {
					out.decisions[i] = d.Verdict
				}
			}
		}
	}
	op.Output = out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	if out.unknown {
		h.unknown++
	}
	return !out.unknown
}

// linearRun has four people decide, take back, deliver again and read at once, each
// through a desk of their own, and returns the history.
func linearRun(t *testing.T, seed uint64, b Batch, desks func(client int) *Desk) *linearHistory {
	t.Helper()
	h := &linearHistory{began: time.Now()}
	var wg sync.WaitGroup
	for who := range linearPeople {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(who)))
			d := desks(who)
			var last linearInput
			for i := range 7 {
				in := linearInput{request: 1 + who*7 + i, who: who}
				switch n := r.IntN(10); {
				case n < 4:
					in.verdict = Approve
				case n < 6:
					in.verdict = Deny
				case n < 8: // taken back
				case n < 9 && last.request != 0:
					in = last // Slack delivers it again
				default:
					h.note(who, linearInput{}, func() (Batch, error) { return d.Batch(t.Context(), b.ID) })
					continue
				}
				in.byCase = r.IntN(2) == 0
				last = in
				for range 4 { // who was told nothing asks again
					if h.note(who, in, func() (Batch, error) { return linearAsk(t.Context(), d, b, in) }) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	return h
}

// linearAsk makes the request, as a surface does that has read the batch, or without.
func linearAsk(ctx context.Context, d *Desk, b Batch, in linearInput) (Batch, error) {
	who := linearPeople[in.who]
	id := RequestID(fmt.Sprint("request-", in.request))
	if in.byCase {
		now, err := d.Batch(ctx, b.ID)
		if err != nil {
			return Batch{}, err
		}
		c, err := d.Case(ctx, now, theCall, b.Approvals[0].Call.Digest, known(who))
		if err == nil && in.verdict == "" {
			c, err = d.RetractCase(ctx, c, id)
		} else if err == nil {
			c, err = d.DecideCase(ctx, c, id, in.verdict, "")
		}
		return c.Batch, err
	}
	if in.verdict == "" {
		return d.Retract(ctx, b.ID, id, Retract{Call: theCall, By: Principal{User: who}})
	}
	return d.Decide(ctx, b.ID, id, say(b, who, in.verdict))
}

// A breaking store loses requests to commit, and answers to them.
type breaking struct {
	Store
	r *rand.Rand
}

func (s *breaking) CommitBatch(ctx context.Context, c BatchCommit) error {
	fault := s.r.IntN(6)
	if fault == 0 {
		return errLost
	}
	err := s.Store.CommitBatch(ctx, c)
	if fault == 1 && err == nil {
		return errLost
	}
	return err
}

// Decisions of people who click at once, through replicas whose connections to Redis
// break, are as if made one after the other: every answer agrees with one order, in
// which nothing is lost, and nothing that is delivered twice counts twice.
func TestDecisionsAreLinearizable(t *testing.T) {
	for name, server := range map[string]func(testing.TB) redis.UniversalClient{
		"miniredis": statetest.Miniredis, "redis": statetest.Redis,
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var sent atomic.Uint64
			whole := server(t)
			client := statetest.Harmed(t, whole, func([]byte) statetest.Fault {
				faults := []statetest.Fault{statetest.LostReply, statetest.LostRequest, statetest.None}
				return faults[min(rand.New(rand.NewPCG(seed, sent.Add(1))).IntN(40), 2)]
			})
			store, err := state.Open(t.Context(), state.Options{Client: client})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			opener, err := state.Open(t.Context(), state.Options{Client: whole})
			require.NoError(t, err)
			unknown := 0
			for round := range uint64(12) {
				b := linearBatch(t, opener, round)
				h := linearRun(t, seed+round, b, func(client int) *Desk {
					return deskOn(&breaking{Store: store, r: rand.New(rand.NewPCG(seed+round, uint64(100+client)))})
				})
				unknown += h.unknown
				require.True(t, porcupine.CheckOperations(linearModel, h.ops), "round %d: %+v", round, h.ops)
			}
			require.Positive(t, unknown, "no answer was lost")
		})
	}
}

// A forgetful store says that it committed what it did not.
type forgetful struct {
	Store
	commits *atomic.Int64
}

func (s forgetful) CommitBatch(ctx context.Context, c BatchCommit) error {
	if s.commits.Add(1) == 2 {
		return nil
	}
	return s.Store.CommitBatch(ctx, c)
}

func TestALostDecisionIsNotLinearizable(t *testing.T) {
	b := open(t, linearRule)
	s := stored(t, b)
	d := deskOn(forgetful{s.Store, new(atomic.Int64)})
	h := &linearHistory{began: time.Now()}
	for who := range linearPeople[:2] {
		in := linearInput{request: 1 + who, who: who, verdict: Approve}
		h.note(who, in, func() (Batch, error) { return linearAsk(t.Context(), d, b, in) })
	}
	require.True(t, porcupine.CheckOperations(linearModel, h.ops), "so far nobody can tell")
	h.note(0, linearInput{}, func() (Batch, error) { return d.Batch(t.Context(), b.ID) })
	require.False(t, porcupine.CheckOperations(linearModel, h.ops))
}

// linearBatch stores a batch with the call.
func linearBatch(t *testing.T, s *state.Store, round uint64) Batch {
	t.Helper()
	b, _, err := Open(
		Batch{ID: BatchID(fmt.Sprintf("batch-17-l%d", round)), Run: "run-17-r", Agent: "billing", Requester: "req", OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "delete", Args: theArgs}, Ask: Ask{Requirement: linearRule, Why: "it deletes"}}},
		nil,
	)
	require.NoError(t, err)
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &agentrun.OpenBatch{Batch: b}}))
	return b
}
