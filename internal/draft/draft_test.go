package draft_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/draft"
)

// A relay is one in memory that loses what it is told to.
type relay struct {
	mu    sync.Mutex
	to    map[*func(string)]bool
	sent  []string
	loses func(n int) bool
	told  chan struct{} // after each message
}

func newRelay() *relay {
	return &relay{to: map[*func(string)]bool{}, loses: func(int) bool { return false }, told: make(chan struct{}, 1000)}
}

func (r *relay) Publish(_ context.Context, _ agentrun.ThreadID, message string) (bool, error) {
	r.mu.Lock()
	r.sent = append(r.sent, message)
	lost, to := r.loses(len(r.sent)), []func(string){}
	for f := range r.to {
		to = append(to, *f)
	}
	r.mu.Unlock()
	for _, f := range to {
		if !lost {
			f(message)
		}
	}
	r.told <- struct{}{}
	return len(to) > 0, nil
}

func (r *relay) Listen(_ agentrun.ThreadID, to func(string)) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to[&to] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.to, &to)
	}, nil
}

func (r *relay) frames() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

var run = agentrun.Run{ID: "run-01-a", Thread: "thread-01-t", To: 3}

func everything(agentrun.Run) bool { return true }

func text(s string) agentrun.Delta { return agentrun.Delta{Kind: agentrun.DeltaText, Text: s} }

// words is the draft as one text; parts are in brackets.
func words(d agentrun.Draft) string {
	var b strings.Builder
	for _, p := range d.Parts {
		fmt.Fprintf(&b, "[%s %s%s]", p.Kind, p.Tool, p.Text)
	}
	return b.String()
}

// until waits until the draft is this.
func until(t *testing.T, changed <-chan struct{}, now func() agentrun.Draft, want string) {
	t.Helper()
	for words(now()) != want {
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the draft is %s", words(now()))
		}
	}
}

func TestWhoWatchesSeesTheDraftGrow(t *testing.T) {
	r := newRelay()
	changed, now, leave, err := draft.NewReader(r).Watch(run.Thread)
	require.NoError(t, err)
	defer leave()
	write, closed := draft.NewWriter(r, everything).Open(run)
	write(agentrun.Delta{Kind: agentrun.DeltaThinking, Text: "Hm."})
	until(t, changed, now, "[thinking Hm.]")
	write(text("I'll "))
	write(text("look."))
	until(t, changed, now, "[thinking Hm.][text I'll look.]")
	write(agentrun.Delta{Kind: agentrun.DeltaCall, Call: "c1", Tool: "list "})
	write(agentrun.Delta{Kind: agentrun.DeltaCall, Call: "c2", Tool: "read ", Text: `{"a`})
	write(agentrun.Delta{Kind: agentrun.DeltaCall, Call: "c1", Tool: "list ", Text: "{}"})
	until(t, changed, now, `[thinking Hm.][text I'll look.][call list {}][call read {"a]`)
	require.Equal(t, run.ID, now().Run)
	require.Equal(t, run.To, now().At)
	closed()

	write, closed = draft.NewWriter(r, everything).Open(agentrun.Run{ID: "run-01-b", Thread: run.Thread, To: 5})
	write(text("Other"))
	until(t, changed, now, "[text Other]")
	require.Equal(t, 5, now().At)
	write(agentrun.Delta{Kind: agentrun.DeltaAgain})
	write(text("Again"))
	until(t, changed, now, "[text Again]")
	closed()
}

func TestWhoComesLaterSeesAllOfTheDraft(t *testing.T) {
	r := newRelay()
	write, closed := draft.NewWriter(r, everything).Open(run)
	defer closed()
	write(text("one"))
	<-r.told
	reader := draft.NewReader(r)
	changed, now, leave, err := reader.Watch(run.Thread)
	require.NoError(t, err)
	defer leave()
	until(t, changed, now, "[text one]") // though nothing is added
	write(text(" two"))
	until(t, changed, now, "[text one two]")
	_, also, leaveToo, err := reader.Watch(run.Thread)
	require.NoError(t, err)
	require.Equal(t, "[text one two]", words(also()), "another one in the process at once")
	leaveToo()

	changed, now, leaveToo, err = draft.NewReader(r).Watch(run.Thread) // in another process, while nothing is added
	require.NoError(t, err)
	defer leaveToo()
	until(t, changed, now, "[text one two]")
}

// What is shown is never wrong, whatever is lost: it is the beginning of what was
// written.
func TestALostFrameDelaysTheDraftAndDoesNotBendIt(t *testing.T) {
	r := newRelay()
	r.loses = func(n int) bool { return n%3 != 1 }
	changed, now, leave, err := draft.NewReader(r).Watch(run.Thread)
	require.NoError(t, err)
	defer leave()
	write, closed := draft.NewWriter(r, everything).Open(run)
	defer closed()
	var all string
	for i := range 12 {
		word := fmt.Sprintf("word%d ", i)
		all += word
		write(text(word))
		<-r.told
		if d := now(); len(d.Parts) > 0 {
			require.True(t, strings.HasPrefix(all, d.Parts[0].Text), "%q", d.Parts[0].Text)
		}
	}
	until(t, changed, now, "[text "+all+"]")
}

func TestARunThatNobodyCanWatchCostsNothing(t *testing.T) {
	write, closed := draft.NewWriter(newRelay(), func(agentrun.Run) bool { return false }).Open(run)
	require.Nil(t, write)
	require.Nil(t, closed)
}

func TestWhileNobodyListensLittleIsSent(t *testing.T) {
	r := newRelay()
	write, closed := draft.NewWriter(r, everything).Open(run)
	for range 10_000 {
		write(text("word "))
	}
	<-r.told
	closed()
	require.LessOrEqual(t, r.frames(), 2)
}

func TestADraftIsBounded(t *testing.T) {
	r := newRelay()
	changed, now, leave, err := draft.NewReader(r).Watch(run.Thread)
	require.NoError(t, err)
	defer leave()
	write, closed := draft.NewWriter(r, everything).Open(run)
	defer closed()
	kilobyte := strings.Repeat("x", 1<<10)
	for range 1000 {
		write(text(kilobyte))
	}
	until(t, changed, now, "[text "+strings.Repeat(kilobyte, 128)+"]")
	write(text("y"))
	require.NotContains(t, words(now()), "y", "it has no gap")
}

func TestAFrameIsSmallWhenLittleIsAdded(t *testing.T) {
	r := newRelay()
	changed, now, leave, err := draft.NewReader(r).Watch(run.Thread)
	require.NoError(t, err)
	defer leave()
	write, closed := draft.NewWriter(r, everything).Open(run)
	defer closed()
	long := strings.Repeat("long ", 1000)
	write(text(long))
	until(t, changed, now, "[text "+long+"]")
	write(text("end"))
	until(t, changed, now, "[text "+long+"end]")
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.sent[len(r.sent)-1]
	require.True(t, json.Valid([]byte(last)))
	require.Less(t, len(last), 200)
}
