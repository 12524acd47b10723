package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/httpapi"
	"github.com/countersign/countersign/internal/intake"
)

// held returns once n requests are held.
func (w *world) held(n int) {
	w.Helper()
	require.Eventually(w, func() bool { return w.api.Held() == n }, time.Minute, time.Millisecond)
}

func TestALongPollIsAnsweredByTheDecision(t *testing.T) {
	w := newWorld(t)
	for name, ask := range map[string]func(q ours, body string) exchange{
		"get":         func(q ours, _ string) exchange { return w.get(q.ID, "?wait=50s") },
		"preference":  func(q ours, _ string) exchange { return w.get(q.ID, "", "Prefer", "respond-async, wait=50") },
		"conditional": func(q ours, _ string) exchange { return w.get(q.ID, "?wait=50", "If-None-Match", q.tag) },
		"post": func(_ ours, body string) exchange {
			return w.do(http.MethodPost, "/v1/approvals", claudeToken, body, "Prefer", "wait=50")
		},
		"results": func(q ours, _ string) exchange { return w.get(q.ID, "/results?format=pydantic-ai&wait=50s") },
	} {
		body := strings.Replace(oneCall, "r1", name, 1)
		q := w.post(body)
		var wg sync.WaitGroup
		var got exchange
		wg.Go(func() { got = ask(q, body) })
		w.held(1)
		w.decide(q.ID, "c1", approvals.Approve, "")
		wg.Wait()
		require.Equal(t, http.StatusOK, got.status, "%s: %s", name, got.body)
		require.Contains(t, string(got.body), "approved")
	}
}

// spans is an intake that keeps how long it was given for each question.
type spans struct {
	httpapi.Intake

	mu  sync.Mutex
	all []time.Duration
}

func (s *spans) given(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(time.Hour)
	}
	s.all = append(s.all, time.Until(end))
}

func (s *spans) Ask(ctx context.Context, c intake.Client, a intake.Ask) (intake.Request, error) {
	s.given(ctx)
	return s.Intake.Ask(ctx, c, a)
}

func (s *spans) Get(ctx context.Context, c intake.Client, id approvals.RunID) (intake.Request, error) {
	s.given(ctx)
	return s.Intake.Get(ctx, c, id)
}

// A client that waits for people must not wait as long for a store that hangs.
func TestOnlyTheWaitForPeopleIsLong(t *testing.T) {
	s := &spans{}
	w := newWorld(t, func(c *httpapi.Config) { s.Intake, c.Intake = c.Intake, s })
	q := w.read(w.do(http.MethodPost, "/v1/approvals?wait=10ms", claudeToken, oneCall))
	w.get(q.ID, "?wait=10ms")
	w.get(q.ID, "/results?format=pydantic-ai&wait=10ms")
	require.Len(t, s.all, 6, "once before and once after each wait")
	for _, given := range s.all {
		require.LessOrEqual(t, given, 15*time.Second)
	}
}

func (w *world) list() []ours {
	w.Helper()
	var list struct{ Approvals []ours }
	w.do(http.MethodGet, "/v1/approvals", claudeToken, "").json(w.T, &list)
	return list.Approvals
}

func TestTheEndOfAWaitIsNoError(t *testing.T) {
	w := newWorld(t)
	got := w.do(http.MethodPost, "/v1/approvals", claudeToken, oneCall, "Prefer", "wait=0")
	require.Equal(t, http.StatusCreated, got.status)
	q := w.read(got)
	same := w.get(q.ID, "?wait=10ms")
	require.Equal(t, http.StatusOK, same.status)
	require.Equal(t, "pending", w.read(same).Status)
	unchanged := w.get(q.ID, "?wait=10ms", "If-None-Match", q.tag)
	require.Equal(t, http.StatusNotModified, unchanged.status)
	require.Equal(t, q.tag, unchanged.header.Get("ETag"))
	require.Empty(t, unchanged.body)
	require.Equal(t, http.StatusNotModified, w.get(q.ID, "", "If-None-Match", `"other", W/`+q.tag).status)
	require.Equal(t, http.StatusOK, w.get(q.ID, "?wait=10ms", "If-None-Match", `"other"`).status)
	for _, bad := range []string{"1h", "56s", "-1s", "soon", ""} {
		require.Equal(t, http.StatusUnprocessableEntity, w.get(q.ID, "?wait="+bad).status, bad)
	}
	require.Equal(t, http.StatusOK, w.get(q.ID, "", "Prefer", "wait=x").status, "a preference that is not understood is none")
	waited := w.get(q.ID, "", "Prefer", "wait=1")
	require.Equal(t, "wait=1", waited.header.Get("Preference-Applied"))
}

