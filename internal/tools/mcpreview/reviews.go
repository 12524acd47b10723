package mcpreview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

// Config is what [Reviews] work with.
type Config struct {
	Store Store
	Set   *mcptool.Set
	// Lock says that the tools are those of a lock file.
	Lock bool
	// Owners returns who decides about an agent; nobody if it is empty.
	Owners func(agent string) approvals.From
	// Fits returns an error if the agents or the policy do not fit the tools: with
	// these pins the bot would not start.
	Fits func(pins mcptool.Pins) error
	// Take makes the agents and the policy use the tools of the set, after the set
	// has taken them. Until it returns nil it is called again.
	Take func(ctx context.Context) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Reviews follow the accepted tools and keep what owners are asked.
type Reviews struct {
	c Config

	mu    sync.Mutex
	taken int64                       // the version of the pins that is in use
	owed  bool                        // the set has taken pins that the agents have not
	seen  map[mcptool.Place]seen      // what was proposed here
	pause map[mcptool.Place]time.Time // when something else may be proposed
}

// seen is the last proposal of a server that this process has kept.
type seen struct {
	digest string
	asks   bool
}

// New returns reviews that have taken the version of the pins with which the set was
// opened.
func New(c Config, taken int64) *Reviews {
	return &Reviews{c: c, taken: taken, seen: map[mcptool.Place]seen{}, pause: map[mcptool.Place]time.Time{}}
}

// How often a process looks, and how long a server that changes its tools all the
// time waits for the next proposal.
const (
	every    = 2 * time.Second
	atLeast  = 30 * time.Second
	attempts = 8
)

// Run looks until ctx ends.
func (r *Reviews) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		err := r.Look(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			r.c.Log.ErrorContext(ctx, "cannot follow the accepted tools of MCP servers", slog.Any("err", err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look takes what was accepted since the last look, and keeps what servers have
// changed as proposals.
func (r *Reviews) Look(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []error
	var pins mcptool.Pins
	if !r.c.Lock {
		var err error
		if pins, err = r.follow(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	for _, p := range r.c.Set.Proposals() {
		if err := r.propose(ctx, p, pins); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// follow takes the accepted tools if they have changed.
func (r *Reviews) follow(ctx context.Context) (mcptool.Pins, error) {
	pins, version, err := ReadPins(ctx, r.c.Store)
	if err != nil {
		return pins, fmt.Errorf("read which tools of MCP servers are accepted: %w", err)
	}
	if version != r.taken {
		r.c.Set.Take(pins)
		r.taken, r.owed = version, true
	}
	if !r.owed {
		return pins, nil
	}
	if err := r.c.Take(ctx); err != nil {
		return pins, fmt.Errorf("take the accepted tools of MCP servers: %w", err)
	}
	r.owed = false
	r.c.Log.InfoContext(ctx, "took the accepted tools of MCP servers")
	return pins, nil
}

// propose keeps what the server lists now, if it is not what this process has seen
// it list before. What the owners are asked ends if there is nothing to ask.
func (r *Reviews) propose(ctx context.Context, p mcptool.Proposal, pins mcptool.Pins) error {
	now := r.c.Now()
	last, known := r.seen[p.Place]
	id := IDOf(p.Place)
	if decided, err := r.settle(ctx, id, pins); err != nil || decided {
		return err
	}
	mine := seen{digest: p.Digest, asks: p.Asks()}
	if known && last == mine || now.Before(r.pause[p.Place]) {
		return nil
	}
	doc, v, err := load(ctx, r.c.Store, id)
	if err != nil {
		return err
	}
	open := v > 0 && doc.Ended == ""
	_, decided := pins.Decided(p.Place, p.Digest)
	switch {
	case !mine.asks && open:
		doc.Ended, doc.At = Reverted, now
	case mine.asks && !decided && (v == 0 || doc.Ended != "" && doc.Digest != p.Digest || doc.Ended == Reverted || open && (doc.Digest != p.Digest || doc.Locked != r.c.Lock)):
		doc = Review{Proposal: p, SeenAt: now, Locked: r.c.Lock}
	default:
		r.seen[p.Place] = mine
		return nil
	}
	if err := commit(ctx, r.c.Store, id, doc, v, now); err != nil {
		if errors.Is(err, approvals.ErrConflict) {
			return nil // another process was first; the next look sees what it kept
		}
		return err
	}
	r.seen[p.Place], r.pause[p.Place] = mine, now.Add(atLeast)
	return nil
}

// settle gives a review the decision about it, which is in the pins.
func (r *Reviews) settle(ctx context.Context, id string, pins mcptool.Pins) (ended bool, err error) {
	doc, v, err := load(ctx, r.c.Store, id)
	if err != nil || v == 0 || doc.Ended != "" {
		return false, err
	}
	d, ok := pins.Decided(doc.Place, doc.Digest)
	if !ok {
		return false, nil
	}
	doc = doc.decided(d)
	err = commit(ctx, r.c.Store, id, doc, v, r.c.Now())
	if errors.Is(err, approvals.ErrConflict) {
		return true, nil
	}
	return true, err
}

func (r Review) decided(d mcptool.Decision) Review {
	r.Ended, r.By, r.At = Ending(d.Verdict), d.By, d.At
	return r
}

// Review returns what is asked about a server, with the decision if there is one,
// and its version.
func (r *Reviews) Review(ctx context.Context, id string) (Review, int64, error) {
	doc, v, err := load(ctx, r.c.Store, id)
	if err != nil {
		return doc, v, err
	}
	if v == 0 {
		return doc, v, fmt.Errorf("what is asked about an MCP server: %w", approvals.ErrNotFound)
	}
	if doc.Ended != "" || r.c.Lock {
		return doc, v, nil
	}
	pins, _, err := ReadPins(ctx, r.c.Store)
	if err != nil {
		return doc, v, err
	}
	if d, ok := pins.Decided(doc.Place, doc.Digest); ok {
		doc = doc.decided(d)
	}
	return doc, v, nil
}

// Drawn says that the review is shown as it is in this version.
func (r *Reviews) Drawn(ctx context.Context, id string, v int64) error {
	doc, now, err := load(ctx, r.c.Store, id)
	if err != nil || now != v {
		return err // it is due again
	}
	err = commit(ctx, r.c.Store, id, doc, v, time.Time{})
	if errors.Is(err, approvals.ErrConflict) {
		return nil
	}
	return err
}

// Decide decides about what the digest stands for, as one of the owners. The review
// is how it stands then. The errors are those of the core: ErrNotEligible, ErrStale
// if the server has changed its tools since, ErrSettled if someone else was first,
// ErrRefused if there is a lock file, and ErrInvalid if the bot would not start with
// these tools. It returns once the decision is durable.
func (r *Reviews) Decide(ctx context.Context, id, digest string, verdict mcptool.Verdict, by approvals.Principal) (Review, error) {
	for range attempts {
		doc, err := r.decide(ctx, id, digest, verdict, by)
		if errors.Is(err, approvals.ErrConflict) {
			continue
		}
		return doc, err
	}
	return Review{}, fmt.Errorf("decide about the tools of an MCP server: %w", approvals.ErrConflict)
}

func (r *Reviews) decide(ctx context.Context, id, digest string, verdict mcptool.Verdict, by approvals.Principal) (Review, error) {
	doc, v, err := load(ctx, r.c.Store, id)
	if err == nil && v == 0 {
		err = approvals.ErrNotFound
	}
	if err != nil {
		return doc, err
	}
	if !r.c.Owners(doc.Agent).Admits(by) {
		return doc, approvals.ErrNotEligible
	}
	if r.c.Lock || doc.Locked {
		return doc, approvals.ErrRefused
	}
	pins, version, err := ReadPins(ctx, r.c.Store)
	if err != nil {
		return doc, err
	}
	if d, ok := pins.Decided(doc.Place, digest); ok { // whatever is asked now
		return doc.decided(d), r.settled(ctx)
	}
	if doc.Digest != digest || doc.Ended != "" {
		return doc, approvals.ErrStale
	}
	next, d, err := pins.Decide(doc.Proposal, verdict, by.User, r.c.Now())
	if err != nil {
		return doc, err
	}
	if verdict == mcptool.Accepted {
		if err := r.c.Fits(next); err != nil {
			r.c.Log.ErrorContext(ctx, "changed tools were not accepted: the bot would not start with them",
				slog.String("agent", doc.Agent), slog.String("server", doc.Server), slog.Any("err", err))
			return doc, fmt.Errorf("%w: %w", approvals.ErrInvalid, err)
		}
	}
	if err := r.c.Store.KeepMemo(ctx, PinsID, PinsSurface, next.Bytes(), version); err != nil {
		return doc, err
	}
	r.c.Log.InfoContext(ctx, "an owner decided about the tools of an MCP server", slog.String("agent", doc.Agent), slog.String("server", doc.Server),
		slog.String("user", string(by.User)), slog.String("verdict", string(verdict)), slog.String("proposal", digest))
	return doc.decided(d), nil
}

// settled is why nothing is decided, once the decision before is durable.
func (r *Reviews) settled(ctx context.Context) error {
	if err := r.c.Store.Confirm(ctx, PinsID); err != nil {
		return err
	}
	return approvals.ErrSettled
}
