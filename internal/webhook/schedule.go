package webhook

import "time"

// schedule is that of the specification: the time before each attempt, counted from
// the one before. Together they are 75 hours and 35 minutes.
var schedule = []time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Delay returns how long to wait before this attempt, counted from 1, and false if
// there is no such attempt. Jitter is a random number from 0 to 1, which shortens
// the time by up to a tenth: messages that failed together do not come back
// together.
func Delay(attempt int, jitter float64) (time.Duration, bool) {
	if attempt < 1 || attempt > len(schedule) {
		return 0, false
	}
	d := schedule[attempt-1]
	return d - time.Duration(min(max(jitter, 0), 1)*float64(d)/10), true
}

// State says whether a message is still to be sent.
type State string

// The states. The zero State waits.
const (
	Waiting     State = ""
	Done        State = "done"
	Unwanted    State = "unwanted"    // the receiver is gone
	Unsendable  State = "unsendable"  // the message is invalid
	Undelivered State = "undelivered" // every attempt failed
)

// DisablesEndpoint reports whether the endpoint gets no more messages until
// someone enables it again: it said that it is gone, or it did not take this message
// during the 75 hours of the schedule. In the second case the caller first checks
// that it has not taken another message since [Attempts.First].
func (s State) DisablesEndpoint() bool { return s == Unwanted || s == Undelivered }

// Attempts is what is known about sending one message. The zero Attempts is a
// message that nobody has tried to send. The caller stores it with the message.
type Attempts struct {
	State      State     `json:"state,omitempty"`
	Count      int       `json:"count,omitempty"`
	First      time.Time `json:"first,omitzero"` // when the first attempt ended
	Last       time.Time `json:"last,omitzero"`
	Due        time.Time `json:"due,omitzero"` // when to try next; zero means at once, or never if the state is final
	LastStatus int       `json:"last_status,omitempty"`
	LastError  string    `json:"last_error,omitempty"` // the last failure, kept after the delivery
}

// Next returns the attempts after one more has ended in this outcome. It is pure: a
// is not changed, and the same arguments give the same result. For jitter see
// [Delay]. A final state never changes.
func (a Attempts) Next(o Outcome, now time.Time, jitter float64) Attempts {
	if a.State != Waiting {
		return a
	}
	if o.Kind == Interrupted {
		a.Due = now
		return a
	}
	if a.Count++; a.First.IsZero() {
		a.First = now
	}
	a.Last, a.LastStatus, a.Due = now, o.Status, time.Time{}
	if o.Reason != "" {
		a.LastError = o.Reason
	}
	switch o.Kind {
	case Delivered:
		a.State = Done
	case Gone:
		a.State = Unwanted
	case Invalid:
		a.State = Unsendable
	default:
		wait, more := Delay(a.Count+1, jitter)
		if !more {
			a.State = Undelivered
			break
		}
		a.Due = now.Add(max(wait, min(o.After, MaxRetryAfter)))
	}
	return a
}