// The tag changes with everything that the agent can see.
func TestTheTagChangesWithTheRequest(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	tags := map[string]bool{q.tag: true}
	see := func(what string) {
		got := w.get(q.ID, "", "If-None-Match", q.tag)
		q = w.read(got)
		require.False(t, tags[q.tag], what)
		tags[q.tag] = true
	}
	w.edit(q.ID, "c1", `{"cents":1}`)
	see("edited")
	w.decide(q.ID, "c1", approvals.Approve, "")
	see("approved")
	require.True(t, q.Calls[0].Edited)
	require.Equal(t, `{"cents":1}`, q.Calls[0].ArgsText)
	w.claim(q.ID, "c1")
	see("claimed")
	w.do(http.MethodPost, w.callPath(q.ID, "c1")+"/result", claudeToken, `{"state":"not_run"}`)
	see("reported")
}

func TestLongPollsAndStreamsEndWhenTheServerDrains(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	events := w.follow(claudeToken, "")
	var wg sync.WaitGroup
	var got exchange
	wg.Go(func() { got = w.get(q.ID, "?wait=50s") })
	w.held(2)
	w.api.Drain()
	wg.Wait()
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "pending", w.read(got).Status, "what is so now")
	_, err := events.body.ReadString(0)
	require.ErrorContains(t, err, "EOF", "a stream ends as a response does, it is not cut")
	require.NotContains(t, err.Error(), "unexpected")
	w.held(0)
	require.Equal(t, http.StatusOK, w.get(q.ID, "?wait=50s").status, "and none is held from then on")
}

// A client whose agent can take no late answer is gone for good.
func TestARequestWhoseCallerLeftIsWithdrawnIfNoLateAnswerReachesIt(t *testing.T) {
	w := newWorld(t)
	for carries, want := range map[string]string{`{"edits":true,"reasons":true}`: "withdrawn", `{"edits":true,"reasons":true,"late":true}`: "pending"} {
		ctx, leave := context.WithCancel(t.Context())
		body := `{"external_id":"` + want + `","calls":[{"id":"c1","tool":"refund"}],"carries":` + carries + `}`
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+"/v1/approvals?wait=50s", strings.NewReader(body))
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+claudeToken)
		q.Header.Set("Content-Type", "application/json")
		var wg sync.WaitGroup
		wg.Go(func() {
			answer, err := http.DefaultClient.Do(q)
			if err == nil {
				_ = answer.Body.Close()
			}
		})
		w.held(1)
		leave()
		wg.Wait()
		w.held(0)
		require.Eventually(t, func() bool { return w.list()[0].Calls[0].Outcome == want }, time.Minute, 10*time.Millisecond)
	}
}

// A stream as a client reads it.
type stream struct {
	status int
	body   *bufio.Reader
	close  func()
}

func (w *world) follow(token, after string) stream {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/v1/events?agent=claude", http.NoBody)
	require.NoError(w, err)
	q.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		q.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(q)
	require.NoError(w, err)
	w.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(w, http.StatusOK, answer.StatusCode)
	conforms(w.T, q, "", exchange{answer.StatusCode, answer.Header, nil})
	return stream{answer.StatusCode, bufio.NewReader(answer.Body), cancel}
}

