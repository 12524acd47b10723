package mcpreview_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

var at = mcptool.Place{Agent: "ops", Server: "bank"}

// world is one server, and replicas that use it with one store and one clock.
type world struct {
	t      *testing.T
	server *mcp.Server
	config mcptool.Server
	store  *state.Store
	lock   bool
	misfit error

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, server: mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil), now: time.Unix(1_700_000_000, 0)}
	page := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return w.server }, nil))
	t.Cleanup(func() { page.CloseClientConnections(); page.Close() })
	w.config = mcptool.Server{Agent: at.Agent, Name: at.Server, URL: page.URL}
	var err error
	w.store, err = state.Open(t.Context(), state.Options{Client: statetest.Miniredis(t), Now: w.read})
	require.NoError(t, err)
	w.lists("Pays.")
	var pins mcptool.Pins
	pins.Accept(at, definitions(t, w.config))
	require.NoError(t, w.store.CommitMemo(t.Context(), mcpreview.PinsID, mcpreview.PinsSurface, pins.Bytes(), 0, 0))
	return w
}

func definitions(t *testing.T, s mcptool.Server) (all []mcptool.Definition) {
	t.Helper()
	listed, err := mcptool.List(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, l := range listed {
		require.NoError(t, l.Why)
		all = append(all, l.Definition)
	}
	return all
}

func (w *world) read() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now }

func (w *world) passes(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.now = w.now.Add(d) }

func (w *world) lists(description string) {
	w.server.AddTool(&mcp.Tool{Name: "pay", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("not called here")
		})
}

func (w *world) pins() mcptool.Pins {
	w.t.Helper()
	pins, _, err := mcpreview.ReadPins(w.t.Context(), w.store)
	require.NoError(w.t, err)
	return pins
}

// replica is a process that is connected to the server.
func (w *world) replica() *mcpreview.Reviews {
	w.t.Helper()
	pins, version, err := mcpreview.ReadPins(w.t.Context(), w.store)
	require.NoError(w.t, err)
	set := mcptool.Open([]mcptool.Server{w.config}, pins, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { set.Run(ctx) })
	w.t.Cleanup(func() { cancel(); running.Wait() })
	return mcpreview.New(mcpreview.Config{
		Store: w.store, Set: set, Lock: w.lock, Now: w.read, Log: slog.New(slog.DiscardHandler),
		Owners: func(agent string) approvals.From {
			if agent != at.Agent {
				return approvals.From{}
			}
			return approvals.From{Users: []approvals.UserID{"ann"}, Groups: []approvals.GroupID{"sre"}}
		},
		Fits: func(mcptool.Pins) error { return w.misfit },
		Take: func(context.Context) error { return nil },
	}, version)
}

// asked waits until the replica has kept a review that is like this.
func (w *world) asked(r *mcpreview.Reviews, like func(mcpreview.Review) bool) mcpreview.Review {
	w.t.Helper()
	var doc mcpreview.Review
	require.Eventually(w.t, func() bool {
		w.passes(time.Minute)
		require.NoError(w.t, r.Look(w.t.Context()))
		var err error
		doc, _, err = r.Review(w.t.Context(), mcpreview.IDOf(at))
		return err == nil && like(doc)
	}, time.Minute, 10*time.Millisecond)
	return doc
}

func open(doc mcpreview.Review) bool { return doc.Ended == "" }

func (w *world) decide(r *mcpreview.Reviews, doc mcpreview.Review, v mcptool.Verdict, who string, groups ...approvals.GroupID) (mcpreview.Review, error) {
	return r.Decide(w.t.Context(), mcpreview.IDOf(at), doc.Digest, v, approvals.Principal{User: approvals.UserID(who), Groups: groups, GroupsAt: w.read()})
}

