package slacksim

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/slacksim/page"
)

// Server is a Slack workspace with one app installed. It is an [http.Handler];
// serve it on loopback only, because through its control API anyone can act as
// any person. It is safe for concurrent use.
//
// Its parts depend on each other in one direction only. The engine depends on none;
// the world and its payloads depend on the engine. Above them is what reaches the app
// (the journal, Socket Mode, the courier, events), then what is written and shown
// (messages, screens, response_urls), what people do, and the Web API.
type Server struct {
	*engine
	*journal
	*socketMode
	*events
	*messages
	*persons
	*interactions
	*forms

	world     *world
	responder *responder
	oauth     *oauthAPI
	web       *webAPI
	gate      *gate
	handler   http.Handler
}

// New returns a running workspace. The caller owes it a [Server.Close].
func New(cfg Config) *Server {
	e := newEngine(cfg.withDefaults(everyScope()))
	w := newWorld(e)
	at := &gate{w.installations}
	shown := &payloads{w}
	log := &journal{engine: e}
	links := &socketMode{installations: w.installations, journal: log, tickets: map[string]time.Time{}}
	carry := &courier{engine: e, journal: log, socketMode: links}
	tell := &events{world: w, payloads: shown, courier: carry, socketMode: links}
	written := &messages{world: w, events: tell, assisting: map[string]*assistance{}}
	screens := &screens{
		engine: e, triggers: map[string]*trigger{}, views: map[string]*view{}, stacks: map[string][]*view{}, homes: map[string]*view{},
	}
	typed := &inputs{world: w, loaded: map[string][]object{}}
	answers := &responder{
		world: w, journal: log, payloads: shown, events: tell, messages: written, responses: map[string]*responseURL{},
	}
	acts := &interactions{
		world: w, payloads: shown, courier: carry, socketMode: links, messages: written, screens: screens, inputs: typed,
		responder: answers,
	}
	oauth := &oauthAPI{world: w, codes: map[string]*grant{}}
	chat := &chatAPI{world: w, payloads: shown, events: tell, messages: written}
	s := &Server{
		engine: e, journal: log, socketMode: links, events: tell, messages: written, interactions: acts,
		persons: &persons{world: w, payloads: shown, events: tell, messages: written, screens: screens, inputs: typed},
		forms: &forms{
			world: w, socketMode: links, screens: screens, inputs: typed, responder: answers, interactions: acts,
		},
		world: w, responder: answers, oauth: oauth, gate: at,
		web: &webAPI{
			installations: w.installations, gate: at, journal: log, used: map[string][]time.Time{},
			chat:          chat,
			schedule:      &scheduleAPI{world: w, payloads: shown, messages: written, chat: chat},
			assistant:     &assistantAPI{world: w, messages: written},
			conversations: &conversationsAPI{world: w, payloads: shown, events: tell},
			views:         &viewsAPI{world: w, payloads: shown, screens: screens},
			people:        &peopleAPI{world: w, payloads: shown, events: tell},
			reactions:     &reactionsAPI{world: w, payloads: shown, events: tell},
			oauth:         oauth,
			socketMode:    links,
		},
	}
	s.SetURLs(e.cfg.EventsURL, e.cfg.InteractivityURL, e.cfg.CommandsURL)
	s.SetOptionsURL(e.cfg.OptionsURL)
	s.handler = s.routes()
	e.wg.Go(func() { e.clock.loop(e.life().Done()) })
	return s
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.web.serveAPI)
	mux.HandleFunc("/api/{method}/{$}", s.web.serveAPI)
	mux.HandleFunc("GET /oauth/v2/authorize", s.oauth.serveAuthorize)
	mux.HandleFunc("POST /response/{team}/{id}", s.responder.serveResponseURL)
	mux.HandleFunc("GET "+linkPath+"{$}", s.serveLink)
	mux.Handle("/sim/", control{s}.handler())
	mux.Handle("/", page.Handler())
	return s.gate.guard(mux)
}

// ServeHTTP serves the Web API, response_urls, the control API and the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.gate.reachedBy(r, "")
	s.handler.ServeHTTP(w, r)
}

// Close ends deliveries, retries and event streams and waits for every
// goroutine of the server. Close it before the HTTP server that serves it,
// which waits for the streams.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
}

// SetURLs says where the app listens from now on. An empty URL switches the
// feature off.
func (s *Server) SetURLs(events, interactivity, commands string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls.events, s.urls.interactivity, s.urls.commands = events, interactivity, commands
}

// SetOptionsURL says where the options of external select menus are asked
// for; without one it is the interactivity URL.
func (s *Server) SetOptionsURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls.options = url
}

// SetPublicURL says how the app reaches this server; see Config.PublicURL.
func (s *Server) SetPublicURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.PublicURL = url
	s.public = strings.TrimSuffix(url, "/")
}

// BotToken is the token the app must send.
func (s *Server) BotToken() string { return s.cfg.BotToken }

// TokenOf is the token of the app's own installation in a workspace, or empty.
func (s *Server) TokenOf(team string) string {
	for _, in := range s.world.installs { // fixed when the server was made
		if in.team == team {
			return in.token
		}
	}
	return ""
}

// ClientSecret is what the app proves itself with when it exchanges a code.
func (s *Server) ClientSecret() string { return s.cfg.ClientSecret }

// SigningSecret is the secret that requests to the app are signed with.
func (s *Server) SigningSecret() string { return s.cfg.SigningSecret }

// Advance moves the workspace's clock: triggers and response_urls age, and
// event retries that became due are sent. Signatures keep the real time, so
// that the app still accepts them.
func (s *Server) Advance(d time.Duration) { s.clock.advance(d) }

// Await returns when cond holds. It looks again after every change of the
// workspace, and returns the context's error if that ends first. cond may
// call the server's methods.
func (s *Server) Await(ctx context.Context, cond func() bool) error {
	changes, stop := s.watch()
	defer stop()
	for !cond() {
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("await the workspace: %w", context.Cause(ctx))
		case <-s.life().Done():
			return fmt.Errorf("await the workspace: %w", http.ErrServerClosed)
		}
	}
	return nil
}

// Idle returns when no request to the app is under way. Retries that are
// scheduled for later do not count.
func (s *Server) Idle(ctx context.Context) error {
	return s.Await(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.inflight == 0
	})
}

// SetFaults replaces the faults to come.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = newMisfortune(f, s.clock.now())
}
