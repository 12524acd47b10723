package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/bearer"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/state/statetest"
	"github.com/countersign/countersign/internal/uistream"
)

// A webChat is a chat of a person as a frontend of their own has it.
type webChat struct {
	t     *testing.T
	url   string
	token string
	id    string
}

// web opens the server of chats in the configuration of the world. The tokens of
// people are their ids.
func (w *world) web() *webChat {
	w.t.Helper()
	addr := statetest.FreeAddr(w.t)
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	var people strings.Builder
	for _, user := range []string{alice, bob, dave} {
		fmt.Fprintf(&people, "    - {user: %s, tokens: [\"sha256:%x\"]}\n", user, sha256.Sum256([]byte(user)))
	}
	w.config = write(w.t, string(old)+fmt.Sprintf(`
slack: {cards_per_minute: 10000}
http: {listen: %q}
web:
  agent: ops
  channel: %s
  people:
%s`, addr, ops, people.String()))
	return &webChat{t: w.t, url: "http://" + addr, token: alice, id: "c1"}
}

// streams lets a person have so many streams open.
func (w *world) streams(n int) {
	w.t.Helper()
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, strings.Replace(string(old), "  agent: ops\n", fmt.Sprintf("  agent: ops\n  streams: %d\n", n), 1))
}

func (c webChat) as(user string) webChat { c.token = user; return c }

// do returns the status of the answer, and its body.
func (c webChat) do(method, path string, body any) (int, io.ReadCloser) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(c.t, err)
	q, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(raw))
	require.NoError(c.t, err)
	q.Header.Set("Authorization", "Bearer "+c.token)
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = r.Body.Close() })
	return r.StatusCode, r.Body
}

// decide decides a call beside the protocol and returns the status.
func (c webChat) decide(approval string) int {
	c.t.Helper()
	code, _ := c.do(http.MethodPost, "/api/chat/"+c.id+"/approvals/"+approval, map[string]any{"approved": true})
	return code
}

// A webChunk is as much of a chunk as the tests look at.
type webChunk struct {
	Type, ApprovalID, ToolCallID, Delta string
	Data                                struct{ ApprovalID, Status, Arguments string }
}

// say posts a message and returns the chunks as they come, until people have
// decided and the agent has answered.
func (c webChat) say(text string) <-chan webChunk {
	c.t.Helper()
	code, body := c.do(http.MethodPost, "/api/chat", map[string]any{"id": c.id, "follow": true, "messages": []any{
		map[string]any{"id": "u1", "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}},
	}})
	require.Equal(c.t, http.StatusOK, code)
	return chunksOf(body)
}

// follow resumes the chat.
func (c webChat) follow() <-chan webChunk {
	c.t.Helper()
	q, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+"/api/chat/"+c.id+"/stream", http.NoBody)
	require.NoError(c.t, err)
	q.Header.Set("Authorization", "Bearer "+c.token)
	q.Header.Set("Countersign-Follow", "true")
	r, err := http.DefaultClient.Do(q)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = r.Body.Close() })
	require.Equal(c.t, http.StatusOK, r.StatusCode)
	return chunksOf(r.Body)
}

func chunksOf(body io.Reader) <-chan webChunk {
	out := make(chan webChunk, 1000)
	go func() {
		defer close(out)
		for lines := bufio.NewScanner(body); lines.Scan(); {
			var x webChunk
			if data, ok := strings.CutPrefix(lines.Text(), "data: {"); ok && json.Unmarshal([]byte("{"+data), &x) == nil {
				out <- x
			}
		}
	}()
	return out
}

// until returns the first chunk for which this is so.
func (c webChat) until(all <-chan webChunk, what string, is func(webChunk) bool) webChunk {
	c.t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case x, ok := <-all:
			require.True(c.t, ok, "the stream ended without "+what)
			if is(x) {
				return x
			}
		case <-deadline:
			require.Fail(c.t, "not in time: "+what)
		}
	}
}

func isRequest(x webChunk) bool { return x.Type == "tool-approval-request" }

