package inbound

import (
	"bytes"
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

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

const (
	maxBody = 1 << 20
	// ackTimeout is how long a request may take, below Slack's 3 s:
	// https://docs.slack.dev/interactivity/handling-user-interaction#acknowledgment_response.
	ackTimeout = 2500 * time.Millisecond
)

const (
	eventsPath        = "/slack/events"
	interactivityPath = "/slack/interactivity"
	commandsPath      = "/slack/commands"
)

// HTTP receives what Slack sends. It is an [http.Handler]; the caller must call
// [HTTP.Shutdown] after the HTTP server has shut down.
type HTTP struct {
	cfg       Config
	workspace Workspace
	handler   Handler
	mux       *http.ServeMux
}

// A Handler handles what Slack delivers. Requests of another workspace go to the
// methods named Foreign. An error that a method returns is answered 500, so that
// Slack delivers again or warns the person.
type Handler interface {
	Interaction(ctx context.Context, i Interaction) (Reply, error)
	Command(ctx context.Context, c Command) (Reply, error)
	Event(ctx context.Context, e Event) error
	// Foreign and ForeignCommand answer requests of other workspaces without
	// carrying them out.
	Foreign(ctx context.Context, i Interaction, refused error) (Reply, error)
	ForeignCommand(ctx context.Context, c Command) (Reply, error)
	// Wait returns when the work that follows answered requests is done.
	Wait(ctx context.Context) error
}

// NewHTTP returns the receiver of signed requests. Without a signing secret it serves none.
func NewHTTP(c Config, h Handler) *HTTP {
	s := &HTTP{cfg: c, workspace: c.Workspace, handler: h, mux: http.NewServeMux()}
	if !c.signed() {
		return s // no request could be verified
	}
	for path, handle := range map[string]handler{
		eventsPath: s.events, interactivityPath: s.interactivity, commandsPath: s.commands,
	} {
		s.mux.Handle(path, s.signed(path, handle))
	}
	return s
}

// ServeHTTP serves /slack/events, /slack/interactivity and /slack/commands.
func (s *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Shutdown waits for the messages that follow answered requests, and for lookups in
// the background, or until ctx is over. No decision depends on them.
func (s *HTTP) Shutdown(ctx context.Context) error {
	return s.handler.Wait(ctx)
}

// errBody says that a signed request cannot be read.
var errBody = errors.New("the body is malformed")

// A handler answers a request with this body. It may overwrite the body, and keeps no
// part of it.
type handler func(ctx context.Context, body []byte) (Reply, error)

// signed reads the body, checks the signature over it, and lets handle answer
// within our ackTimeout. An error that handle returns is answered 500, so that
// Slack delivers again or warns the person.
func (s *HTTP) signed(path string, handle handler) http.Handler {
	log := s.cfg.Log.With(slog.String("path", path))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST only", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), ackTimeout)
		defer cancel()
		buffer := buffers.Get().(*bytes.Buffer)
		defer recycle(buffer)
		body, err := readAll(buffer, http.MaxBytesReader(w, r.Body, maxBody), r.ContentLength)
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			log.WarnContext(ctx, "request too large")
			http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "body not readable", http.StatusBadRequest)
			return
		}
		if path == commandsPath && sslCheck(r.Header, body) {
			return
		}
		if err := verify(s.cfg.SigningSecret(), r.Header, body, s.cfg.Now()); err != nil {
			log.WarnContext(ctx, "request refused", slog.String("reason", err.Error()))
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		defer s.cfg.attended()()
		belongs := pathFor(body)
		answer, err := handle(ctx, body)
		switch {
		case errors.Is(err, errBody) && belongs != "" && path != belongs:
			log.WarnContext(ctx, "request for another path; change its URL in the settings of the Slack app", slog.String("belongs", belongs))
			http.Error(w, "this belongs to "+belongs, http.StatusBadRequest)
		case errors.Is(err, errBody):
			log.WarnContext(ctx, "request not understood", slog.Any("err", err))
			http.Error(w, "bad request", http.StatusBadRequest)
		case err != nil:
			log.ErrorContext(ctx, "request failed", slog.Any("err", err))
			http.Error(w, "try again", http.StatusInternalServerError)
		case !answer.IsZero():
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_ = json.NewEncoder(w).Encode(answer.body)
		}
	})
}

// pathFor returns the path to which a request with this body belongs, by how it looks: events
// are JSON, interactions a form with a payload, and slash commands one with a command. Empty
// means none of them.
func pathFor(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte("{")):
		return eventsPath
	case bytes.HasPrefix(body, []byte("payload=")):
		return interactivityPath
	case bytes.Contains(body, []byte("command=%2F")):
		return commandsPath
	}
	return ""
}

// buffers are for what is read and not kept.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// mostRecycled is the capacity of the largest buffer that is used again. Almost all
// requests fit into it.
const mostRecycled = 64 << 10

func recycle(b *bytes.Buffer) {
	if b.Cap() <= mostRecycled {
		b.Reset()
		buffers.Put(b)
	}
}

// readAll reads a body into the buffer, which is empty, and returns it as a part of that.
// It allocates the length that the header names only up to 64 KiB.
func readAll(b *bytes.Buffer, body io.Reader, length int64) ([]byte, error) {
	b.Grow(int(min(max(length, 0), 1<<16)) + bytes.MinRead)
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}

// sslCheck reports whether the request is the form with which Slack checks the
// certificate of a command's URL. Slack does not document that it signs the form,
// so it is answered with an empty 200 before the signature is checked, and nothing
// else is done.
func sslCheck(h http.Header, body []byte) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || len(body) > 1024 {
		return false
	}
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("ssl_check") == "1" && !form.Has("command") && !form.Has("payload")
}

func (s *HTTP) interactivity(ctx context.Context, body []byte) (Reply, error) {
	raw, err := payloadOf(body)
	if err != nil {
		return Reply{}, err
	}
	return s.interaction(ctx, raw)
}

func (s *HTTP) interaction(ctx context.Context, raw []byte) (Reply, error) {
	p, err := readPayload(raw)
	if err != nil {
		return Reply{}, err
	}
	if err := s.workspace.admits(p); err != nil {
		return s.handler.Foreign(ctx, p.interaction(), err)
	}
	return s.handler.Interaction(ctx, p.interaction())
}

func (s *HTTP) commands(ctx context.Context, body []byte) (Reply, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("command") == "" || !blockkit.IDForm.MatchString(form.Get("user_id")) {
		return Reply{}, fmt.Errorf("%w: not a slash command", errBody)
	}
	c := commandOf(form)
	if !s.workspace.serves(form.Get("team_id"), form.Get("enterprise_id")) {
		return s.handler.ForeignCommand(ctx, c)
	}
	return s.handler.Command(ctx, c)
}

// A Config is what [NewHTTP] works with.
type Config struct {
	Workspace     Workspace
	SigningSecret func() string // may be nil in Socket Mode
	Now           func() time.Time
	Log           *slog.Logger

	// Attend is called for each authentic request, and over once its answer is made. It
	// may be nil.
	Attend func() (over func())
}

// attended is Attend, or does nothing.
func (c Config) attended() (over func()) {
	if c.Attend == nil {
		return func() {}
	}
	return c.Attend()
}

// signed reports whether the signature of a request can be checked.
func (c Config) signed() bool { return c.SigningSecret != nil && c.SigningSecret() != "" }
