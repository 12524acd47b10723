package slacksim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ControlRoute is one route of the control API, with the types of what it
// takes and answers; docs/slacksim.md is checked against them.
type ControlRoute struct {
	Pattern string // method and path
	In, Out reflect.Type
	handler http.HandlerFunc
}

// ControlRoutes is /sim/: a thin layer over the methods that act for people.
func (s *Server) ControlRoutes() []ControlRoute { return control{s}.table() }

// control is the control API. It may do what the methods of [Server] do.
type control struct{ *Server }

func (s control) table() []ControlRoute {
	return []ControlRoute{
		acting("/sim/post", func(in Post) (Posted, error) {
			ts, err := s.PostAs(in)
			return Posted{TS: ts}, err
		}),
		acting("/sim/command", s.Command),
		acting("/sim/click", s.Click),
		acting("/sim/suggest", s.Suggest),
		acting("/sim/submit", s.SubmitView),
		acting("/sim/close", func(in Closing) (Closed, error) {
			return Closed{true}, s.CloseView(in.User, in.ViewID, in.Clear)
		}),
		acting("/sim/shortcut", s.Shortcut),
		acting("/sim/home", func(in Who) (Done, error) { return Done{}, s.OpenHome(in.User) }),
		acting("/sim/reload", func(in Who) (Done, error) { return Done{}, s.Reload(in.User) }),
		acting("/sim/stop", func(in Stopping) (Done, error) { return Done{}, s.StopStream(in.User, in.Channel, in.TS) }),
		acting("/sim/join", func(in Membership) (Done, error) { return Done{}, s.Join(in.User, in.Channel) }),
		acting("/sim/leave", func(in Membership) (Done, error) { return Done{}, s.Leave(in.User, in.Channel) }),
		acting("/sim/archive", func(in Archiving) (Done, error) { return Done{}, s.Archive(in.User, in.Channel, in.Archived) }),
		acting("/sim/account", func(in Account) (Done, error) { return Done{}, s.SetActive(in.User, !in.Deleted) }),
		acting("/sim/group", func(in Members) (Done, error) { return Done{}, s.SetGroup(in.ID, in.Users) }),
		acting("/sim/install", func(in Installed) (Done, error) { return Done{}, s.SetInstalled(in.Team, in.Installed) }),
		acting("/sim/urls", func(in URLs) (Done, error) {
			err := in.wrong()
			if err == nil {
				s.SetURLs(in.Events, in.Interactivity, in.Commands)
				s.SetOptionsURL(in.Options)
			}
			return Done{}, err
		}),
		acting("/sim/socketmode", func(in SocketMode) (Done, error) {
			s.SetSocketMode(in.Enabled)
			return Done{}, nil
		}),
		acting("/sim/disconnect", func(in Disconnecting) (Disconnected, error) {
			n, err := s.Disconnect(in.Socket, in.Reason)
			return Disconnected{n}, err
		}),
		acting("/sim/verify", func(struct{}) (Done, error) { return Done{}, s.VerifyEventsURL() }),
		acting("/sim/sslcheck", func(struct{}) (SSLChecked, error) { return s.CheckSSL() }),
		acting("/sim/faults", func(in Faults) (Done, error) {
			err := in.wrong()
			if err == nil {
				s.SetFaults(in)
			}
			return Done{}, err
		}),
		acting("/sim/clock", func(in Ticking) (Clock, error) {
			if in.AdvanceMS < 0 || in.AdvanceMS > maxMS {
				return Clock{}, fmt.Errorf("%w: the clock moves forward, by at most %d ms at once", ErrBadInput, maxMS)
			}
			s.Advance(time.Duration(in.AdvanceMS) * time.Millisecond)
			return Clock{Now: s.clock.now().Unix()}, nil
		}),

		asking[Reading]("/sim/messages", func(q url.Values) (Channelful, error) {
			list, err := s.Messages(q.Get("user"), q.Get("channel"), q.Get("thread_ts"))
			return Channelful{Messages: list, Assistant: s.assistant(q.Get("channel"), q.Get("thread_ts"))}, err
		}),
		asking[Who]("/sim/views", func(q url.Values) (Screen, error) {
			if !s.exists(q.Get("user")) {
				return Screen{}, noSuch("person", q.Get("user"))
			}
			answer := Screen{Views: s.Views(q.Get("user"))}
			if home, ok := s.Home(q.Get("user")); ok {
				answer.Home = &home
			}
			return answer, nil
		}),
		asking[struct{}]("/sim/state", func(url.Values) (State, error) { return s.State(), nil }),
		asking[struct{}]("/sim/sockets", func(url.Values) (Connections, error) {
			s.mu.Lock()
			on, held := s.cfg.SocketMode, s.held
			s.mu.Unlock()
			return Connections{Enabled: on, Sockets: s.Sockets(), Held: held}, nil
		}),
		asking[struct{}]("/sim/log", func(url.Values) (Requests, error) { return Requests{Log: s.Log()}, nil }),
		{Pattern: "GET /sim/inspection", In: reflect.TypeFor[struct{}](), Out: reflect.TypeFor[Inspection](), handler: s.serveInspection},
		{Pattern: "GET /sim/events", In: reflect.TypeFor[struct{}](), Out: reflect.TypeFor[Change](), handler: s.serveChanges},
	}
}

