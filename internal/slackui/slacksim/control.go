package slacksim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// controlRoutes is /sim/: a thin layer over the methods that act for people.
func (s *Server) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sim/post", answering(func(in Post) (any, error) {
		ts, err := s.PostAs(in)
		return object{"ts": ts}, err
	}))
	mux.HandleFunc("POST /sim/command", answering(func(in Command) (any, error) { return s.Command(in) }))
	mux.HandleFunc("POST /sim/click", answering(func(in Click) (any, error) { return s.Click(in) }))
	mux.HandleFunc("POST /sim/submit", answering(func(in Submit) (any, error) { return s.SubmitView(in) }))
	mux.HandleFunc("POST /sim/close", answering(func(in closing) (any, error) {
		return object{"closed": true}, s.CloseView(in.User, in.ViewID, in.Clear)
	}))
	mux.HandleFunc("POST /sim/home", answering(func(in who) (any, error) { return object{}, s.OpenHome(in.User) }))
	mux.HandleFunc("POST /sim/reload", answering(func(in who) (any, error) { return object{}, s.Reload(in.User) }))
	mux.HandleFunc("POST /sim/leave", answering(func(in Post) (any, error) { return object{}, s.Leave(in.User, in.Channel) }))
	mux.HandleFunc("POST /sim/group", answering(func(in Group) (any, error) { return object{}, s.SetGroup(in.ID, in.Users) }))
	mux.HandleFunc("POST /sim/verify", answering(func(struct{}) (any, error) { return object{}, s.VerifyEventsURL() }))
	mux.HandleFunc("POST /sim/urls", answering(func(in targets) (any, error) {
		s.SetURLs(in.Events, in.Interactivity, in.Commands)
		return object{}, nil
	}))
	mux.HandleFunc("POST /sim/faults", answering(func(in Faults) (any, error) {
		s.SetFaults(in)
		return object{}, nil
	}))
	mux.HandleFunc("POST /sim/clock", answering(func(in ticking) (any, error) {
		s.Advance(time.Duration(in.AdvanceMS) * time.Millisecond)
		return object{"now": unix(s.clock.now())}, nil
	}))

	mux.HandleFunc("GET /sim/messages", asking(func(q url.Values) (any, error) {
		list, err := s.Messages(q.Get("user"), q.Get("channel"), q.Get("thread_ts"))
		return object{"messages": list}, err
	}))
	mux.HandleFunc("GET /sim/views", asking(func(q url.Values) (any, error) {
		answer := object{"views": s.Views(q.Get("user"))}
		if home, ok := s.Home(q.Get("user")); ok {
			answer["home"] = home
		}
		return answer, nil
	}))
	mux.HandleFunc("GET /sim/state", asking(func(url.Values) (any, error) { return s.State(), nil }))
	mux.HandleFunc("GET /sim/log", asking(func(url.Values) (any, error) { return object{"log": s.Log()}, nil }))
	mux.HandleFunc("GET /sim/events", s.serveChanges)
	return s.ownPagesOnly(mux)
}

type closing struct {
	User   string `json:"user"`
	ViewID string `json:"view_id"`
	Clear  bool   `json:"clear"`
}

type who struct {
	User string `json:"user"`
}

type targets struct {
	Events        string `json:"events"`
	Interactivity string `json:"interactivity"`
	Commands      string `json:"commands"`
}

type ticking struct {
	AdvanceMS int64 `json:"advance_ms"`
}

// answering decodes the input, which must be JSON with known fields only.
func answering[In any](do func(In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			writeJSON(w, http.StatusBadRequest, object{"error": "read the request: " + err.Error()})
			return
		}
		out, err := do(in)
		writeOutcome(w, out, err)
	}
}

func asking(do func(url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := do(r.URL.Query())
		writeOutcome(w, out, err)
	}
}

func writeOutcome(w http.ResponseWriter, out any, err error) {
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, out)
	case errors.Is(err, ErrNoSuch):
		writeJSON(w, http.StatusNotFound, object{"error": err.Error()})
	case errors.Is(err, ErrForbidden):
		writeJSON(w, http.StatusForbidden, object{"error": err.Error()})
	default:
		writeJSON(w, http.StatusBadRequest, object{"error": err.Error()})
	}
}

// ownPagesOnly keeps other web pages in the person's browser from acting
// here. Browsers name the origin of requests that act; for a page whose name
// was pointed at this machine afterwards, the host is foreign as well.
func (s *Server) ownPagesOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ownHost(r.Host) {
			writeJSON(w, http.StatusForbidden, object{"error": "the control API is not served under the name " + r.Host})
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
				writeJSON(w, http.StatusForbidden, object{"error": "another site's page may not act here"})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ownHost(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if public, err := url.Parse(s.cfg.PublicURL); s.cfg.AnyHost || (err == nil && public.Host == host) {
		return true
	}
	name := (&url.URL{Host: host}).Hostname()
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || (err == nil && ip.IsLoopback())
}

// serveChanges is an event stream with one event per change, or per several.
func (s *Server) serveChanges(w http.ResponseWriter, r *http.Request) {
	changes, stop := s.watch()
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	for {
		s.mu.Lock()
		version := s.version
		s.mu.Unlock()
		if _, err := fmt.Fprintf(w, "data: {\"version\":%d}\n\n", version); err != nil {
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
