package webhook

import "time"

// Kind says how an attempt ended.
type Kind string

// The kinds of outcomes. The zero Kind counts as Retry.
const (
	Delivered   Kind = "delivered"   // the receiver answered 2xx
	Retry       Kind = "retry"       // it may arrive later
	Gone        Kind = "gone"        // the receiver answered 410: it wants no more messages
	Invalid     Kind = "invalid"     // the message can never be sent, see [Message.Body]
	Interrupted Kind = "interrupted" // the caller's context was canceled; the attempt does not count
)

// An Outcome is how an attempt ended. Only the status and the bounded time come from
// the receiver, so that an outcome can be logged and shown.
type Outcome struct {
	Kind   Kind
	Status int           // of the receiver's answer; 0 if there was none
	After  time.Duration // the least time until the next attempt that the receiver asked for, at most [MaxRetryAfter]
	// Slow says that the receiver is overloaded. Other messages for it should wait for
	// After too.
	Slow   bool
	Reason string // what went wrong, in a sentence
}

// MaxRetryAfter bounds the time that a receiver can ask for with Retry-After, so
// that it cannot keep messages waiting for ever.
const MaxRetryAfter = time.Hour
