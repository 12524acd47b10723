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

// The limits of what a writer sends.
const (
	pause     = 50 * time.Millisecond // between two frames
	idle      = time.Second           // the same while nobody listens or nothing is added
	publishIn = time.Second           // the time limit of one frame
	maxDraft  = 128 << 10             // bytes of a draft; the rest is not sent
	wholeEach = 20                    // frames from one whole frame to the next, and more for a long draft
)

// A Writer sends what models write. It is an [agentrun.Watchers].
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
	whole int // the number of the last whole frame
	parts []*part
	size  int
}

// A part is one part of the draft, with how much of it was sent.
type part struct {
	piece

	text  strings.Builder
	begun bool
	sent  int
}

// add adds a delta. It ignores what exceeds [maxDraft].
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

// part returns the part to which a delta belongs.
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
		case <-again.C: // people may have begun to watch meanwhile
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

// publish sends a frame, and reports whether anybody may have received it.
func (s *sender) publish(ctx context.Context, message string) bool {
	ctx, cancel := context.WithTimeout(ctx, publishIn)
	defer cancel()
	heard, err := s.relay.Publish(ctx, s.run.Thread, message)
	return heard && err == nil
}

// frame returns the next frame, and false if there is nothing to send. With whole it
// returns the whole draft.
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
