package agentrun_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// asks has a person ask an agent in a thread of their own.
func (w *world) asks(agent string, who approvals.UserID, root string) approvals.RunID {
	w.t.Helper()
	run, err := w.runner().Mention(w.t.Context(), agentrun.Mention{
		Event: "ev-" + root, Origin: agentrun.Origin{Surface: "slack", Team: "T1", Channel: "C1", Root: root}, Agent: agent, Requester: who, Text: "go",
	})
	require.NoError(w.t, err)
	return run.ID
}

// worksOn has the runner work on a run until the bubble is idle.
func worksOn(t *testing.T, r *agentrun.Runner, id approvals.RunID, all *sync.WaitGroup) {
	t.Helper()
	all.Go(func() {
		if err := r.Work(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

// While as many runs of one person, or of one agent, are worked on as may be, a further
// one is put off, and those of others begin.
func TestManyRunsOfOneLeaveWorkersToOthers(t *testing.T) {
	for of, bound := range map[string]func(w *world){
		"requester": func(w *world) { w.perRequester = 2 },
		"agent":     func(w *world) { w.perAgent = 2 },
	} {
		t.Run(of, func(t *testing.T) {
			timed(t, func(w *world) {
				t := w.t
				bound(w)
				ends := make(chan struct{})
				w.model.reply = func(agentrun.ModelRequest) agentrun.Response {
					<-ends
					return says("done")
				}
				other, person := "ops", approvals.UserID("bob")
				if of == "agent" {
					other, person = "second", "alice"
				}
				first, second, third, others := w.asks("ops", "alice", "1"), w.asks("ops", "alice", "2"), w.asks("ops", "alice", "3"), w.asks(other, person, "4")
				r := w.runner()
				var all sync.WaitGroup
				worksOn(t, r, first, &all)
				worksOn(t, r, second, &all)
				var last time.Duration
				for range 8 {
					var busy *agentrun.BusyError
					require.ErrorAs(t, r.Work(t.Context(), third), &busy)
					require.Equal(t, of, busy.Of)
					require.NotContains(t, busy.Error(), "alice")
					last = busy.RetryAfter()
					require.LessOrEqual(t, last, 30*time.Second)
				}
				require.Greater(t, last, 600*time.Millisecond, "the more find no place, the longer they are put off")
				require.Equal(t, agentrun.RunQueued, w.run(third).Status, "and nobody holds it")
				worksOn(t, r, others, &all)
				require.Equal(t, agentrun.RunRunning, w.run(others).Status)
				want := agentrun.Busy{Agent: "ops", Runs: 2, PutOff: 8}
				if of == "requester" {
					want.Runs = 3
				}
				require.Contains(t, r.Busy(), want)

				close(ends)
				all.Wait()
				require.NoError(t, r.Work(t.Context(), third))
				require.Equal(t, agentrun.RunCompleted, w.run(third).Status)
				require.Contains(t, r.Busy(), agentrun.Busy{Agent: "ops", PutOff: 8}, "every place was given back")
			})
		})
	}
}