func (s control) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		mux.HandleFunc(r.Pattern, r.handler)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", method)
			writeJSON(w, http.StatusMethodNotAllowed, Problem{fmt.Sprintf("%s takes %s, not %s", path, method, r.Method)})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, Problem{fmt.Sprintf("there is no %s; docs/slacksim.md has all routes", r.URL.Path)})
	})
	return mux
}

// acting is a route that does something. Its input must be JSON with known
// fields only, and it has no parameters.
func acting[In, Out any](path string, do func(In) (Out, error)) ControlRoute {
	return ControlRoute{"POST " + path, reflect.TypeFor[In](), reflect.TypeFor[Out](), func(w http.ResponseWriter, r *http.Request) {
		if refuseUnknown(w, r, nil) {
			return
		}
		var in In
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		d.UseNumber()
		err := d.Decode(&in)
		if err == nil && d.More() {
			err = errTrailing
		}
		if err != nil && !errors.Is(err, io.EOF) {
			writeJSON(w, http.StatusBadRequest, Problem{"read the request: " + err.Error()})
			return
		}
		out, err := do(in)
		writeOutcome(w, out, err)
	}}
}

// asking is a route that changes nothing; In has its query parameters, and there
// must be no others.
func asking[In, Out any](path string, do func(url.Values) (Out, error)) ControlRoute {
	return ControlRoute{"GET " + path, reflect.TypeFor[In](), reflect.TypeFor[Out](), func(w http.ResponseWriter, r *http.Request) {
		if refuseUnknown(w, r, parameters(reflect.TypeFor[In]())) {
			return
		}
		out, err := do(r.URL.Query())
		writeOutcome(w, out, err)
	}}
}

// refuseUnknown answers a request that has a query parameter which is not known, and reports
// whether it did.
func refuseUnknown(w http.ResponseWriter, r *http.Request, known []string) bool {
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			writeJSON(w, http.StatusBadRequest, Problem{fmt.Sprintf("read the request: unknown parameter %q", name)})
			return true
		}
	}
	return false
}

// parameters are the JSON names of the fields of a struct.
func parameters(in reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func writeOutcome(w http.ResponseWriter, out any, err error) {
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, out)
	case errors.Is(err, ErrNoSuch):
		writeJSON(w, http.StatusNotFound, Problem{err.Error()})
	case errors.Is(err, ErrForbidden):
		writeJSON(w, http.StatusForbidden, Problem{err.Error()})
	default:
		writeJSON(w, http.StatusBadRequest, Problem{err.Error()})
	}
}

// serveChanges is an event stream with one event per change, or per several.
func (s control) serveChanges(w http.ResponseWriter, r *http.Request) {
	changes, stop := s.watch()
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	for {
		s.mu.Lock()
		version := s.version
		s.mu.Unlock()
		if _, err := fmt.Fprintf(w, "data: %s\n\n", encodeJSON(Change{version})); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-changes:
		case <-r.Context().Done():
			return
		case <-s.life().Done():
			return
		}
	}
}

// serveInspection answers with what Config.Inspect returns. The workspace's own token and
// secret are removed from every text.
func (s control) serveInspection(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Inspect == nil {
		writeJSON(w, http.StatusNotFound, Problem{"this workspace was started without an inspector of the app; `bot demo` has one"})
		return
	}
	inspection, err := s.cfg.Inspect(r.Context())
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, Problem{"look inside the app: " + s.redact(err.Error())})
		return
	}
	timeline := make([]InspectionEvent, 0, len(inspection.Timeline))
	for _, e := range inspection.Timeline {
		e.What, e.Detail = s.redact(e.What), s.redact(e.Detail)
		timeline = append(timeline, e)
	}
	documents := make([]InspectionDocument, 0, len(inspection.Documents))
	for _, d := range inspection.Documents {
		d.Value = s.redact(d.Value)
		documents = append(documents, d)
	}
	writeJSON(w, http.StatusOK, Inspection{timeline, documents, inspection.Omitted})
}
