package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// A fleet is three bots, on one Redis, behind a load balancer that delivers whatever
// Slack sends three times at once: to each of them, or to whoever is left. Their
// agent's tools are HTTP endpoints, which note what they are asked to do.
type fleet struct {
	*world

	bots   []*unit
	storm  atomic.Pointer[storm]
	atBank atomic.Int32 // calls that arrived and are not answered yet
	heard  time.Time    // when the last request came to its end

	mu      sync.Mutex
	started map[string]*request // by the number of the bill
	taken   map[string]bool     // likewise: whether a bot acknowledged that it was asked
}

// A unit is a bot that is started again whenever it ends, as systemd does.
type unit struct {
	addr string

	config string // its own, instead of that of the fleet

	mu   sync.Mutex
	path string // of the program
	log  *output
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// newFleet has three of this program.
func newFleet(t *testing.T, path string) *fleet {
	t.Helper()
	return newFleetOn(t, path, statetest.NewInstance(t))
}

// newFleetOn is newFleet with this Redis.
func newFleetOn(t *testing.T, path string, server *statetest.Instance) *fleet {
	t.Helper()
	f := &fleet{started: map[string]*request{}, taken: map[string]bool{}}
	for range 3 {
		f.bots = append(f.bots, &unit{addr: statetest.FreeAddr(t), path: path})
	}
	f.world = newWorldBehind(t, server, f)
	strikes := func() { f.storm.Load().mayStrike() }
	f.passes.Store(&strikes)
	f.model = openaisim.New(payTheBill)
	bank := httptest.NewServer(http.HandlerFunc(f.serveBank))
	t.Cleanup(bank.Close)
	var declared strings.Builder
	for name, effect := range map[string]string{"pay": "none", "post": "idempotent", "wipe": "none"} {
		_, _ = fmt.Fprintf(&declared, `
        - {name: %s, description: Does it., method: POST, url: %q, effect: %s,
           schema: {type: object, properties: {what: {type: string}}, required: [what]}}`, name, bank.URL+"/"+name+"/{what}", effect)
	}
	f.config = write(t, fmt.Sprintf(`
agents:
  - name: ops
    http:
      hosts: [127.0.0.1]
      allow: [127.0.0.0/8]
      tools:%s
runs: {lease: 1s}
slack: {cards_per_minute: 1000} # no list shows them together
policy: %q
`, declared.String(), writePolicy(t, t.TempDir(), payments)))
	return f
}

// starts starts the bots, and returns when all listen: one that starts while Redis is away
// ends, and its orchestrator would start it again.
func (f *fleet) starts() {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	for _, u := range f.bots {
		ended.Go(func() { f.keep(ctx, u) })
	}
	f.t.Cleanup(func() { stop(); ended.Wait() })
	f.until("three bots that listen", func() bool {
		return !slices.ContainsFunc(f.bots, func(u *unit) bool { return !listens(u.process()) })
	})
}

// process returns the program that the unit runs, and its log, which is nil at first.
func (u *unit) process() (string, *output) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.path, u.log
}

func listens(_ string, log *output) bool {
	return log != nil && strings.Contains(log.String(), "msg=listening")
}

// keep runs a bot again and again.
func (f *fleet) keep(ctx context.Context, u *unit) {
	for ctx.Err() == nil {
		u.mu.Lock()
		cmd, log, gone := exec.CommandContext(ctx, u.path, "serve", "--config", cmp.Or(u.config, f.config)), newOutput(), make(chan struct{})
		cmd.Env, cmd.Stderr = append(slices.Clone(f.env), "COUNTERSIGN_ADDR="+u.addr), log
		err := cmd.Start()
		u.cmd, u.gone, u.log = cmd, gone, log
		u.mu.Unlock()
		if err == nil {
			_ = cmd.Wait()
		}
		close(gone)
		if err != nil || cmd.ProcessState.ExitCode() > 0 {
			f.t.Errorf("a bot does not run: %v %v\n%s", err, cmd.ProcessState, log)
			return
		}
	}
}

// ends sends a signal, and returns when the process is gone.
func (u *unit) ends(how os.Signal) {
	u.mu.Lock()
	cmd, gone := u.cmd, u.gone
	u.mu.Unlock()
	if cmd == nil || cmd.Process == nil {
		return // it was not started yet
	}
	_ = cmd.Process.Signal(how)
	<-gone
}

// RoundTrip delivers a request of Slack three times at once, and returns an answer
// that took it, if there is one.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	answers, errs := make([]*http.Response, len(f.bots)), make([]error, len(f.bots))
	for i := range f.bots {
		all.Go(func() { answers[i], errs[i] = f.deliver(r, body, i) }) //nolint:bodyclose // deliver has read and closed it
	}
	all.Wait()
	f.storm.Load().mayStrike() // what was taken is acknowledged afterwards
	slices.SortStableFunc(answers, func(a, b *http.Response) int { return cmp.Compare(rank(a), rank(b)) })
	if answers[0] == nil {
		return nil, errors.Join(errs...)
	}
	bill := aBill.FindSubmatch(body)
	if bill != nil && bytes.Contains(body, []byte(`"app_mention"`)) && answers[0].StatusCode == http.StatusOK {
		f.mu.Lock()
		f.taken[string(bill[1])] = true
		f.mu.Unlock()
	}
	return answers[0], nil
}

// rank puts the answers that took a request first, and those that are none last.
func rank(r *http.Response) int {
	if r == nil {
		return math.MaxInt
	}
	return r.StatusCode
}

