package openaimodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/plainhttp"
)

// The defaults of [Config].
const (
	DefaultBaseURL  = "https://api.openai.com/v1"
	DefaultTimeout  = 5 * time.Minute
	DefaultFirst    = 3 * time.Minute
	DefaultIdle     = time.Minute
	DefaultAttempts = 4
)

// API says by which protocol a model is asked.
type API string

// The protocols.
const (
	Chat      API = "chat"      // chat completions, which most servers have
	Responses API = "responses" // OpenAI's Responses API
)

// Config is what a [Model] works with. APIKey, Model and Now are required.
type Config struct {
	// APIKey opens the key. It is called for every attempt and its result is
	// sent as a bearer token and never printed; an empty one is not sent, since
	// servers on one's own machine need none.
	APIKey  func() string
	BaseURL string // with its /v1; empty means [DefaultBaseURL]
	Model   string
	API     API // empty means [Chat]
	Hosted  []Hosted

	// HTTPClient is used without following redirects, which would carry the
	// history elsewhere. Nil means one of our own.
	HTTPClient *http.Client

	Timeout  time.Duration // of one whole answer; it is not asked for again
	First    time.Duration // of silence before the first word: models think
	Idle     time.Duration // of silence after it
	Attempts int           // how often one answer is asked for, all in all

	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error // nil: wait for that long, or for the end of ctx
	Log  *slog.Logger                                     // nil: nowhere
}

// A Model asks one model of one provider. It is safe for concurrent use.
type Model struct {
	apiKey func() string
	model  string
	api    API
	hosted []Hosted
	// A base URL may hold a password: it is closed over so as not to be
	// printed with the Model.
	baseURL              func() string
	userinfo             func() []string
	takesMore            bool
	client               *http.Client
	timeout, first, idle time.Duration
	attempts             int
	now                  func() time.Time
	wait                 func(ctx context.Context, d time.Duration) error
	log                  *slog.Logger
}

var _ agentrun.Model = (*Model)(nil)

// New returns a model, or everything that is wrong with c.
func New(c Config) (*Model, error) {
	m := &Model{
		apiKey: c.APIKey, model: c.Model, api: cmp.Or(c.API, Chat), hosted: c.Hosted, client: withoutRedirects(c.HTTPClient),
		timeout: c.Timeout, first: c.First, idle: c.Idle, attempts: c.Attempts, now: c.Now, wait: c.Wait, log: c.Log,
	}
	m.fillIn()
	var problems []error
	problem := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New("openaimodel: "+text))
		}
	}
	problem(c.APIKey == nil, "Config.APIKey is missing")
	problem(c.Model == "", "Config.Model is missing")
	problem(c.Now == nil, "Config.Now is missing")
	problem(m.api != Chat && m.api != Responses, "Config.API must be chat or responses")
	problem(m.timeout < 0 || m.first < 0 || m.idle < 0, "Config.Timeout, First and Idle must not be negative")
	problem(m.attempts < 0, "Config.Attempts must not be negative")
	baseURL := cmp.Or(c.BaseURL, DefaultBaseURL)
	base, err := parseBaseURL(baseURL)
	if err != nil {
		problem(true, "Config.BaseURL "+err.Error())
	}
	if err := m.checkHosted(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	m.baseURL = func() string { return baseURL }
	m.userinfo = func() []string { return userinfo(base) }
	m.takesMore = takesMore(base)
	return m, nil
}

// CheckBaseURL returns what is wrong with a [Config].BaseURL. The error does not quote it:
// it may hold a password.
func CheckBaseURL(baseURL string) error {
	_, err := parseBaseURL(cmp.Or(baseURL, DefaultBaseURL))
	return err
}

func parseBaseURL(baseURL string) (*url.URL, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	var must []string
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		must = append(must, "must begin with http:// or https:// and name a host")
	}
	if base.RawQuery != "" || base.Fragment != "" {
		must = append(must, "must have neither ? nor #")
	}
	if len(must) > 0 {
		return nil, errors.New(strings.Join(must, ", and "))
	}
	return base, nil
}

func (m *Model) fillIn() {
	m.timeout = cmp.Or(m.timeout, DefaultTimeout)
	m.first = cmp.Or(m.first, DefaultFirst)
	m.idle = cmp.Or(m.idle, DefaultIdle)
	m.attempts = cmp.Or(m.attempts, DefaultAttempts)
	if m.wait == nil {
		m.wait = wait
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
}

// Request asks for one answer, again and again where that may help. See
// [agentrun.Model]. The end of ctx is its only error that is not an
// [*agentrun.ModelError], unless the provider has made calls by then.
func (m *Model) Request(ctx context.Context, r agentrun.ModelRequest) (agentrun.Response, error) {
	q := m.chatQuery(r)
	if m.api == Responses {
		q = m.responsesQuery(r)
	}
	for n := 1; ; n++ {
		response, failed := m.ask(ctx, q)
		if failed == nil {
			return response, nil
		}
		if len(failed.ran) > 0 { // asking again could have it run them again
			return agentrun.Response{}, failed.modelError(n)
		}
		if err := ctx.Err(); err != nil {
			return agentrun.Response{}, fmt.Errorf("ask the model: %w", err)
		}
		if len(r.Approved) > 0 && !failed.notRun {
			return agentrun.Response{}, failed.modelError(n) // the provider may have run them
		}
		if !failed.again || n >= m.attempts {
			return agentrun.Response{}, failed.modelError(n)
		}
		pause := failed.pause(n)
		m.log.WarnContext(ctx, "the model is asked again", slog.Int("attempt", n),
			slog.Duration("pause", pause), slog.String("err", failed.text))
		if err := m.wait(ctx, pause); err != nil {
			return agentrun.Response{}, fmt.Errorf("wait to ask the model again: %w", err)
		}
		if r.Written != nil {
			r.Written(agentrun.Delta{Kind: agentrun.DeltaAgain})
		}
	}
}

func withoutRedirects(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own.Transport = t.Clone()
	}
	own.Transport = plainhttp.Transport(own.Transport)
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// userinfo returns what must not be printed of u.
func userinfo(u *url.URL) []string {
	if u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	return []string{u.User.String(), u.User.Username(), password}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
