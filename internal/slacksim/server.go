package slacksim

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/slacksim/page"
)

// Server is a Slack workspace with one app installed. It is an
// [http.Handler]; serve it on loopback only, because its control API lets
// anybody act as any person. It is safe for concurrent use.
type Server struct {
	cfg     Config
	clock   *clock
	handler http.Handler
	life    func() context.Context // ends with Close
	end     context.CancelFunc
	wg      sync.WaitGroup // every goroutine the server starts

	mu         sync.Mutex // guards everything below
	closed     bool
	urls       struct{ events, interactivity, commands, options string }
	public     string
	teams      []Workspace // the first one first
	installs   []*installation
	people     []*Person
	channels   []*channel
	groups     []*Group
	triggers   map[string]*trigger
	responses  map[string]*responseURL
	loaded     map[string][]object // what the app answered to queries, by element
	views      map[string]*view    // every view that is open, by id
	stacks     map[string][]*view  // open modals by user, the root first
	homes      map[string]*view
	assisting  map[string]*assistance // by channel and thread
	codes      map[string]*grant      // of OAuth
	faults     Faults
	sockets    []*socket            // of Socket Mode, the oldest first
	turns      int                  // of which connection gets an envelope
	held       int                  // envelopes that the faults hold back
	tickets    map[string]time.Time // for one connection each
	journal    []LogEntry
	used       map[string][]time.Time // recent calls, for the rate limits
	scheduled  []*scheduled           // messages, in the order in which they came
	lastMicros int64
	lastID     uint64
	inflight   int
	version    uint64
	watchers   map[chan struct{}]bool
}

// New returns a running workspace. The caller owes it a [Server.Close].
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	ctx, end := context.WithCancel(context.Background())
	s := &Server{
		cfg:       cfg,
		clock:     newClock(cfg.Now),
		life:      func() context.Context { return ctx },
		end:       end,
		public:    strings.TrimSuffix(cfg.PublicURL, "/"),
		triggers:  map[string]*trigger{},
		responses: map[string]*responseURL{},
		loaded:    map[string][]object{},
		views:     map[string]*view{},
		stacks:    map[string][]*view{},
		homes:     map[string]*view{},
		assisting: map[string]*assistance{},
		codes:     map[string]*grant{},
		tickets:   map[string]time.Time{},
		used:      map[string][]time.Time{},
		watchers:  map[chan struct{}]bool{},
	}
	for _, p := range cfg.People {
		p.Team = cmp.Or(p.Team, TeamID)
		s.people = append(s.people, &p)
	}
	for _, c := range cfg.Channels {
		c.Members, c.Team = append([]string(nil), c.Members...), cmp.Or(c.Team, TeamID)
		s.channels = append(s.channels, &channel{Channel: c})
	}
	for _, g := range cfg.Groups {
		g.Users, g.Team = append([]string(nil), g.Users...), cmp.Or(g.Team, TeamID)
		s.groups = append(s.groups, &g)
	}
	s.install()
	s.SetURLs(cfg.EventsURL, cfg.InteractivityURL, cfg.CommandsURL)
	s.SetOptionsURL(cfg.OptionsURL)
	s.handler = s.routes()
	s.wg.Go(func() { s.clock.loop(ctx.Done()) })
	return s
}

// linkPath is where connections of Socket Mode are opened.
const linkPath = "/link/"

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("/api/{method}/{$}", s.serveAPI)
	mux.HandleFunc("GET /oauth/v2/authorize", s.serveAuthorize)
	mux.HandleFunc("POST /response/{team}/{id}", s.serveResponseURL)
	mux.HandleFunc("GET "+linkPath+"{$}", s.serveLink)
	mux.Handle("/sim/", s.controlRoutes())
	mux.Handle("/", page.Handler())
	return s.guard(mux)
}

// ServeHTTP serves the Web API, response_urls, the control API and the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.reachedBy(r, "")
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
	for _, in := range s.installs { // fixed when the server was made
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

// watch returns a channel that gets a value after changes; several changes
// may share one value.
func (s *Server) watch() (changes <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[ch] = true
	s.mu.Unlock()
	return ch, func() {
		s.mu.Lock()
		delete(s.watchers, ch)
		s.mu.Unlock()
	}
}

// changed tells the watchers. The caller holds mu.
func (s *Server) changed() {
	s.version++
	for ch := range s.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// spawn runs fn in a goroutine that Close waits for. The caller holds mu.
func (s *Server) spawn(fn func()) {
	if s.closed {
		return
	}
	s.inflight++
	s.wg.Go(func() {
		defer func() {
			s.mu.Lock()
			s.inflight--
			s.changed()
			s.mu.Unlock()
		}()
		fn()
	})
}
