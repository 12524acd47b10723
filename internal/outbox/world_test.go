package outbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/webhook"
)

var server redis.UniversalClient

func TestMain(m *testing.M) {
	statetest.Main(m, func(c redis.UniversalClient) { server = c })
}

// A receiver is a real HTTP server that answers as the test says.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	after  string // Retry-After
	got    []arrival
}

type arrival struct {
	id, signature string
	at            string
	body          string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, arrival{
			req.Header.Get("webhook-id"), req.Header.Get("webhook-signature"), req.Header.Get("webhook-timestamp"), string(body),
		})
		if r.after != "" {
			w.Header().Set("Retry-After", r.after)
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(status int, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.after = status, after
}

func (r *receiver) arrivals() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]arrival(nil), r.got...)
}

// A world is one process of the bot, with an endpoint "ci" of the agent "claude".
type world struct {
	*testing.T
	*outbox.Outbox
	store   *state.Store
	sender  *webhook.Sender
	clock   *statetest.Clock
	prefix  string
	hook    *receiver
	mu      sync.Mutex
	keys    []webhook.Secret
	urls    map[string]string // by the name of the endpoint
	told    []outbox.Disabled
	tellErr error
	logger  *slog.Logger
	log     bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, prefix: rand.Text(), hook: newReceiver(t), clock: statetest.NewClock(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)),
		keys: []webhook.Secret{secret(t, 1)},
	}
	w.logger = slog.New(slog.NewTextHandler(io.MultiWriter(w.Output(), &w.log), nil))
	w.urls = map[string]string{"ci": w.hook.URL}
	u, err := url.Parse(w.hook.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	w.sender, err = webhook.New(webhook.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, PlainHosts: []string{"127.0.0.1"}, Ports: []int{port}, Now: w.clock.Now,
	})
	require.NoError(t, err)
	w.store, err = state.Open(t.Context(), state.Options{Client: server, Prefix: w.prefix, Now: w.clock.Now})
	require.NoError(t, err)
	w.Outbox = w.open(w.store, w.sender)
	return w
}

// open returns an outbox on the store, as another process would have.
func (w *world) open(store outbox.Store, sender outbox.Sender) *outbox.Outbox {
	w.Helper()
	o, err := outbox.New(outbox.Config{
		Store: store, Sender: sender, Now: w.clock.Now, Endpoint: w.endpoint, Tell: w.tell,
		Log: w.logger,
	})
	require.NoError(w, err)
	return o
}

func (w *world) endpoint(agent, name string) (webhook.Endpoint, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to, ok := w.urls[name]
	return webhook.Endpoint{URL: to, Secrets: w.keys}, ok && agent == "claude"
}

func (w *world) tell(_ context.Context, d outbox.Disabled) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tellErr == nil {
		w.told = append(w.told, d)
	}
	return w.tellErr
}

func secret(t *testing.T, b byte) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b+'a')), 32))))
	require.NoError(t, err)
	return s
}

// about is the id of a request, in the partition of all of them.
func about(unique string) string { return approvals.NewID("run", 7, unique) }

func message(endpoint string) outbox.Message {
	return outbox.Message{
		Agent: "claude", Endpoint: endpoint, Type: "approval.settled", At: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
		Data: json.RawMessage(`{"id":"run-07-a"}`),
	}
}

func (w *world) put(unique, endpoint string) string {
	w.Helper()
	require.NoError(w, w.Put(w.Context(), about(unique), message(endpoint)))
	return about(unique)
}

// waitOf is how long the error of a reconciler asks to wait.
func (w *world) waitOf(err error) time.Duration {
	w.Helper()
	var later interface{ RetryAfter() time.Duration }
	require.ErrorAs(w, err, &later)
	return later.RetryAfter()
}

// due is when the memo is due, as the index has it; zero for never.
func (w *world) due(id string) time.Time {
	w.Helper()
	at, err := w.store.DueAt(w.Context(), state.Webhooks, id)
	require.NoError(w, err)
	return at
}

// serve works on what is due until the test ends, as a process does. Time passes
// when the test says.
func (w *world) serve(o *outbox.Outbox) {
	w.Helper()
	store, err := state.Open(w.Context(), state.Options{Client: server, Prefix: w.prefix, Now: w.clock.Now})
	require.NoError(w, err)
	d := state.NewDue(store, state.DueOptions{Sweep: 2 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error, 1)
	go func() {
		done <- statetest.Work(ctx, d, state.Task{Kind: state.Webhooks, Limit: time.Minute, Reconcile: o.Reconcile})
	}()
	w.Cleanup(func() { cancel(); require.NoError(w, <-done) })
}

// endpointsID is the id of the memo of the endpoints of the partition.
const endpointsID = "webhooks-07-endpoints"
