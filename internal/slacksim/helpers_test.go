package slacksim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// delivered is one request that the app got, with its signature checked.
type delivered struct {
	path   string
	header http.Header
	body   []byte
}

// payload decodes the payload field of an interaction.
func (d delivered) payload(t *testing.T) map[string]any {
	t.Helper()
	form, err := url.ParseQuery(string(d.body))
	require.NoError(t, err)
	return decode(t, []byte(form.Get("payload")))
}

// app is the app under test: it checks signatures as slack-go does, keeps
// what it got and answers what the test says.
type app struct {
	*httptest.Server
	answer func(w http.ResponseWriter, d delivered) // nil: an empty 200
	mu     sync.Mutex
	got    []delivered
	hang   chan struct{} // closed when the test ends
}

// keep remembers a request and returns what to do with it.
func (a *app) keep(r *http.Request, body []byte) (delivered, func(http.ResponseWriter, delivered)) {
	d := delivered{path: r.URL.Path, header: r.Header.Clone(), body: body}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, d)
	return d, a.answer
}

// silent never answers.
func (a *app) silent(http.ResponseWriter, delivered) { <-a.hang }

func (a *app) requests(path string) []delivered {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []delivered
	for _, d := range a.got {
		if d.path == path {
			found = append(found, d)
		}
	}
	return found
}

func (a *app) last(t *testing.T, path string) delivered {
	t.Helper()
	all := a.requests(path)
	require.NotEmpty(t, all, "the app got nothing at %s", path)
	return all[len(all)-1]
}

// workspace is a simulator, an app beside it, and slack-go as its client.
type workspace struct {
	*slacksim.Server
	url string
	api *slack.Client
	app *app
}

// Tests with one run in parallel, because some wait for an app that is late.
func newWorkspace(t *testing.T, cfg slacksim.Config) *workspace {
	t.Helper()
	t.Parallel()
	sim := slacksim.New(cfg)
	srv := httptest.NewServer(sim)
	a := &app{hang: make(chan struct{})}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if formValue(body, "ssl_check") == "1" {
			a.keep(r, body)
			return
		}
		verifier, err := slack.NewSecretsVerifier(r.Header, sim.SigningSecret())
		if err == nil {
			_, _ = verifier.Write(body)
			err = verifier.Ensure()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if d, answer := a.keep(r, body); answer != nil {
			answer(w, d)
		}
	}))
	sim.SetURLs(a.URL+"/events", a.URL+"/interactivity", a.URL+"/commands")
	sim.SetPublicURL(srv.URL)
	t.Cleanup(func() {
		close(a.hang)
		sim.Close()
		srv.Close()
		a.Close()
	})
	return &workspace{
		Server: sim, url: srv.URL, app: a,
		api: slack.New(sim.BotToken(), slack.OptionAPIURL(srv.URL+"/api/")),
	}
}

// answers sets what the app answers from now on.
func (w *workspace) answers(fn func(w http.ResponseWriter, d delivered)) {
	w.app.mu.Lock()
	defer w.app.mu.Unlock()
	w.app.answer = fn
}

func (w *workspace) answersJSON(v any) {
	w.answers(func(rw http.ResponseWriter, _ delivered) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(v)
	})
}

func (w *workspace) idle(t *testing.T) {
	t.Helper()
	require.NoError(t, w.Idle(soon(t)))
}

// call makes a Web API call by hand: token in the header, a JSON body.
func (w *workspace) call(t *testing.T, method string, in map[string]any) map[string]any {
	t.Helper()
	body, err := json.Marshal(in)
	require.NoError(t, err)
	answer := w.raw(t, method, "application/json; charset=utf-8", "Bearer "+w.BotToken(), string(body))
	return answer
}

// form makes a Web API call by hand: everything in a form.
func (w *workspace) form(t *testing.T, method string, in url.Values) map[string]any {
	t.Helper()
	answer := w.raw(t, method, "application/x-www-form-urlencoded", "Bearer "+w.BotToken(), in.Encode())
	return answer
}

func (w *workspace) raw(t *testing.T, method, contentType, auth, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, w.url+"/api/"+method, strings.NewReader(body))
	require.NoError(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return decode(t, data)
}

// post posts blocks as the bot and returns the message's ts.
func (w *workspace) post(t *testing.T, blocks string) string {
	t.Helper()
	answer := w.call(t, "chat.postMessage", map[string]any{"channel": "C0OPS", "text": "hello", "blocks": json.RawMessage(blocks)})
	require.Equal(t, true, answer["ok"], "%v", answer)
	return answer["ts"].(string)
}

// sim calls the control API.
func (w *workspace) sim(t *testing.T, path string, in any) (int, map[string]any) {
	t.Helper()
	method, body := http.MethodGet, []byte(nil)
	if in != nil {
		method = http.MethodPost
		body, _ = json.Marshal(in)
	}
	req, err := http.NewRequestWithContext(soon(t), method, w.url+"/sim/"+path, bytes.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, decode(t, data)
}

func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal(data, &out), "%s", data)
	return out
}

// dig follows keys and indexes into decoded JSON.
func dig(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, ok := v.(map[string]any)
			require.True(t, ok, "no object at %v in %v", step, v)
			v = o[step]
		case int:
			list, ok := v.([]any)
			require.True(t, ok && step < len(list), "no item %d in %v", step, v)
			v = list[step]
		}
	}
	return v
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

const approveButtons = `[
	{"type":"header","text":{"type":"plain_text","text":"Delete the index?"}},
	{"type":"section","block_id":"what","text":{"type":"mrkdwn","text":"*drop* users_idx"}},
	{"type":"actions","block_id":"decide","elements":[
		{"type":"button","action_id":"approve","style":"primary","value":"b1:c1","text":{"type":"plain_text","text":"Approve"}},
		{"type":"button","action_id":"deny","style":"danger","value":"b1:c1","text":{"type":"plain_text","text":"Deny"}}
	]}
]`

const reasonModal = `{
	"type":"modal","callback_id":"deny","private_metadata":"b1:c1","notify_on_close":true,
	"title":{"type":"plain_text","text":"Deny"},"submit":{"type":"plain_text","text":"Deny"},"close":{"type":"plain_text","text":"Cancel"},
	"blocks":[
		{"type":"section","text":{"type":"plain_text","text":"Say why."}},
		{"type":"input","block_id":"reason","label":{"type":"plain_text","text":"Reason"},
		 "element":{"type":"plain_text_input","action_id":"text","multiline":true,"min_length":3,"max_length":20}}
	]
}`

func formValue(body []byte, name string) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	return form.Get(name)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}
