package slackapi

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// statusEvery is the least time between two status lines of one thread.
const statusEvery = time.Second

// A StatusLine shows under a thread what its agent waits for or does. Slack removes
// the line with the next message there, and after two minutes. It is shown in the
// background, at most once per change, and nothing depends on it: a failure is logged
// once.
type StatusLine struct {
	API *Client
	Now func() time.Time
	Log *slog.Logger

	failed sync.Once

	mu sync.Mutex
	at map[string]time.Time // by thread: when the newest one was shown
}

// Show shows the words in the thread. Where there is no thread it does nothing.
func (s *StatusLine) Show(ctx context.Context, channel, thread, words string) {
	if thread == "" || !s.turn(channel+" "+thread) {
		return
	}
	Renew(ctx, s.API, "status "+channel+" "+thread, func(ctx context.Context) (struct{}, error) {
		err := s.API.SetStatus(ctx, channel, thread, words)
		if err != nil {
			s.failed.Do(func() {
				s.Log.DebugContext(ctx, "status line not shown", slog.String("channel", channel), slog.Any("err", err))
			})
		}
		return struct{}{}, err
	})
}

// turn reports whether a line may be shown in the thread now, and takes the turn.
func (s *StatusLine) turn(thread string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	recent := func(at time.Time) bool { return now.Sub(at) < statusEvery }
	if recent(s.at[thread]) {
		return false
	}
	maps.DeleteFunc(s.at, func(_ string, at time.Time) bool { return !recent(at) })
	if s.at == nil {
		s.at = map[string]time.Time{}
	}
	s.at[thread] = now
	return true
}