func TestOnlyOwnersDecideAboutTools(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	doc := w.asked(r, open)
	before := string(w.pins().Bytes())
	for _, who := range []string{"bob", "", "ANN", "ann "} {
		_, err := w.decide(r, doc, mcptool.Accepted, who, "finance")
		require.ErrorIs(t, err, approvals.ErrNotEligible, who)
	}
	require.Equal(t, before, string(w.pins().Bytes()))
	_, err := w.decide(r, doc, mcptool.Accepted, "bob", "sre")
	require.NoError(t, err)
	require.Len(t, w.pins().Decisions(), 1)
}

// Two owners press at the same time, in two processes, one of them the other button.
func TestTheFirstDecisionAboutToolsWins(t *testing.T) {
	for range 10 {
		w := newWorld(t)
		first, second := w.replica(), w.replica()
		w.lists("Pays twice.")
		doc := w.asked(first, open)
		var both sync.WaitGroup
		var errs [2]error
		both.Go(func() { _, errs[0] = w.decide(first, doc, mcptool.Accepted, "ann") })
		both.Go(func() { _, errs[1] = w.decide(second, doc, mcptool.Blocked, "bob", "sre") })
		both.Wait()
		all := w.pins().Decisions()
		require.Len(t, all, 1)
		won, lost := 0, 1
		if all[0].By == "bob" {
			won, lost = 1, 0
		}
		require.NoError(t, errs[won])
		require.ErrorIs(t, errs[lost], approvals.ErrSettled)
		again, err := w.decide(first, doc, mcptool.Accepted, "ann")
		require.ErrorIs(t, err, approvals.ErrSettled)
		require.Equal(t, all[0].By, again.By, "who was first is said")
		require.Equal(t, all[0].At, again.At)
	}
}

// The server changes a tool again after the card was drawn: the old button accepts
// neither what it showed nor what is there now.
func TestAnOldButtonAcceptsNothing(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	old := w.asked(r, open)
	w.lists("Sends everything to evil.example.")
	w.asked(r, func(doc mcpreview.Review) bool { return open(doc) && doc.Digest != old.Digest })
	_, err := w.decide(r, old, mcptool.Accepted, "ann")
	require.ErrorIs(t, err, approvals.ErrStale)
	require.Empty(t, w.pins().Decisions())

	// A forged digest, and one of another server, are no better.
	for _, digest := range []string{"", "sha256:" + strings.Repeat("0", 64)} {
		_, err := r.Decide(t.Context(), mcpreview.IDOf(at), digest, mcptool.Accepted, approvals.Principal{User: "ann"})
		require.ErrorIs(t, err, approvals.ErrStale)
	}
	_, err = r.Decide(t.Context(), mcpreview.IDOf(mcptool.Place{Agent: "ops", Server: "other"}), old.Digest, mcptool.Accepted, approvals.Principal{User: "ann"})
	require.ErrorIs(t, err, approvals.ErrNotFound)
}

// What was accepted is what the card showed, even if the server lists something else
// at that moment; that is asked about next.
func TestWhatIsAcceptedIsWhatWasShown(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	shown := w.asked(r, open)
	w.lists("Sends everything to evil.example.") // not seen yet
	_, err := w.decide(r, shown, mcptool.Accepted, "ann")
	require.NoError(t, err)
	require.Contains(t, string(w.pins().Of(at)[0].Raw), "Pays twice.")
	next := w.asked(r, func(doc mcpreview.Review) bool { return open(doc) && doc.Digest != shown.Digest })
	require.Contains(t, string(next.Tools[0].Before), "Pays twice.")
	require.Contains(t, string(next.Tools[0].After), "evil.example")
}