// One request, two faces: it is decided once, wherever that is.
func TestACallOfAChatIsDecidedInSlackOrOnTheWeb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.web()
	p := w.start()
	code, _ := web.as("U0MALLORY").do(http.MethodPost, "/api/chat", nil)
	require.Equal(t, http.StatusUnauthorized, code)

	stream := web.say("clean up the old reports")
	first := web.until(stream, "a request", isRequest)
	second := web.until(stream, "another request", isRequest)
	card := w.sim.await(bob, "", "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt"))
	require.Contains(t, card.words(), alice, "who asked")
	require.Empty(t, w.sim.click(bob, card, "2023-q1-sales.txt", "Deny").VisibleError)
	views := w.sim.views(bob)
	require.NotEmpty(t, views)
	w.sim.submit(bob, views[0], "still needed")
	web.until(stream, "the denial", func(x webChunk) bool {
		return x.Data.ApprovalID == first.ApprovalID && x.Data.Status == "denied"
	})

	require.Equal(t, http.StatusForbidden, web.decide(second.ApprovalID), "alice is no approver")
	require.Equal(t, http.StatusOK, web.as(bob).decide(second.ApprovalID))
	require.Equal(t, http.StatusConflict, web.as(bob).decide(first.ApprovalID))
	web.until(stream, "the result", func(x webChunk) bool { return x.Type == "tool-output-available" && x.ToolCallID == second.ToolCallID })
	said := "" // in parts as long as it takes the model to write them
	web.until(stream, "the answer", func(x webChunk) bool { said += x.Delta; return strings.Contains(said, "still needed") })
	w.sim.await(bob, "", "the card as it was decided", func(m message) bool { return says("Denied", "Approved")(m) })
	require.NoFileExists(t, w.folder+"/reports/2023-q2-sales.txt")
	require.FileExists(t, w.folder+"/reports/2023-q1-sales.txt")
	require.NotContains(t, p.out.String(), "level=ERROR")

	unused, err := net.Dial("tcp", strings.TrimPrefix(web.url, "http://")) // as browsers open ahead of need
	require.NoError(t, err)
	defer func() { _ = unused.Close() }()
	web.id = "c2"
	stream = web.say("write a summary of the reports")
	web.until(stream, "a request", isRequest)
	require.NoError(t, p.term(), "%s", p.out)
	w.start()
	web.until(web.follow(), "the request, of another process", isRequest)
}

// A thread of Slack is opened on the web by who is in its channel, and goes on there.
func TestAThreadOfSlackGoesOnOnTheWeb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.web()
	old, err := os.ReadFile(w.config)
	require.NoError(t, err)
	w.config = write(t, strings.Replace(string(old), "  agent: ops\n", "  agent: ops\n  page: \"https://chat.example/?c={id}\"\n", 1))
	w.start()
	root := w.sim.ask("hello", "")
	answered := w.sim.await(alice, root, "the answer", says("Open this thread on the web"))
	raw, err := json.Marshal(answered.Blocks)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(raw), "https://chat.example/?c=")
	require.True(t, ok)
	id, _, _ := strings.Cut(rest, "\"")
	web.id, err = url.QueryUnescape(id)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(web.id, "slack:thread-"), web.id)

	stream := web.as(bob).say("clean up the old reports")
	web.until(stream, "a request", isRequest)
	w.sim.await(alice, root, "the question", says(bob, "wrote in this thread on the web", "clean up the old reports"))
	card := w.sim.await(alice, root, "the card", says("2023-q1-sales.txt", "Approve"))
	require.Contains(t, card.words(), bob, "who asked")
	code, body := web.do(http.MethodGet, "/api/chat/"+web.id, nil)
	require.Equal(t, http.StatusOK, code)
	seen, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Contains(t, string(seen), "2023-q1-sales.txt", "alice reads the request of bob in her channel")
	require.NotContains(t, string(seen), "list_files", "and not what his run did on its way")
}

// People of an identity provider are who has their verified address in Slack.
func TestAPersonOfTheWebIsWhoHasTheirAddressInSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.web()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	require.NoError(t, err)
	old, err := os.ReadFile(w.config)
	require.NoError(t, err)
	w.config = write(t, string(old)+fmt.Sprintf("  cookies: true\n  origins: [\"https://chat.example\"]\n  issuers: [{issuer: \"https://id.example\", audience: chat, keys: %q, emails: true}]\n", write(t, string(keys))))
	w.start()
	token := func(email string, verified bool) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, new(jose.SignerOptions).WithHeader("kid", "k"))
		require.NoError(t, err)
		out, err := jwt.Signed(signer).Claims(map[string]any{
			"iss": "https://id.example", "aud": "chat", "sub": "x", "exp": time.Now().Add(time.Hour).Unix(), "email": email, "email_verified": verified,
		}).Serialize()
		require.NoError(t, err)
		return out
	}
	stream := web.say("clean up the old reports")
	asked := web.until(stream, "a request", isRequest)
	for name, row := range map[string]struct {
		token string
		code  int
	}{
		"nobody has it":      {token("eve@evil.example", true), http.StatusForbidden},
		"it is not verified": {token("bob@acme.example", false), http.StatusUnauthorized},
		"no approver has it": {token("dave@acme.example", true), http.StatusForbidden},
	} {
		require.Equal(t, row.code, web.as(row.token).decide(asked.ApprovalID), name)
	}
	session := web.as(token("Bob@acme.example", true)).cookie()
	decide := web.url + "/api/chat/" + web.id + "/approvals/" + asked.ApprovalID
	require.Equal(t, http.StatusForbidden, fromPage(t, decide, "https://evil.example", session), "another page uses the cookie of bob")
	require.Equal(t, http.StatusOK, fromPage(t, decide, "https://chat.example", session))
	w.sim.await(bob, "", "the card", says("Approved", bob))
}

