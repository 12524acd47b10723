package slacksim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// engine is what every part of a workspace shares: the configuration, the
// lock, the clock, the numbers that ids are made of, and who watches.
type engine struct {
	cfg   Config
	clock *clock
	life  func() context.Context // ends with Close
	end   context.CancelFunc
	wg    sync.WaitGroup // every goroutine the server starts

	mu         sync.Mutex // guards everything below, and the state of every part
	closed     bool
	urls       struct{ events, interactivity, commands, options string }
	public     string
	faults     misfortune
	lastMicros int64
	lastID     uint64
	inflight   int
	version    uint64
	watchers   map[chan struct{}]bool
}

func newEngine(cfg Config) *engine {
	ctx, end := context.WithCancel(context.Background())
	return &engine{
		cfg:      cfg,
		clock:    newClock(cfg.Now),
		life:     func() context.Context { return ctx },
		end:      end,
		public:   strings.TrimSuffix(cfg.PublicURL, "/"),
		watchers: map[chan struct{}]bool{},
	}
}

// watch returns a channel that gets a value after changes; several changes
// may share one value.
func (s *engine) watch() (changes <-chan struct{}, stop func()) {
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
func (s *engine) changed() {
	s.version++
	for ch := range s.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// spawn runs fn in a goroutine that Close waits for. The caller holds mu.
func (s *engine) spawn(fn func()) {
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

func (s *engine) ackTimeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.AckTimeout
}

// nextTS returns a message timestamp that is unique in the workspace and
// larger than every earlier one. The caller holds mu.
func (s *engine) nextTS() string {
	micros := max(s.clock.now().UnixMicro(), s.lastMicros+1)
	s.lastMicros = micros
	return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
}

// nextID returns prefix and a capital suffix, as Slack's object ids look.
func (s *engine) nextID(prefix string) string {
	s.lastID++
	return prefix + randomFrom(alphabet, 6) + fmt.Sprintf("%04d", s.lastID)
}
