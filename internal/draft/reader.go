package draft

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/countersign/countersign/internal/agentrun"
)

// A Reader receives the drafts of the threads that people watch in this process.
type Reader struct {
	relay Relay

	mu      sync.Mutex
	threads map[agentrun.ThreadID]*thread
}

// NewReader returns a reader.
func NewReader(r Relay) *Reader {
	return &Reader{relay: r, threads: map[agentrun.ThreadID]*thread{}}
}

// A thread is the draft of one thread, with those who watch it.
type thread struct {
	leave    func()
	watchers map[chan struct{}]bool
	last     frame // without its parts
	draft    agentrun.Draft
}

// Watch returns a channel that is ready after the draft of the thread has changed, a
// function that returns the draft, and one that the caller must call at the end. The
// draft is empty until the first frame with the whole of it arrives. The response may
// be stored by now, or may never be.
func (r *Reader) Watch(id agentrun.ThreadID) (changed <-chan struct{}, now func() agentrun.Draft, leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.threads[id]
	if t == nil {
		t = &thread{watchers: map[chan struct{}]bool{}}
		if t.leave, err = r.relay.Listen(id, func(message string) { r.take(t, message) }); err != nil {
			return nil, nil, nil, err
		}
		r.threads[id] = t
	}
	ready := make(chan struct{}, 1)
	t.watchers[ready] = true
	now = func() agentrun.Draft {
		r.mu.Lock()
		defer r.mu.Unlock()
		return t.draft
	}
	return ready, now, func() { r.leave(id, t, ready) }, nil
}

func (r *Reader) leave(id agentrun.ThreadID, t *thread, ready chan struct{}) {
	r.mu.Lock()
	delete(t.watchers, ready)
	last := len(t.watchers) == 0
	if last {
		delete(r.threads, id)
	}
	r.mu.Unlock()
	if last {
		t.leave() // waits for messages, which wait for the lock
	}
}

// take adds a frame to the draft. It ignores a frame that does not continue the
// draft: the next whole frame repeats what it held.
func (r *Reader) take(t *thread, message string) {
	var f frame
	if json.Unmarshal([]byte(message), &f) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !f.Whole && (f.ID != t.last.ID || f.Seq != t.last.Seq+1) {
		return
	}
	parts := slices.Clone(t.draft.Parts)
	if f.Whole {
		parts = nil
	}
	for _, p := range f.Parts {
		switch {
		case p.Index == len(parts):
			parts = append(parts, agentrun.DraftPart{Kind: p.Kind, Call: p.Call, Tool: p.Tool, Text: p.Text})
		case p.Index >= 0 && p.Index < len(parts):
			parts[p.Index].Text += p.Text
		default:
			return
		}
	}
	t.draft = agentrun.Draft{Run: f.Run, At: f.At, Parts: parts}
	t.last = frame{ID: f.ID, Seq: f.Seq}
	for w := range t.watchers {
		select {
		case w <- struct{}{}:
		default: // the watcher has not looked yet, and will see this too
		}
	}
}
