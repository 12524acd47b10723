package slacksim

import (
	"time"
)

// Hood is what happens inside the app, as far as whoever runs both the app
// and the workspace shows it: the workspace itself only sees requests, and
// passes this on. See [Config].
type Hood struct {
	Timeline  []HoodEvent    `json:"timeline"`  // the oldest first
	Documents []HoodDocument `json:"documents"` // in the order in which they are worth reading
	Omitted   int            `json:"omitted,omitempty"`
}

// HoodEvent is one thing that happened, in words.
type HoodEvent struct {
	At     time.Time `json:"at"`
	Run    string    `json:"run"`
	What   string    `json:"what"`
	Detail string    `json:"detail"`
	Tone   string    `json:"tone,omitempty"` // "good", "bad" or "wait"
}

// HoodDocument is one thing that the app stores, as it is stored now.
type HoodDocument struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
	Value string `json:"value"` // for reading; a long one is cut, and says so
}