// cookie exchanges the token for a cookie.
func (c webChat) cookie() *http.Cookie {
	c.t.Helper()
	q, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/api/chat/session", http.NoBody)
	require.NoError(c.t, err)
	q.Header.Set("Authorization", "Bearer "+c.token)
	r, err := http.DefaultClient.Do(q)
	require.NoError(c.t, err)
	require.NoError(c.t, r.Body.Close())
	require.Len(c.t, r.Cookies(), 1)
	return r.Cookies()[0]
}

// fromPage approves a call as a page of the origin does in a browser with the cookie.
func fromPage(t *testing.T, address, origin string, with *http.Cookie) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"approved":true}`))
	require.NoError(t, err)
	q.Header.Set("Origin", origin)
	q.Header.Set("Content-Type", "application/json")
	q.AddCookie(with)
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	return r.StatusCode
}

// The time from a click in Slack to the chunk on an open stream, over real HTTP, a
// real Redis with fsync and another process. Three clicks in a test run; CLICKS=200
// measures.
func TestFromTheClickInSlackToTheChunk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.web()
	n := 3
	if s := os.Getenv("CLICKS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	w.streams(n + 1)
	w.start()
	var took []time.Duration
	seen := map[string]bool{}
	for i := range n {
		web.id = fmt.Sprint("c", i)
		stream := web.say("clean up the old reports")
		asked := web.until(stream, "a request", isRequest)
		card := w.sim.await(bob, "", "the card", func(m message) bool {
			return len(m.buttons("2023-q1-sales.txt")) > 0 && !seen[m.TS]
		})
		seen[card.TS] = true
		var told time.Time
		var waiting sync.WaitGroup
		waiting.Go(func() {
			for x := range stream {
				if x.Data.ApprovalID == asked.ApprovalID && x.Data.Status == "approved" {
					told = time.Now()
					return
				}
			}
		})
		clicked := time.Now()
		require.Empty(t, w.sim.click(bob, card, "2023-q1-sales.txt", "Approve").VisibleError)
		waiting.Wait()
		require.False(t, told.IsZero())
		took = append(took, told.Sub(clicked))
	}
	slices.Sort(took)
	t.Logf("%d clicks: from the click to the chunk p50 %s, p99 %s", n, took[n/2], took[n*99/100])
}

// Many open streams of one chat, which are all woken by one decision: 20 in a test
// run; STREAMS=1000 measures.
func TestManyOpenStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.web()
	n := 20
	if s := os.Getenv("STREAMS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	w.streams(n + 1)
	p := w.start()
	first := web.say("write a summary of the reports")
	asked := web.until(first, "a request", isRequest)
	before := p.memory()
	var streams []<-chan webChunk
	for range n {
		streams = append(streams, web.follow())
	}
	for _, s := range streams {
		web.until(s, "the request", isRequest)
	}
	after := p.memory()
	began := time.Now()
	require.Equal(t, http.StatusOK, web.as(bob).decide(asked.ApprovalID))
	var took []time.Duration
	for _, s := range streams {
		web.until(s, "the decision", func(x webChunk) bool { return x.Data.Status == "approved" })
		took = append(took, time.Since(began))
	}
	t.Logf("%d streams: %d KiB each (%d MiB in all); one decision reaches the last after %s", n, (after-before)/n, after>>10, took[n-1])
}

// memory is the resident memory of the process in KiB.
func (p *process) memory() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	_, rest, ok := strings.Cut(string(status), "VmRSS:")
	require.True(p.t, ok)
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(p.t, err)
	return n
}

func TestCheckAndStartWarnOfStaticTokensForPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.web()
	const want = "web.people: static tokens are for development"
	b := w.start()
	require.Contains(t, b.out.String(), want)
	require.NoError(t, b.term())
	found := doctor.Check(t.Context(), doctor.Options{Path: w.config, Environ: w.env, Now: time.Now})
	require.True(t, slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Mark == doctor.IsWarning && strings.Contains(f.Text, want) && f.Advice == "in production, use web.issuers"
	}), "%v", found)
}

// It is not the credential that is wrong, and nothing can have happened.
func TestAPersonLearnsThatTheKeysOfTheirIssuerCannotBeRead(t *testing.T) {
	people := &webPeople{proof: bearer.NewPeople(bearer.PeopleConfig{
		Tokens: func() []bearer.Token { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Issuers: []bearer.Issuer{{Issuer: "i", Audience: "a", Keys: filepath.Join(t.TempDir(), "none")}},
	})}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJpIiwiYXVkIjoiYSIsInN1YiI6InMifQ.c2ln")
	_, err := people.Prove(r)
	refused, ok := errors.AsType[*uistream.RefusedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, http.StatusServiceUnavailable, refused.Status)
	require.Contains(t, refused.Words, "the keys of its issuer cannot be read. Nothing changed.")
}
