package intake_test

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// A property test draws 40 cases, each of which is a world of its own, and another number
// with -rapid.checks, as make soak does.
func init() {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
}

// A decision is used at most once and for the bytes that were approved, whatever
// agents ask, claim and withdraw in whatever order people decide; and no agent
// sees the request of another.
func TestADecisionIsUsedAtMostOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldOn(t, server, rand.Text())
		type key struct {
			run  approvals.RunID
			call approvals.ToolCallID
		}
		agents := []intake.Client{claude, claude}
		agents[1].Name, agents[1].Credential = "codex", "cred-2"
		owner := map[approvals.RunID]string{}
		approved := map[key]string{} // the bytes that bob approved
		claimed := map[key]int{}
		var runs []approvals.RunID
		apart := func(r *rapid.T, id approvals.RunID) {
			for _, c := range agents {
				_, err := w.Get(w.Context(), c, id)
				require.Equal(r, c.Name != owner[id], errors.Is(err, approvals.ErrNotFound))
			}
		}
		steps := 0
		pick := func() (approvals.RunID, intake.Client, intake.Request) {
			if len(runs) == 0 {
				r.Skip("nothing was asked")
			}
			id := rapid.SampledFrom(runs).Draw(r, "run")
			c := agents[0]
			if owner[id] == agents[1].Name {
				c = agents[1]
			}
			q, err := w.Get(w.Context(), c, id)
			require.NoError(r, err)
			return id, c, q
		}
		r.Repeat(map[string]func(*rapid.T){
			"ask": func(r *rapid.T) {
				c := rapid.SampledFrom(agents).Draw(r, "agent")
				a := ask(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "id"), "write")
				a.Reuse = rapid.Bool().Draw(r, "reuse")
				a.Calls[0].Args = fmt.Appendf(nil, `{"n": %d}`, rapid.IntRange(0, 1).Draw(r, "n"))
				q, err := w.Ask(w.Context(), c, a)
				require.NoError(r, err)
				if who, ok := owner[q.ID]; ok {
					require.Equal(r, c.Name, who)
				} else {
					owner[q.ID] = c.Name
					runs = append(runs, q.ID)
				}
				if a.Reuse {
					require.True(r, q.Calls[0].ClaimedAt.IsZero(), "a used decision is not found again")
				}
				require.Equal(r, string(a.Calls[0].Args), string(q.Calls[0].Args))
			},
			"decide": func(r *rapid.T) {
				id, _, q := pick()
				v := rapid.SampledFrom([]approvals.Verdict{approvals.Approve, approvals.Deny}).Draw(r, "verdict")
				if w.decide(q, "c0", v, "") == nil && v == approvals.Approve {
					approved[key{id, "c0"}] = string(q.Calls[0].Args)
				}
			},
			"claim": func(r *rapid.T) {
				id, c, q := pick()
				claim, err := w.Claim(w.Context(), c, id, "c0")
				if err != nil {
					require.True(r, errors.Is(err, intake.ErrClaimed) || errors.Is(err, intake.ErrNotUsable) || errors.Is(err, intake.ErrTooLate), err)
					return
				}
				at := key{id, "c0"}
				claimed[at]++
				require.Equal(r, 1, claimed[at])
				require.Equal(r, approved[at], string(claim.Args))
				require.Equal(r, intake.OutcomeApproved, q.Calls[0].Outcome)
			},
			"withdraw": func(r *rapid.T) {
				id, c, _ := pick()
				_, err := w.Withdraw(w.Context(), c, id, "")
				require.True(r, err == nil || errors.Is(err, approvals.ErrSettled), err)
			},
			"time": func(r *rapid.T) {
				w.clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, time.Hour}).Draw(r, "time"))
			},
			"": func(r *rapid.T) {
				if steps++; len(runs) > 0 { // one of them each time, and all in the end
					apart(r, runs[steps%len(runs)])
				}
			},
		})
		for _, id := range runs {
			apart(r, id)
		}
	})
}

// Whatever callers repeat, and whenever what ended is removed, one request is used at
// most once, and one that people can still decide is there.
func TestRemovalsRunNothingTwiceAndHideNothingOpen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldOn(t, server, rand.Text())
		asked := map[string]approvals.RunID{} // by what their callers call them
		open := map[approvals.RunID]intake.Request{}
		used := map[string]int{}
		request := func(r *rapid.T) (string, intake.Ask) {
			tool := rapid.SampledFrom([]string{"free", "write"}).Draw(r, "tool")
			name := rapid.SampledFrom([]string{"x", "y"}).Draw(r, "id")
			a := ask(name, tool)
			if rapid.Bool().Draw(r, "key") {
				a.IdempotencyKey, a.Payload = name+tool, approvals.Digest{1}
			}
			return name + tool, a
		}
		r.Repeat(map[string]func(*rapid.T){
			"ask": func(r *rapid.T) {
				name, a := request(r)
				q, err := w.Ask(w.Context(), claude, a)
				if _, gone := errors.AsType[*intake.RemovedError](err); gone {
					require.Contains(r, asked, name)
					return
				}
				require.NoError(r, err)
				if before, ok := asked[name]; ok {
					require.Equal(r, before, q.ID)
				}
				asked[name] = q.ID
				for id := range open { // another request of the same name may have ended it
					if w.get(id).State != intake.StatePending {
						delete(open, id)
					}
				}
				if q.State == intake.StatePending {
					open[q.ID] = q
				}
			},
			"decide": func(r *rapid.T) {
				for id, q := range open {
					require.NoError(r, w.decide(q, "c0", approvals.Approve, ""))
					delete(open, id)
					return
				}
			},
			"claim": func(r *rapid.T) {
				name, _ := request(r)
				if id, ok := asked[name]; ok {
					if _, err := w.Claim(w.Context(), claude, id, "c0"); err == nil {
						used[name]++
					}
				}
			},
			"remove": func(*rapid.T) {
				w.outlive(rapid.SampledFrom([]time.Duration{time.Hour, 20 * 24 * time.Hour, 400 * 24 * time.Hour}).Draw(r, "time"))
			},
			"": func(r *rapid.T) {
				for name, n := range used {
					require.LessOrEqual(r, n, 1, name)
				}
				for id := range open {
					require.Equal(r, intake.StatePending, w.get(id).State)
				}
			},
		})
	})
}