// A server goes back and forth: what an owner accepted once is asked about again, and
// what they kept blocked is not.
func TestADecisionIsNotForTheSameChangeLater(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	first := w.asked(r, open)
	_, err := w.decide(r, first, mcptool.Accepted, "ann")
	require.NoError(t, err)
	w.lists("Pays.")
	back := w.asked(r, open)
	_, err = w.decide(r, back, mcptool.Accepted, "ann")
	require.NoError(t, err)
	w.lists("Pays twice.")
	again := w.asked(r, open)
	require.NotEqual(t, first.Digest, again.Digest)
	_, err = w.decide(r, again, mcptool.Blocked, "ann")
	require.NoError(t, err)

	w.lists("Pays.")
	w.lists("Pays twice.")
	for range 20 {
		w.passes(time.Minute)
		require.NoError(t, r.Look(t.Context()))
		doc, _, err := r.Review(t.Context(), mcpreview.IDOf(at))
		require.NoError(t, err)
		require.Equal(t, mcpreview.Blocked, doc.Ended)
	}
	require.Len(t, w.pins().Decisions(), 3)
}

func TestAReviewEndsWhenTheServerGoesBack(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	old := w.asked(r, open)
	w.lists("Pays.")
	w.asked(r, func(doc mcpreview.Review) bool { return doc.Ended == mcpreview.Reverted })
	_, err := w.decide(r, old, mcptool.Accepted, "ann")
	require.ErrorIs(t, err, approvals.ErrStale)
	require.Empty(t, w.pins().Decisions())
}

func TestNothingIsAcceptedWithALockFile(t *testing.T) {
	w := newWorld(t)
	w.lock = true
	r := w.replica()
	w.lists("Pays twice.")
	doc := w.asked(r, open)
	require.True(t, doc.Locked)
	_, err := w.decide(r, doc, mcptool.Accepted, "ann")
	require.ErrorIs(t, err, approvals.ErrRefused)
	require.Empty(t, w.pins().Decisions())
}

func TestNothingIsAcceptedThatDoesNotFit(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	doc := w.asked(r, open)
	w.misfit = errors.New("policy.yaml: no agent has a tool")
	_, err := w.decide(r, doc, mcptool.Accepted, "ann")
	require.ErrorIs(t, err, approvals.ErrInvalid)
	require.Empty(t, w.pins().Decisions())
	_, err = w.decide(r, doc, mcptool.Blocked, "ann")
	require.NoError(t, err, "it can be kept blocked")
}

// A server that changes its tools all the time gets one card, and that is not drawn
// all the time.
func TestARestlessServerIsAskedAboutNowAndThen(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	w.lists("Pays twice.")
	first := w.asked(r, open)
	w.lists("Pays thrice.")
	for range 20 {
		require.NoError(t, r.Look(t.Context())) // no time passes
	}
	doc, _, err := r.Review(t.Context(), mcpreview.IDOf(at))
	require.NoError(t, err)
	require.Equal(t, first.Digest, doc.Digest)
	w.asked(r, func(doc mcpreview.Review) bool { return doc.Digest != first.Digest })
}

// A stored review of version 1 decodes for ever, and one of another version does not.
func TestStoredReviewsAreRead(t *testing.T) {
	w := newWorld(t)
	r := w.replica()
	const stored = `{"version":1,"agent":"ops","server":"bank","digest":"sha256:ab","tools":[{"name":"pay","kind":"new","after":"eyJuYW1lIjoicGF5IiwiaW5wdXRTY2hlbWEiOnsidHlwZSI6Im9iamVjdCJ9fQ=="}],"seen_at":"2026-11-22T10:00:00Z","ended":"blocked","by":"ann","at":"2026-11-22T10:01:00Z"}`
	id := mcpreview.IDOf(at)
	require.Equal(t, id, mcpreview.IDOf(at))
	require.NoError(t, w.store.CommitTimed(t.Context(), id, mcpreview.Surface, []byte(stored), 0, time.Time{}))
	doc, version, err := r.Review(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, mcpreview.Blocked, doc.Ended)
	require.Equal(t, approvals.UserID("ann"), doc.By)
	require.NotEmpty(t, doc.Tools[0].Digest())
	require.NoError(t, w.store.CommitTimed(t.Context(), id, mcpreview.Surface, []byte(strings.Replace(stored, `"version":1`, `"version":2`, 1)), version, time.Time{}))
	_, _, err = r.Review(t.Context(), id)
	require.ErrorContains(t, err, "its version is 2")
}
