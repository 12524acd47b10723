package slacksim

import (
	"net/http"
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

// serveHood answers what Config.Hood does. The workspace's own token and
// secret are taken out, wherever the app keeps them.
func (s control) serveHood(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Hood == nil {
		writeJSON(w, http.StatusNotFound, Problem{"nobody shows this workspace what happens inside the app; `bot demo` does"})
		return
	}
	hood, err := s.cfg.Hood(r.Context())
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, Problem{"look inside the app: " + s.redact(err.Error())})
		return
	}
	timeline := make([]HoodEvent, 0, len(hood.Timeline))
	for _, e := range hood.Timeline {
		e.What, e.Detail = s.redact(e.What), s.redact(e.Detail)
		timeline = append(timeline, e)
	}
	documents := make([]HoodDocument, 0, len(hood.Documents))
	for _, d := range hood.Documents {
		d.Value = s.redact(d.Value)
		documents = append(documents, d)
	}
	writeJSON(w, http.StatusOK, Hood{timeline, documents, hood.Omitted})
}
