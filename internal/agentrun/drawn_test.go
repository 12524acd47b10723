package agentrun_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// A drawnAt is when commits of running runs had surfaces draw these, and when others left
// them undrawn, since it was made.
type drawnAt struct {
	mu      sync.Mutex
	drawn   []time.Duration
	undrawn []time.Duration
}

func (w *world) drawnAt() *drawnAt {
	d, began := &drawnAt{}, time.Now()
	w.store.after = func(_ int, c agentrun.Commit) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch is := slices.ContainsFunc(c.Runs, func(r agentrun.Run) bool { return r.Status == agentrun.RunRunning }); {
		case is && c.Undrawn:
			d.undrawn = append(d.undrawn, time.Since(began))
		case is:
			d.drawn = append(d.drawn, time.Since(began))
		}
		return nil
	}
	return d
}

// Surfaces draw the progress of a run at most every second, however fast its steps are.
// What a commit left undrawn is drawn a moment later, also if no step follows.
func TestTheProgressOfARunIsDrawnEverySecond(t *testing.T) {
	timed(t, func(w *world) {
		const steps = 25
		took := 100 * time.Millisecond
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			<-time.After(took)
			return nil
		})}
		for i := range steps {
			w.model.answers = append(w.model.answers, calls([3]string{fmt.Sprint("c", i), "wait", ""}))
		}
		w.model.answers = append(w.model.answers, func(context.Context) (agentrun.Response, error) {
			took = 4 * time.Second
			return calls([3]string{"long", "wait", ""}), nil
		}, says("done"))
		at := w.drawnAt()
		require.Equal(w.t, agentrun.RunCompleted, w.work(w.mention("go").ID).Status)
		require.Equal(w.t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 6500 * time.Millisecond}, at.drawn)
		require.Greater(w.t, len(at.undrawn), steps)
	})
}

// A lease that is renewed changes nothing that people read.
func TestARenewalOfALeaseIsNotDrawn(t *testing.T) {
	timed(t, func(w *world) {
		w.agent.Tools = []agentrun.Tool{w.waits(time.Hour, func(context.Context) error {
			<-time.After(10 * time.Minute)
			return nil
		})}
		w.model.answers = []any{calls([3]string{"a", "wait", ""}), says("done")}
		at := w.drawnAt()
		require.Equal(w.t, agentrun.RunCompleted, w.work(w.mention("go").ID).Status)
		require.Equal(w.t, []time.Duration{0, time.Second, 10 * time.Minute}, at.drawn, "the claim, the call, and its end")
		require.Greater(w.t, len(at.undrawn), 70)
	})
}
