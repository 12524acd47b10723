package draft

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
)

// How often frames are sent, and how much of a response is shown before it is
// complete.
const (
	pause     = 50 * time.Millisecond
	idle      = time.Second // after a while in which nobody listens, or nothing is added
	publishIn = time.Second
	maxDraft  = 128 << 10
	wholeEach = 20 // frames, and more for a long draft
)

// A Writer sends what models write to those who watch. It is an
// [agentrun.Watchers].
type Writer struct {
	relay   Relay
	watched func(agentrun.Run) bool
}

var _ agentrun.Watchers = (*Writer)(nil)

// NewWriter returns a writer. watched says whether people can watch a run at all.
func NewWriter(r Relay, watched func(agentrun.Run) bool) *Writer { return &Writer{r, watched} }

// Open implements [agentrun.Watchers].
func (w *Writer) Open(run agentrun.Run) (write func(agentrun.Delta), closed func()) {
	if !w.watched(run) {
		return nil, nil
	}
	s := &sender{relay: w.relay, run: run, id: rand.Text(), added: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.send(ctx)
	}()
	return s.add, func() {
		cancel()
		<-done
	}
}

// A sender sends one response while it grows.
type sender struct {
	relay Relay
	run   agentrun.Run
	added chan struct{}

	mu    sync.Mutex
	id    string
	seq   int
	whole int // the last frame that was
	parts []*part
	size  int
}

// A part is what there is of one part, and how much of it was sent.
type part struct {
	piece

	text  strings.Builder
	begun bool
	sent  int
}

// add takes a delta. What is too much is left to the response itself.
func (s *sender) add(d agentrun.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Kind == agentrun.DeltaAgain {
		s.id, s.seq, s.parts, s.size = rand.Text(), 0, nil, 0
		return
	}
	if s.size += len(d.Text); s.size > maxDraft {
		return
	}
	p := s.part(d)
	p.text.WriteString(d.Text)
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// part returns the part that a delta is of.
func (s *sender) part(d agentrun.Delta) *part {
	for _, p := range s.parts {
		if p.Kind == d.Kind && p.Call == d.Call {
			return p
		}
	}
	p := &part{piece: piece{Index: len(s.parts), Kind: d.Kind, Call: d.Call, Tool: d.Tool}}
	s.parts = append(s.parts, p)
	return p
}

// send sends frames until ctx ends.
func (s *sender) send(ctx context.Context) {
	heard, wait := false, pause
	for {
		again := time.NewTimer(idle)
		select {
		case <-ctx.Done():
		case <-s.added:
		case <-again.C: // for those who have come meanwhile
			heard = false
		}
		again.Stop()
		if ctx.Err() != nil {
			return
		}
		message, ok := s.frame(!heard)
		if !ok {
			continue
		}
		if heard = s.publish(ctx, message); heard {
			wait = pause
		} else {
			wait = min(2*wait, idle)
		}
		rest := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
	}
}

// publish reports whether anybody may have the frame.
func (s *sender) publish(ctx context.Context, message string) bool {
	ctx, cancel := context.WithTimeout(ctx, publishIn)
	defer cancel()
	heard, err := s.relay.Publish(ctx, s.run.Thread, message)
	return heard && err == nil
}

// frame returns what is to be sent next, if there is anything; whole has it be all.
func (s *sender) frame(whole bool) (message string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return "", false
	}
	whole = whole || s.seq == 0 || s.seq-s.whole >= wholeEach+s.size/4096
	f := frame{ID: s.id, Seq: s.seq, Whole: whole, Run: s.run.ID, At: s.run.To}
	for _, p := range s.parts {
		x := p.piece
		if x.Text = p.text.String(); !whole && p.begun {
			x = piece{Index: x.Index, Text: x.Text[p.sent:]}
		}
		if whole || !p.begun || x.Text != "" {
			f.Parts = append(f.Parts, x)
		}
		p.begun, p.sent = true, p.text.Len()
	}
	if whole {
		s.whole = s.seq
	}
	s.seq++
	raw, err := json.Marshal(f)
	return string(raw), err == nil && len(f.Parts) > 0
}
