package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/intake"
)

// Progress tells a caller that its call waits: at once, whenever something
// changes, and every so often, with values that rise. A caller that gets no message
// gives up.
type Progress struct {
	Every time.Duration
	Send  func(n float64, text string)

	mu   sync.Mutex
	n    float64
	text string
}

// Start tells it until the returned function is called, which waits for the end.
func (p *Progress) Start(ctx context.Context) (stop func()) {
	p.Say("asking")
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(p.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.Say("")
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// Tell says how the request stands.
func (p *Progress) Tell(q intake.Request) {
	if q.State == intake.StatePending {
		p.Say(standing(q))
	}
}

// standing says how many approvals a pending request waits for.
func standing(q intake.Request) string {
	call, what := q.Calls[0], "an approval in Slack"
	switch {
	case call.Needed > 1:
		what = fmt.Sprintf("%d of %d approvals in Slack", call.Needed-call.Given, call.Needed)
	case call.Given > 0:
		what = fmt.Sprintf("more approvals in Slack, with %d so far", call.Given)
	}
	return "waiting for " + what + ", request " + string(q.ID)
}

// Say sends a text, or the one before again.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != "" {
		p.text = text
	}
	p.n++
	p.Send(p.n, p.text)
}
