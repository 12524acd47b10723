package slacksim

import (
	"time"
)

// Inspection is what happens inside the app. The workspace itself sees only the
// requests of the app: a program that runs both provides this with
// [Config.Inspect].
type Inspection struct {
	Timeline  []InspectionEvent    `json:"timeline"`  // the oldest first
	Documents []InspectionDocument `json:"documents"` // in the order in which they are worth reading
	Omitted   int                  `json:"omitted,omitempty"`
}

// InspectionEvent is one thing that happened, in words.
type InspectionEvent struct {
	At     time.Time `json:"at"`
	Run    string    `json:"run"`
	What   string    `json:"what"`
	Detail string    `json:"detail"`
	Tone   string    `json:"tone,omitempty"` // "good", "bad" or "wait"
}

// InspectionDocument is one thing that the app stores, as it is stored now.
type InspectionDocument struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
	Value string `json:"value"` // for reading; a long one is cut, and says so
}
