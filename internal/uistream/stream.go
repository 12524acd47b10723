package uistream

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A stream is one open answer: a turn as it happens.
type stream struct {
	s    *Server
	c    caller
	at   place
	tell *teller
	head approvals.RunID

	// follow keeps the stream open while people decide. Without it, it ends with
	// what they are asked, so that a client that answers with its next request can.
	follow bool
	// counted are calls that the client has answered and that need more people: the
	// stream stays open for them too.
	counted map[approvals.ToolCallID]bool
	notes   []*approvalData // are sent first

	drafted <-chan struct{} // the draft has grown
	draft   func() agentrun.Draft
}

// enter counts the stream and begins to watch the drafts of the chat. The caller must
// call leave.
func (x *stream) enter() (leave func(), err error) {
	out, err := x.s.enter(x.c.user)
	if err != nil {
		return nil, err
	}
	drafted, draft, unwatch, err := x.s.c.Drafts.Watch(x.at.thread)
	if err != nil {
		out()
		return nil, err
	}
	x.drafted, x.draft = drafted, draft
	return func() { unwatch(); out() }, nil
}

// run sends the turn until it is over, the client is gone or the server stops. It
// returns an error only if nothing was sent.
func (x *stream) run() error {
	ctx := x.c.r.Context()
	changed, unwatch, err := x.s.c.Changes.Watch(string(x.head))
	if err != nil {
		return err
	}
	defer unwatch()
	t, err := x.s.load(ctx, x.at, x.c.user, x.head)
	if err != nil {
		return err
	}
	// For a rest of the body, the server would wait without a deadline after the answer.
	if _, err := io.Copy(io.Discard, x.c.r.Body); err != nil {
		return refuse(http.StatusBadRequest, "The body did not arrive as a whole.")
	}
	_ = x.c.control.SetReadDeadline(time.Time{})
	if !x.open() {
		return nil
	}
	held := time.NewTimer(x.s.c.Hold)
	defer held.Stop()
	beat := time.NewTicker(x.s.c.Heartbeat)
	defer beat.Stop()
	stopping, grown := false, false
	for {
		if grown {
			if !x.grow(t, x.draft()) {
				return nil
			}
		} else if !x.send(t, x.draft()) || x.finish(t, stopping) {
			return nil
		}
		grown = false
		look := time.NewTimer(x.s.c.Look*3/4 + rand.N(x.s.c.Look/2)) //nolint:gosec // jitter is no secret
		reload := true
		select {
		case <-ctx.Done():
		case <-changed:
		case <-x.drafted:
			grown, reload = true, false
		case <-look.C:
		case <-beat.C:
			reload = false
			if !x.write([]byte(": keep-alive\n\n")) || !x.still() {
				look.Stop()
				return nil
			}
		case <-held.C:
			if stopping = t.waits; !stopping {
				held.Reset(x.s.c.Heartbeat) // the agent is at work
			}
		case <-x.s.ended:
			stopping = true
		}
		look.Stop()
		if ctx.Err() != nil {
			return nil
		}
		if !reload {
			continue
		}
		next, err := x.s.load(ctx, x.at, x.c.user, x.head)
		if err != nil {
			_ = x.s.problemOf(x.c.r, err) // logs it; the client comes again
			return nil
		}
		t = next
	}
}

// still reports whether the credential of the request is still valid, and whether the
// person may still open the chat.
func (x *stream) still() bool {
	err := x.s.still(x.c)
	if err == nil && x.at.shared {
		_, err = x.s.c.People.MayOpen(x.c.r.Context(), x.c.user, x.at.origin)
	}
	return err == nil
}

// open sends the header.
func (x *stream) open() bool {
	h := x.c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("Connection", "keep-alive")
	h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	h.Set("X-Accel-Buffering", "no")
	x.c.w.WriteHeader(http.StatusOK)
	return x.write([]byte(": stream-open\n\n"))
}

func (x *stream) write(b []byte) bool {
	_ = x.c.control.SetWriteDeadline(x.s.c.Now().Add(writeTime))
	_, err := x.c.w.Write(b)
	return err == nil && x.c.control.Flush() == nil
}

func (x *stream) chunks(all []chunk) bool {
	var b bytes.Buffer
	for _, c := range all {
		event, err := c.event()
		if err != nil {
			return false
		}
		b.Write(event)
	}
	return b.Len() == 0 || x.write(b.Bytes())
}

// send tells what is new, and reports whether it is on its way.
func (x *stream) send(t *turn, d agentrun.Draft) bool {
	out := x.tell.tell(t, x.s.c.Now())
	for _, n := range x.notes {
		out = append(out, x.tell.note(n)...)
	}
	x.notes = nil
	return x.chunks(out) && x.grow(t, d)
}

// grow sends what the model has written meanwhile, and returns false if the stream
// must end. In a shared conversation it sends nothing of a turn that someone else asked
// for: what this person may read of that is known only once the step is stored.
func (x *stream) grow(t *turn, d agentrun.Draft) bool {
	if x.at.shared && t.asker != x.c.user {
		d = agentrun.Draft{}
	}
	out := x.tell.draft(t, d)
	return !x.tell.lost && x.chunks(out)
}

// finish ends the stream if there is nothing more to tell, or if it is not to wait
// any longer.
func (x *stream) finish(t *turn, stopping bool) bool {
	now := x.s.c.Now()
	switch {
	case t.over:
	case t.waits && (stopping || !x.holds(t, now)):
	default:
		return stopping && !t.waits // cut off in the middle: the client resumes
	}
	out := slices.Concat(x.tell.unsettled(t, now), x.tell.end(t))
	if x.chunks(out) {
		x.write([]byte(doneEvent))
	}
	return true
}

// holds reports whether the stream stays open while the turn waits: the client
// wants that, or it has answered everything that it was asked and that did not
// suffice, or it can answer nothing.
func (x *stream) holds(t *turn, now time.Time) bool {
	if x.follow || !t.people || !x.tell.dialect.approvals() {
		return true
	}
	for _, s := range t.steps {
		for _, c := range s.calls {
			if c.pending(now) && !x.counted[c.id] {
				return false
			}
		}
	}
	return true
}
