package slacksim

import (
	"slices"
	"time"
)

// perMinute is what a tier allows one installation per method.
//
// https://docs.slack.dev/apis/web-api/rate-limits
var perMinute = [5]int{1: 1, 2: 20, 3: 50, 4: 100}

// postBurst is how many messages a channel takes at once; after that it is
// one per second.
const postBurst = 3

// tooFast says how long a call has to wait, if the config asks for limits.
// A call that has to wait does not count.
func (s *webAPI) tooFast(m *method, a *args) time.Duration {
	if m == nil {
		return 0
	}
	var wait time.Duration
	if s.cfg.TierLimits && m.tier > 0 {
		wait = s.wait(a.token+" "+m.name, perMinute[m.tier], time.Minute)
	}
	if s.cfg.PostLimit && m.name == "chat.postMessage" {
		wait = max(wait, s.wait(a.token+" "+s.postsTo(a), postBurst, postBurst*time.Second))
	}
	return wait
}

// postsTo is the channel that a message is for, whatever the call names it by.
func (s *webAPI) postsTo(a *args) string {
	ref := a.str("channel")
	in := s.withToken(a.token)
	if in == nil {
		return ref
	}
	switch ch := s.chat.named(in, ref); {
	case ch == nil: // it is for a person, perhaps
		return ref
	case ch.IM:
		return ch.Members[0]
	default:
		return ch.ID
	}
}

// wait allows so many uses of a key in a span of time.
func (s *webAPI) wait(key string, most int, span time.Duration) time.Duration {
	now := s.clock.now()
	recent := slices.DeleteFunc(s.used[key], func(t time.Time) bool { return now.Sub(t) >= span })
	s.used[key] = recent
	if len(recent) >= most {
		return recent[0].Add(span).Sub(now)
	}
	s.used[key] = append(recent, now)
	return 0
}
