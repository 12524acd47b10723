package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	maxBody = 1 << 20
	// ackTimeout is how long a request may take, below Slack's 3 s:
	// https://docs.slack.dev/interactivity/handling-user-interaction#acknowledgment_response.
	ackTimeout = 2500 * time.Millisecond
)

const (
	// maxWords and maxCopies bound what is still being done after the answer.
	maxWords      = 64
	maxCopies     = 16
	maxScreens    = 64
	afterworkTime = 20 * time.Second
)

const commandsPath = "/slack/commands"

// Server receives what Slack sends. It is an [http.Handler]; the caller owes
// it a [Server.Shutdown] after the HTTP server has shut down.
type Server struct {
	cfg       inboundConfig
	workspace Workspace
	handler   Handler
	mux       *http.ServeMux
}

// A Handler does what Slack delivers, all of it from the workspace that is
// served except what is Foreign. A returned error is answered 500, so that
// Slack delivers again or warns the person.
type Handler interface {
	Interaction(ctx context.Context, i Interaction) (reply, error)
	Command(ctx context.Context, c Command) (reply, error)
	Event(ctx context.Context, e Event) error
	// Foreign and ForeignCommand answer what came from elsewhere; they do
	// nothing of it.
	Foreign(ctx context.Context, i Interaction, refused error) (reply, error)
	ForeignCommand(ctx context.Context, c Command) (reply, error)
	// Wait returns when nothing follows any more after what was answered.
	Wait(ctx context.Context) error
}

func newServer(c inboundConfig, h Handler) *Server {
	s := &Server{cfg: c, workspace: c.Workspace, handler: h, mux: http.NewServeMux()}
	if !c.signed() {
		return s // there is nothing to believe a request by
	}
	s.mux.Handle("/slack/events", s.signed(s.events))
	s.mux.Handle("/slack/interactivity", s.signed(s.interactivity))
	s.mux.Handle(commandsPath, s.signed(s.commands))
	return s
}

// ServeHTTP serves /slack/events, /slack/interactivity and /slack/commands.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Shutdown waits for what is still being said after requests were answered, and
// for questions to Slack that nobody waits for any more, or until ctx is over.
// Nothing of that is ever needed for a decision to count.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.handler.Wait(ctx)
}

// A responder answers the person who did something: it tells them, opens forms
// for them, and does what may follow once their request is answered.
type responder struct {
	api *api
	log *slog.Logger

	afterwork sync.WaitGroup
	words     places // of what is told to people
	copies    places // of copies of cards that are taken into care
	screens   places // of modals and Homes that are drawn
}

func newResponder(a *api, log *slog.Logger) *responder {
	return &responder{api: a, log: log, words: make(places, maxWords), copies: make(places, maxCopies), screens: make(places, maxScreens)}
}

// wait returns when nothing follows any more, or when ctx is over.
func (s *responder) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.afterwork.Wait()
		s.api.asks.wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the last words to Slack: %w", context.Cause(ctx))
	}
}

// places bound how much of one kind of work goes on after answers.
type places chan struct{}

// errNoPlace is too much going on to say something to somebody.
var errNoPlace = errors.New("too busy to follow up")

// after runs work that may be lost, once the request is answered. It never
// waits: when too much of its kind is going on already, it is errNoPlace.
func (s *responder) after(ctx context.Context, p places, what string, work func(ctx context.Context) error) error {
	select {
	case p <- struct{}{}:
	default:
		return fmt.Errorf("%s: %w", what, errNoPlace)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterworkTime)
	s.afterwork.Go(func() {
		defer cancel()
		defer func() { <-p }()
		if err := work(ctx); err != nil {
			s.log.WarnContext(ctx, "follow-up to Slack", slog.String("what", what), slog.Any("error", err))
		}
	})
	return nil
}

// A reply is the answer to Slack's request: empty, or JSON.
type reply struct{ body any }

// errBody is a request that is signed and makes no sense.
var errBody = errors.New("the body makes no sense")

// signed reads the body, checks the signature over it, and lets handle answer
// within our ackTimeout. An error that handle returns is answered 500, so that
// Slack delivers again or warns the person.
func (s *Server) signed(handle func(ctx context.Context, body []byte) (reply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST only", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), ackTimeout)
		defer cancel()
		log := s.cfg.Log.With(slog.String("path", r.URL.Path))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			log.WarnContext(ctx, "request too large")
			http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "body not readable", http.StatusBadRequest)
			return
		}
		if r.URL.Path == commandsPath && sslCheck(r.Header, body) {
			return
		}
		if err := verify(s.cfg.SigningSecret(), r.Header, body, s.cfg.Now()); err != nil {
			log.WarnContext(ctx, "request refused", slog.String("reason", err.Error()))
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		answer, err := handle(ctx, body)
		switch {
		case errors.Is(err, errBody):
			log.WarnContext(ctx, "request not understood", slog.Any("error", err))
			http.Error(w, "bad request", http.StatusBadRequest)
		case err != nil:
			log.ErrorContext(ctx, "request not done", slog.Any("error", err))
			http.Error(w, "try again", http.StatusInternalServerError)
		case answer.body != nil:
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_ = json.NewEncoder(w).Encode(answer.body)
		}
	})
}

// sslCheck recognizes the form with which Slack checks the certificate of a
// command's URL. Slack does not say that it signs it, so it is answered before
// the signature is checked: with an empty 200, and nothing else is done.
func sslCheck(h http.Header, body []byte) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || len(body) > 1024 {
		return false
	}
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("ssl_check") == "1" && !form.Has("command") && !form.Has("payload")
}

func (s *Server) interactivity(ctx context.Context, body []byte) (reply, error) {
	p, err := readPayload(body)
	if err != nil {
		return reply{}, err
	}
	if err := s.workspace.admits(p); err != nil {
		return s.handler.Foreign(ctx, p.interaction(), err)
	}
	return s.handler.Interaction(ctx, p.interaction())
}

func (s *Server) commands(ctx context.Context, body []byte) (reply, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("command") == "" || !idForm.MatchString(form.Get("user_id")) {
		return reply{}, fmt.Errorf("%w: not a slash command", errBody)
	}
	c := commandOf(form)
	if !s.workspace.Serves(form.Get("team_id"), form.Get("enterprise_id")) {
		return s.handler.ForeignCommand(ctx, c)
	}
	return s.handler.Command(ctx, c)
}

// An inboundConfig is what Slack is received with.
type inboundConfig struct {
	Workspace     Workspace
	SigningSecret func() string // may be nil in Socket Mode
	Now           func() time.Time
	Log           *slog.Logger
}

// signed reports whether the signature of a request can be checked.
func (c inboundConfig) signed() bool { return c.SigningSecret != nil && c.SigningSecret() != "" }
