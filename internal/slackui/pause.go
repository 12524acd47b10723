package slackui

import (
	"errors"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// pauses are the channels that Slack wants to be left alone, and until when.
// Others go on meanwhile. Each process learns it by itself.
type pauses struct {
	mu    sync.Mutex
	until map[string]time.Time
}

var errPaused = errors.New("the channel is limited by Slack")

// left is how long this kind of call still waits in the channel.
func (p *pauses) left(method, channel string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until[method+" "+channel].Sub(now)
	if left <= 0 {
		delete(p.until, method+" "+channel)
		return nil
	}
	return &LaterError{After: left, Err: errPaused}
}

// note remembers what Slack said, if it said for how long.
func (p *pauses) note(method, channel string, now time.Time, err error) {
	limited, ok := errors.AsType[*slack.RateLimitedError](err)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	p.until[method+" "+channel] = now.Add(max(limited.RetryAfter, time.Second))
}