// deliver sends one copy to the nth bot, or to the next that can be reached.
func (f *fleet) deliver(r *http.Request, body []byte, n int) (*http.Response, error) {
	var all error
	for i := range f.bots {
		out := r.Clone(r.Context())
		out.URL.Host, out.Host = f.bots[(n+i)%len(f.bots)].addr, ""
		out.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := direct.RoundTrip(out)
		if err == nil {
			read, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				resp.Body = io.NopCloser(bytes.NewReader(read))
				return resp, nil
			}
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

var direct = &http.Transport{DisableKeepAlives: true}

// serveBank is what the tools act on: it notes each call that arrives.
func (f *fleet) serveBank(rw http.ResponseWriter, r *http.Request) {
	f.atBank.Add(1)
	defer f.atBank.Add(-1)
	part := strings.Split(r.URL.Path, "/") // "", tool, what-number
	_, bill, _ := strings.Cut(part[2], "-")
	f.mu.Lock()
	of := f.started[bill]
	f.mu.Unlock()
	if f.storm.Load().mayStrike() {
		rw.WriteHeader(http.StatusServiceUnavailable) // its caller may be gone
		return
	}
	of.happens(part[1], r.Header.Get("Idempotency-Key"), of.mayHappen(part[1]))
	f.storm.Load().mayStrike()
	_, _ = io.WriteString(rw, "done")
}

// asks has someone ask for the payment of one more bill.
func (f *fleet) asks(records *state.Store) *request {
	f.t.Helper()
	r := newRequest(f.sim, records)
	r.underWay = func() bool { return f.atBank.Load() > 0 }
	f.mu.Lock()
	bill := strconv.Itoa(len(f.started) + 1)
	f.started[bill] = r
	f.mu.Unlock()
	r.asked = time.Now()
	r.asks("pay the bill " + bill)
	return r
}

// asksAgain has the person ask again if no bot acknowledged any of Slack's four attempts
// to deliver what they wrote, and none stored it.
func (f *fleet) asksAgain(r *request) {
	f.t.Helper()
	bill := aBill.FindStringSubmatch(r.words)[1]
	f.mu.Lock()
	taken := f.taken[bill]
	f.mu.Unlock()
	if taken || time.Since(r.asked) < lastAttempt+5*time.Second {
		return
	}
	_, err := r.records.Thread(f.t.Context(), r.thread())
	if errors.Is(err, approvals.ErrNotFound) {
		f.t.Logf("nobody acknowledged %q, which is asked again", r.words)
		r.asked = time.Now()
		r.asks(r.words)
	}
}

// answered drops the requests that have their answer.
func (f *fleet) answered(open []*request) []*request {
	before := len(open)
	open = slices.DeleteFunc(open, func(r *request) bool { return r.answers() > 0 })
	if len(open) < before {
		f.heard = time.Now()
	}
	return open
}

// until looks again and again. It gives up when for minutes no request has ended.
func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	f.heard = time.Now()
	for !ok() {
		select {
		case <-f.sim.changed:
		case <-time.After(100 * time.Millisecond): // a click that failed changes nothing
		}
		if time.Since(f.heard) < 3*time.Minute && !f.t.Failed() {
			continue
		}
		for bill, r := range f.started {
			for _, m := range r.people.thread(bob, r.root) {
				f.t.Logf("the thread of bill %s: %q", bill, m.words())
			}
		}
		for _, u := range f.bots {
			u.mu.Lock()
			f.t.Logf("the last log of %s:\n%s", u.addr, u.log)
			u.mu.Unlock()
		}
		require.Fail(f.t, "not seen: "+what)
	}
}

// records opens what the bots have stored, for a test that waits for Redis.
func (f *fleet) records() (*state.Store, redis.UniversalClient) {
	f.t.Helper()
	patient := *f.redis.Options()
	patient.MaxRetries, patient.MaxRetryBackoff = 1000, 100*time.Millisecond
	client := redis.NewClient(&patient)
	f.t.Cleanup(func() { _ = client.Close() })
	return f.recordsOf(client), client
}

func (f *fleet) recordsOf(client redis.UniversalClient) *state.Store {
	f.t.Helper()
	records, err := state.Open(f.t.Context(), state.Options{Client: client})
	require.NoError(f.t, err)
	return records
}

// works has people ask and decide while more reports that there is more to ask for, and
// returns all requests when each has its answer and no work is left.
func (f *fleet) works(records *state.Store, client redis.UniversalClient, more func() bool) (all []*request) {
	f.t.Helper()
	var open []*request
	f.until("the answers", func() bool {
		for more() && len(open) < 3 {
			r := f.asks(records)
			all, open = append(all, r), append(open, r)
		}
		for _, r := range open {
			f.asksAgain(r)
			r.decides()
		}
		open = f.answered(open)
		return len(open) == 0 && !more()
	})
	f.until("the end of all work", func() bool { return len(dueWork(f.t, client)) == 0 })
	return all
}

// holds checks what must be true of all requests in the end.
func (f *fleet) holds(fl fault, all []*request, records *state.Store) (sum toll) {
	t := f.t
	t.Helper()
	for _, r := range all {
		doubts, copies := r.holds(fl)
		sum.points++
		sum.doubts += doubts
		sum.copies += copies
		sum.again += r.times("post", false) - 1
	}
	decided := map[string]int{}
	for n := range approvals.Partitions {
		facts, err := state.NewFeed(records).Facts(t.Context(), n, "", 1_000_000)
		require.NoError(t, err)
		for _, e := range facts {
			if d, ok := e.Event.(approvals.Decided); ok {
				decided[fmt.Sprint(d.Batch, d.Call, d.By.User)]++
			}
		}
	}
	require.GreaterOrEqual(t, len(decided), len(all)*len(verdicts))
	for what, n := range decided {
		require.Equal(t, 1, n, what)
	}
	return sum
}
