package slackapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

const (
	// A limit that lasts for limitedLong is logged. Shorter ones are usual.
	limitedLong = 5 * time.Minute
	// mostLimits bounds how many limits are kept that nothing was heard of for a while.
	mostLimits = 1000
)

// limits are the kinds of calls that Slack limits, and takes none of.
type limits struct {
	mu  sync.Mutex
	all map[string]limit
}

type limit struct {
	since, last time.Time // the first and the last answer that limited such a call
	told        bool
}

// heard notes what became of a call. It reports whether Slack has just limited such calls
// for long, or takes them again after that, and since when it limited them.
func (l *limits) heard(what string, now time.Time, err error) (limited, isNew bool, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, known := l.all[what]
	if _, limited = errors.AsType[*slack.RateLimitedError](err); !limited {
		if _, unanswered := errors.AsType[*LaterError](err); unanswered {
			return false, false, x.since
		}
		delete(l.all, what)
		return false, x.told, x.since
	}
	if l.all == nil {
		l.all = map[string]limit{}
	}
	if len(l.all) >= mostLimits {
		maps.DeleteFunc(l.all, func(_ string, x limit) bool { return now.Sub(x.last) > time.Hour })
	}
	if !known || now.Sub(x.last) > longestLimit+limitedLong { // nobody asked in between
		x = limit{since: now}
	}
	x.last = now
	isNew = !x.told && now.Sub(x.since) >= limitedLong
	x.told = x.told || isNew
	l.all[what] = x
	return true, isNew, x.since
}

// hear logs that Slack limits calls for long, and when that is over.
func hear(ctx context.Context, a *Client, what string, err error) {
	now := a.Now()
	limited, isNew, since := a.limits.heard(what, now, err)
	if !isNew || a.Log == nil {
		return
	}
	attrs := []any{slog.String("calls", what), slog.Duration("for", now.Sub(since).Round(time.Second))}
	if limited {
		a.Log.WarnContext(ctx, "Slack limits these calls and takes none of them; they are tried again until it does", attrs...)
		return
	}
	a.Log.InfoContext(ctx, "Slack takes these calls again", attrs...)
}
