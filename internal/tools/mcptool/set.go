package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A Set is the servers of all agents, with the tools that were accepted.
type Set struct {
	servers []*serverTools
}

// Open returns the set. It reaches no server: [Set.Run] does.
func Open(servers []Server, pins Pins, log *slog.Logger) *Set {
	s := &Set{}
	for _, c := range servers {
		t := &serverTools{
			config: c, pins: pins,
			log: log.With(slog.String("agent", c.Agent), slog.String("server", c.Name)),
		}
		t.connection = newConnection(c, t.log, t.update)
		s.servers = append(s.servers, t)
	}
	return s
}

// Tools returns the tools of an agent, by their names.
func (s *Set) Tools(agent string) []agentrun.Tool {
	var all []agentrun.Tool
	for _, t := range s.servers {
		if t.config.Agent != agent {
			continue
		}
		accepted := t.accepted()
		for _, name := range slices.Sorted(maps.Keys(accepted)) {
			if t.config.takes(name) {
				all = append(all, newTool(t, accepted[name]))
			}
		}
	}
	return all
}

// Take makes these the accepted tools from now on. Tools that [Set.Tools] returned
// before are refused from then on where another definition was accepted.
func (s *Set) Take(pins Pins) {
	for _, t := range s.servers {
		t.take(pins)
	}
}

// Proposals says of every server whose list is known, and is not older than what was
// accepted, how it differs from that. A server that nobody has accepted anything of is left out: its tools
// are for an operator.
func (s *Set) Proposals() []Proposal {
	var all []Proposal
	for _, t := range s.servers {
		if p, known := t.proposal(); known {
			all = append(all, p)
		}
	}
	return all
}

// Run keeps the servers connected until ctx ends, and then ends their programs.
func (s *Set) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, t := range s.servers {
		running.Go(func() { t.connection.run(ctx) })
	}
	running.Wait()
}

// List starts or reaches a server, returns the tools that it lists and that the
// configuration wants, and ends it.
func List(ctx context.Context, s Server, log *slog.Logger) ([]Listed, error) {
	l, err := dial(ctx, s, log)
	if err != nil {
		return nil, err
	}
	defer l.end() //nolint:errcheck // it ends in any case
	raw, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	return listed(s, raw), nil
}

// serverTools is one server, with its accepted tools and what it lists now.
type serverTools struct {
	config     Server
	connection *connection
	log        *slog.Logger

	mu    sync.Mutex
	pins  Pins
	live  []Listed          // nil while nothing is known
	stale bool              // live may be older than what was accepted
	now   map[string]string // digests of those that can be used, by tool
	told  map[string]string // what the log was told of a tool
}

func (t *serverTools) place() Place { return Place{t.config.Agent, t.config.Name} }

func (t *serverTools) accepted() map[string]Definition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pins.accepted[t.place()]
}

func (t *serverTools) take(pins Pins) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pins = pins
	if t.config.URL != "" && t.live != nil && len(pins.Compare(t.config, t.live)) > 0 {
		// What was accepted may be a list that the server has had since it was last asked.
		// The next one says whether the tools differ.
		t.stale = true
		t.connection.look()
		return
	}
	t.tell()
}

func (t *serverTools) proposal() (p Proposal, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == nil || t.stale || !t.pins.Knows(t.place()) {
		return Proposal{}, false
	}
	return t.pins.Propose(t.config, t.live), true
}

// update takes what the server lists.
func (t *serverTools) update(live []Listed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.stale, t.now = append([]Listed{}, live...), false, map[string]string{}
	for _, l := range live {
		if l.Why == nil {
			t.now[l.Name] = l.Digest
		}
	}
	t.tell()
}

// tell logs what is not as it was accepted. The caller holds the lock.
func (t *serverTools) tell() {
	if t.live == nil {
		return
	}
	if !t.pins.Knows(t.place()) {
		t.log.Error("no tool of this MCP server is available, because nobody has accepted them; run bot mcp pins accept",
			slog.Int("tools", len(t.live)))
		return
	}
	told := map[string]string{}
	for _, c := range t.pins.Compare(t.config, t.live) {
		what := string(c.Kind) + string(c.After)
		if told[c.Tool] = what; t.told[c.Tool] == what {
			continue
		}
		t.log.Error("a tool of an MCP server is not as it was accepted, so it is not available; run bot mcp pins",
			slog.String("tool", approvals.Visible(clip(c.Tool, maxLabel))), slog.String("is", string(c.Kind)))
	}
	t.told = told
}

var (
	errGone    = errors.New("its server does not have it any more")
	errChanged = errors.New("its server has changed it, and nobody has accepted the change")
	errTask    = errors.New("its server runs it only as a task, and Countersign starts no tasks")
	errOlder   = errors.New("its definition has changed since it was offered")
)

// usable says why no call of a tool can be made: it is not as it was accepted, or runs
// only as a task.
func (t *serverTools) usable(d Definition) error {
	if d.onlyTasks {
		return errTask
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pins.accepted[t.place()][d.Name].Digest != d.Digest {
		return errOlder
	}
	switch digest, there := t.now[d.Name]; {
	case t.live == nil:
		return nil // it is asked before the call is made
	case !there:
		return errGone
	case digest != d.Digest:
		return errChanged
	}
	return nil
}

// Describe says of a server in one line how it is reached.
func (s Server) Describe() string {
	return fmt.Sprintf("%s (%s)", s.Name, approvals.Visible(s.where()))
}
