package slacksim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Faults is what goes wrong from now on. Each use of what is counted takes one away.
type Faults struct {
	// Next are faults for Web API calls. The first one whose Method matches
	// a call is used for it; an empty Method matches every call, and
	// "response_url" matches posts to response_urls.
	Next []Fault `json:"next,omitempty"`
	// DuplicateDeliveries is how many events are delivered a second time
	// although the app accepted them, as after a lost acknowledgment.
	DuplicateDeliveries int `json:"duplicate_deliveries,omitempty"`
	// BadSignatures is how many requests to the app carry a wrong signature.
	BadSignatures int `json:"bad_signatures,omitempty"`
	// SkewSeconds is added to the timestamp that requests are signed with,
	// until it is set again.
	SkewSeconds int `json:"skew_seconds,omitempty"`
	// EnvelopeDelayMS is how long each envelope of Socket Mode is held back
	// on the workspace's clock before it is sent, until it is set again.
	EnvelopeDelayMS int `json:"envelope_delay_ms,omitempty"`
	// OutageMS is how long from now on, on the workspace's clock, every Web API call
	// is answered with 503 and not performed, and events are held back.
	OutageMS int `json:"outage_ms,omitempty"`
	// Chaos is what happens at random, until it is set again.
	Chaos *Chaos `json:"chaos,omitempty"`
}

// Chaos is a bad day of Slack. The shares are of 1, and of calls they add up: one
// call suffers one fault at most.
type Chaos struct {
	Seed       uint64  `json:"seed,omitempty"`           // the same seed rolls the same dice
	Limited    float64 `json:"limited,omitempty"`        // the share of calls that are answered with 429, and a Retry-After of 1 to 3 seconds
	Failed     float64 `json:"failed,omitempty"`         // likewise with 500, 502 or 503; neither is performed
	LostReply  float64 `json:"lost_reply,omitempty"`     // likewise of calls that are performed before the connection is cut
	Duplicated float64 `json:"duplicated,omitempty"`     // the share of events that are delivered again although the app accepted them
	EventDelay int     `json:"event_delay_ms,omitempty"` // each event is held back up to so long, so that later ones overtake it
}

// wrong returns what cannot happen.
func (f Faults) wrong() error {
	for _, one := range f.Next {
		switch {
		case one.Status != 0 && (one.Status < 200 || one.Status > 599):
			return fmt.Errorf("%w: %d is not the status of an answer", ErrBadInput, one.Status)
		case one.Method != "" && one.Method != "response_url" && methods[one.Method] == nil:
			return fmt.Errorf("%w: there is no method %q", ErrBadInput, one.Method)
		case one.RetryAfter < 0:
			return fmt.Errorf("%w: retry_after is negative", ErrBadInput)
		}
	}
	chaos := cmp.Or(f.Chaos, &Chaos{})
	for _, n := range []struct {
		name  string
		value int
	}{
		{"duplicate_deliveries", f.DuplicateDeliveries},
		{"bad_signatures", f.BadSignatures},
		{"envelope_delay_ms", f.EnvelopeDelayMS},
		{"outage_ms", f.OutageMS},
		{"event_delay_ms", chaos.EventDelay},
	} {
		if n.value < 0 || int64(n.value) > maxMS {
			return fmt.Errorf("%w: %s is not from 0 to %d", ErrBadInput, n.name, maxMS)
		}
	}
	return chaos.wrong()
}

// maxMS is the longest time that a request can ask for, in milliseconds: a year.
const maxMS int64 = 366 * 24 * 60 * 60 * 1000

func (c Chaos) wrong() error {
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"limited", c.Limited}, {"failed", c.Failed}, {"lost_reply", c.LostReply}, {"duplicated", c.Duplicated},
	} {
		if share.value < 0 || share.value > 1 {
			return fmt.Errorf("%w: %s is a share, from 0 to 1", ErrBadInput, share.name)
		}
	}
	if c.Limited+c.Failed+c.LostReply > 1+1e-9 { // their sum is rounded
		return fmt.Errorf("%w: limited, failed and lost_reply are more than 1 together", ErrBadInput)
	}
	return nil
}

// Fault is what happens to one Web API call.
type Fault struct {
	Method     string `json:"method,omitempty"`
	Status     int    `json:"status,omitempty"`      // an HTTP status other than 200: the call is not performed
	RetryAfter int    `json:"retry_after,omitempty"` // seconds, for 429
	Error      string `json:"error,omitempty"`       // with status 0 or 200: ok:false with this error, not performed
	LostReply  bool   `json:"lost_reply,omitempty"`  // the call is performed and the connection is cut
}

// misfortune is what is left of the faults, and where their dice are.
type misfortune struct {
	Faults

	dice  *rand.Rand
	until time.Time // when the outage is over
}

func newMisfortune(f Faults, now time.Time) misfortune {
	f.Next = slices.Clone(f.Next)
	t := misfortune{Faults: f, until: now.Add(time.Duration(f.OutageMS) * time.Millisecond)}
	if f.Chaos != nil {
		t.dice = rand.New(rand.NewPCG(f.Chaos.Seed, 0)) //nolint:gosec // it is to be repeatable
	}
	return t
}

// take returns what happens to a call now.
func (f *misfortune) take(method string, now time.Time) *Fault {
	for i, next := range f.Next {
		if next.Method == "" || next.Method == method {
			f.Next = append(f.Next[:i:i], f.Next[i+1:]...)
			return &next
		}
	}
	if now.Before(f.until) {
		return &Fault{Status: http.StatusServiceUnavailable}
	}
	if f.Chaos == nil {
		return nil
	}
	switch roll := f.dice.Float64(); {
	case roll < f.Chaos.Limited:
		return &Fault{Status: http.StatusTooManyRequests, RetryAfter: 1 + f.dice.IntN(3)}
	case roll < f.Chaos.Limited+f.Chaos.Failed:
		return &Fault{Status: []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable}[f.dice.IntN(3)]}
	case roll < f.Chaos.Limited+f.Chaos.Failed+f.Chaos.LostReply:
		return &Fault{LostReply: true}
	}
	return nil
}

// holdsBack is how long an event waits before its first delivery.
func (f *misfortune) holdsBack(now time.Time) time.Duration {
	wait := max(f.until.Sub(now), 0)
	if f.Chaos != nil && f.Chaos.EventDelay > 0 {
		wait += time.Duration(f.dice.IntN(f.Chaos.EventDelay+1)) * time.Millisecond
	}
	return wait
}

// duplicates reports whether an event that was accepted is delivered again.
func (f *misfortune) duplicates() bool {
	if f.DuplicateDeliveries > 0 {
		f.DuplicateDeliveries--
		return true
	}
	return f.Chaos != nil && f.dice.Float64() < f.Chaos.Duplicated
}

func faultError(status int) string {
	if status == http.StatusTooManyRequests {
		return "ratelimited"
	}
	return "internal_error"
}