// next returns the fields of the next block of a stream.
func (s stream) next(t *testing.T) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for {
		line, err := s.body.ReadString('\n')
		require.NoError(t, err)
		if line == "\n" {
			return fields
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[name] = value
	}
}

func TestEventsAreThoseOfTheAgentAndGoOnWhereTheyWere(t *testing.T) {
	w := newWorld(t)
	mine, theirs := w.follow(claudeToken, ""), w.follow(otherToken, "")
	start := mine.next(t)
	require.NotEmpty(t, start["id"], "a client that is cut off before its first event knows where it was")
	require.Equal(t, "2000", start["retry"])
	theirs.next(t)

	q := w.post(oneCall)
	created := mine.next(t)
	require.Equal(t, "approval.created", created["event"])
	require.Contains(t, created["data"], string(q.ID))
	require.NotContains(t, created["data"], "R-17", "an event holds no arguments")
	w.decide(q.ID, "c1", approvals.Approve, "")
	for _, want := range []string{"approval.decided", "approval.call_settled", "approval.settled"} {
		require.Equal(t, want, mine.next(t)["event"])
	}
	w.read(w.do(http.MethodPost, "/v1/approvals", otherToken, oneCall))
	require.NotContains(t, theirs.next(t)["data"], string(q.ID), "the parameter agent counts for nothing")

	again := w.follow(claudeToken, created["id"])
	require.Equal(t, created["id"], again.next(t)["id"])
	require.Equal(t, "approval.decided", again.next(t)["event"])
	all := w.follow(claudeToken, start["id"])
	all.next(t)
	require.Equal(t, created["data"], all.next(t)["data"])

	for _, place := range []string{"x", "99999999999999999999-0", "1", "-", "+1-0", "1-0-0", "$", "0x1-0"} {
		bad := w.do(http.MethodGet, "/v1/events", claudeToken, "", "Last-Event-ID", place)
		require.Equal(t, http.StatusUnprocessableEntity, bad.status, "%s %s", place, bad.body)
	}
	require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodGet, "/v1/events", claudeToken, "", "Last-Event-ID", strings.Repeat("1", 300)).status)
}

// The agent of a credential that is taken away is not told anything more.
func TestAStreamSaysThatItIsThereAndEndsWithItsCredential(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Heartbeat = 20 * time.Millisecond })
	s := w.follow(claudeToken, "")
	s.next(t)
	for range 2 {
		require.Equal(t, map[string]string{"": "still here"}, s.next(t), "a comment")
	}
	w.agents.Store(&[]bearer.Agent{})
	_, err := s.body.ReadString(0)
	require.ErrorContains(t, err, "EOF")
	w.held(0)
}

func TestAnAgentHoldsOnlySoManyRequests(t *testing.T) {
	w := newWorld(t, func(h *httpapi.Config) { h.Holds = 2 })
	q := w.post(oneCall)
	w.follow(claudeToken, "").next(t)
	w.follow(claudeToken, "").next(t)
	require.Equal(t, http.StatusTooManyRequests, w.get(q.ID, "?wait=50s").status)
	require.Equal(t, http.StatusTooManyRequests, w.do(http.MethodGet, "/v1/events", claudeToken, "").status)
	require.Equal(t, http.StatusOK, w.get(q.ID, "").status, "what is answered at once is not held")
	created := w.do(http.MethodPost, "/v1/approvals?wait=50s", claudeToken, strings.Replace(oneCall, "r1", "r2", 1))
	require.Equal(t, http.StatusCreated, created.status, "whoever made a request must learn its id")
	w.follow(otherToken, "").next(t)
}

// The end of a client's side of the connection is how the server learns that the client is
// gone. A client that only sends no more, and still reads, learns what to do.
func TestAClientThatClosesItsSideReadsToKeepItOpen(t *testing.T) {
	w := newWorld(t)
	q := w.post(oneCall)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /v1/approvals/%s?wait=50s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", q.ID, claudeToken)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "503 Service Unavailable")
	require.Contains(t, string(answer), "keep it open")
}
