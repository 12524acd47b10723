package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// statusEvery is the least time between two status lines of one thread.
const statusEvery = time.Second

// A Status shows under a thread what its agent waits for or does. Slack removes the
// line with the next message there, and after two minutes. It is shown in the
// background, at most once per change, and nothing depends on it: a failure is logged
// once.
type Status struct {
	Api *slackapi.Client
	Now func() time.Time
	Log *slog.Logger

	failed sync.Once

	mu sync.Mutex
	at map[string]time.Time // by thread: when the newest one was shown
}

// show shows the words in the thread. Where there is no thread it does nothing.
func (s *Status) show(ctx context.Context, channel, thread, words string) {
	if s == nil || thread == "" || !s.turn(channel+" "+thread) {
		return
	}
	slackapi.Renew(ctx, &s.Api.Asks, "status "+channel+" "+thread, func(ctx context.Context) (struct{}, error) {
		err := s.Api.SetStatus(ctx, channel, thread, words)
		if err != nil {
			s.failed.Do(func() {
				s.Log.DebugContext(ctx, "status line not shown", slog.String("channel", channel), slog.Any("error", err))
			})
		}
		return struct{}{}, err
	})
}

func (s *Status) turn(thread string) bool {
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

// waitsWords say how many approvals the open calls of the batch still need. Of
// alternatives it is not known how many that will be.
func waitsWords(b approvals.Batch, now time.Time) string {
	left, all := 0, 0
	for _, a := range b.Approvals {
		if !a.OpenAt(now) {
			continue
		}
		for _, p := range a.Progress() {
			if p.Quorum.Choice > 0 {
				return "is waiting for approvals"
			}
			left, all = left+max(0, p.Quorum.Need-len(p.By)), all+max(0, p.Quorum.Need)
		}
	}
	switch {
	case all == 0:
		return "is waiting for approvals"
	case left == all:
		return "is waiting for " + blockkit.Count(all, "approval")
	}
	return fmt.Sprintf("is waiting for %d of %s", left, blockkit.Count(all, "approval"))
}

// worksWords say which tools the run is calling.
func worksWords(run agentrun.Run) string {
	if len(run.Activity) == 0 {
		return "is working"
	}
	var tools []string
	for i, tool := range run.Activity {
		if i == blockkit.NamesShown {
			tools = append(tools, "…")
			break
		}
		tools = append(tools, blockkit.Brief(tool, 60))
	}
	return "is working: " + strings.Join(tools, ", ")
}
