package slacksim

import "net/http"

// Faults is what goes wrong from now on. Each use takes one away.
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
}

// Fault is what happens to one Web API call.
type Fault struct {
	Method     string `json:"method,omitempty"`
	Status     int    `json:"status,omitempty"`      // an HTTP status other than 200: the call is not performed
	RetryAfter int    `json:"retry_after,omitempty"` // seconds, for 429
	Error      string `json:"error,omitempty"`       // with status 0 or 200: ok:false with this error, not performed
	LostReply  bool   `json:"lost_reply,omitempty"`  // the call is performed and the connection is cut
}

func (f *Faults) take(method string) *Fault {
	for i, next := range f.Next {
		if next.Method == "" || next.Method == method {
			f.Next = append(f.Next[:i:i], f.Next[i+1:]...)
			return &next
		}
	}
	return nil
}

func faultError(status int) string {
	if status == http.StatusTooManyRequests {
		return "ratelimited"
	}
	return "internal_error"
}
