package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The people and places of the simulator's workspace.
const (
	alice = "U0ALICE" // asks
	bob   = "U0BOB"   // in @sre
	carol = "U0CAROL" // in @sre and @security
	dave  = "U0DAVE"  // in the channel, in no group
	frank = "U0FRANK" // in @finance, in the demo only
	ops   = "C0OPS"
)

// sim is the Slack simulator as a person uses it, over HTTP.
type sim struct {
	t       *testing.T
	url     string
	changed chan struct{} // something may have changed
}

// newSim watches the workspace at the address until the test ends.
func newSim(t *testing.T, url string) *sim {
	t.Helper()
	s := &sim{t: t, url: url, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sim/events", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // closed when the test ends
	require.NoError(t, err)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { cancel(); _ = resp.Body.Close(); <-watching })
	return s
}

// do calls the control API and decodes the answer.
func (s *sim) do(method, path string, in, out any) {
	s.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		require.NoError(s.t, err)
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, body)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(b, out), "%s", b)
}

// cleanUp is what the story begins with.
const cleanUp = "clean up the old reports"

// ask has Alice ask the bot for something in #ops, at the top or in a thread,
// and returns the timestamp.
func (s *sim) ask(text, thread string) string {
	s.t.Helper()
	return s.askAs(alice, text, thread)
}

func (s *sim) askAs(user, text, thread string) string {
	s.t.Helper()
	var out struct{ TS, Error string }
	in := map[string]string{"user": user, "channel": ops, "text": "@countersign " + text}
	if thread != "" {
		in["thread_ts"] = thread
	}
	s.do(http.MethodPost, "/sim/post", in, &out)
	require.Empty(s.t, out.Error)
	return out.TS
}

type message struct {
	TS        string
	User      string
	Text      string
	Blocks    []map[string]any
	Ephemeral bool `json:"is_ephemeral"`
	Metadata  struct {
		Payload map[string]any `json:"event_payload"`
	}
}

// words is everything that can be read in the message.
func (m message) words() string {
	var all []string
	read(m.Blocks, func(s string) { all = append(all, s) })
	if len(all) == 0 {
		return m.Text
	}
	return strings.Join(all, "\n")
}

// read calls f with every text below v.
func read(v any, f func(string)) {
	switch v := v.(type) {
	case []map[string]any:
		for _, x := range v {
			read(x, f)
		}
	case []any:
		for _, x := range v {
			read(x, f)
		}
	case map[string]any:
		for _, key := range []string{"text", "fields", "elements", "label", "user_id"} {
			if s, ok := v[key].(string); ok {
				f(s)
			} else {
				read(v[key], f)
			}
		}
	}
}

type button struct{ text, action, block string }

// buttons lists the buttons of the message that belong to the call whose
// arguments hold word: those after it and before the next call.
func (m message) buttons(word string) []button {
	var found []button
	here := word == ""
	for _, b := range m.Blocks {
		if b["type"] == "rich_text" {
			var text strings.Builder
			read(b, func(s string) { text.WriteString(s) })
			here = here && word == "" || strings.Contains(text.String(), word)
		}
		if !here || b["type"] != "actions" {
			continue
		}
		for _, e := range b["elements"].([]any) {
			e := e.(map[string]any)
			found = append(found, button{
				text:   e["text"].(map[string]any)["text"].(string),
				action: e["action_id"].(string), block: b["block_id"].(string),
			})
		}
	}
	return found
}

// thread is the thread as the person sees it.
func (s *sim) thread(user, root string) []message {
	s.t.Helper()
	var out struct{ Messages []message }
	q := url.Values{"user": {user}, "channel": {ops}, "thread_ts": {root}}
	s.do(http.MethodGet, "/sim/messages?"+q.Encode(), nil, &out)
	return out.Messages
}

// patience is how long a test waits for what must happen: a busy machine may need long,
// and the lease of a process that died has to end.
const patience = 3 * time.Minute

// await returns the newest message of the thread that ok accepts, as soon as
// there is one.
func (s *sim) await(user, root, what string, ok func(message) bool) message {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		messages := s.thread(user, root)
		for _, m := range slices.Backward(messages) {
			if ok(m) {
				return m
			}
		}
		select {
		case <-s.changed:
		case <-deadline.C:
			var seen []string
			for _, m := range messages {
				seen = append(seen, fmt.Sprintf("[%s] %s", m.User, m.words()))
			}
			require.Fail(s.t, "not seen: "+what, "the thread is:\n%s", strings.Join(seen, "\n---\n"))
		}
	}
}

// says accepts a message that holds all the words.
func says(words ...string) func(message) bool {
	return func(m message) bool {
		for _, w := range words {
			if !strings.Contains(m.words(), w) {
				return false
			}
		}
		return true
	}
}

type outcome struct {
	Status       int    `json:"status"`
	VisibleError string `json:"visible_error"`
	Error        string `json:"error"`
	Confirm      any    `json:"confirm"` // a dialog came first
}

// click presses the button whose text begins so, beside the call whose
// arguments hold word.
func (s *sim) click(user string, m message, word, text string) outcome {
	s.t.Helper()
	for _, b := range m.buttons(word) {
		if strings.HasPrefix(b.text, text) {
			return s.press(user, m.TS, b)
		}
	}
	require.Fail(s.t, "no button "+text, "beside %s in:\n%s", word, m.words())
	return outcome{}
}

// approves has Bob approve both calls of the card in a thread, and returns when the
// second click is acknowledged.
func (s *sim) approves(root string) {
	s.t.Helper()
	card := s.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	require.Empty(s.t, s.click(bob, card, "2023-q1", "Approve").VisibleError)
	card = s.await(bob, root, "one approved", func(m message) bool {
		return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 && len(m.buttons("2023-q2")) > 0
	})
	require.Empty(s.t, s.click(bob, card, "2023-q2", "Approve").VisibleError)
}

// press presses the button, and goes through the dialog that may come first.
func (s *sim) press(user, ts string, b button) outcome {
	s.t.Helper()
	var out outcome
	in := map[string]any{"user": user, "channel": ops, "ts": ts, "action_id": b.action, "block_id": b.block}
	s.do(http.MethodPost, "/sim/click", in, &out)
	if out.Confirm != nil {
		in["confirmed"], out = true, outcome{}
		s.do(http.MethodPost, "/sim/click", in, &out)
	}
	return out
}

type view struct {
	ID     string
	Title  string
	Blocks []map[string]any
}

// views is the person's stack of modals.
func (s *sim) views(user string) []view {
	s.t.Helper()
	var out struct{ Views []view }
	s.do(http.MethodGet, "/sim/views?user="+user, nil, &out)
	return out.Views
}

// submit fills every input of the view with the text and submits it.
func (s *sim) submit(user string, v view, text string) {
	s.t.Helper()
	values := map[string]map[string]string{}
	for _, b := range v.Blocks {
		if b["type"] == "input" {
			values[b["block_id"].(string)] = map[string]string{b["element"].(map[string]any)["action_id"].(string): text}
		}
	}
	require.NotEmpty(s.t, values, "the view asks for nothing")
	var out struct {
		Closed bool
		Error  string
		Errors map[string]string
	}
	s.do(http.MethodPost, "/sim/submit", map[string]any{"user": user, "view_id": v.ID, "values": values}, &out)
	require.True(s.t, out.Closed, "not accepted: %+v", out)
}

// edit replaces an argument in the form that the person sees, and has them sign
// what they wrote.
func (s *sim) edit(user, from, to string) {
	s.t.Helper()
	views := s.views(user)
	require.Len(s.t, views, 1)
	values := map[string]map[string]string{}
	for _, b := range views[0].Blocks {
		e, _ := b["element"].(map[string]any)
		id, _ := b["block_id"].(string)
		switch {
		case e["initial_value"] == from:
			values[id] = map[string]string{e["action_id"].(string): to}
		case e["type"] == "checkboxes":
			values[id] = map[string]string{e["action_id"].(string): "yes"}
		}
	}
	require.Len(s.t, values, 2, "the argument and the signature")
	s.send(user, views[0], values)
}

// correct replaces an argument in the form, for an editor who cannot approve.
func (s *sim) correct(user, from, to string) {
	s.t.Helper()
	views := s.views(user)
	require.Len(s.t, views, 1)
	for _, b := range views[0].Blocks {
		if e, _ := b["element"].(map[string]any); e["initial_value"] == from {
			s.send(user, views[0], map[string]map[string]string{b["block_id"].(string): {e["action_id"].(string): to}})
			return
		}
	}
	require.Fail(s.t, "no argument is "+from)
}

// send submits what a person entered in a form.
func (s *sim) send(user string, v view, values map[string]map[string]string) {
	s.t.Helper()
	var out struct {
		Error  string
		Errors map[string]string
	}
	s.do(http.MethodPost, "/sim/submit", map[string]any{"user": user, "view_id": v.ID, "values": values}, &out)
	require.Empty(s.t, out.Error)
	require.Empty(s.t, out.Errors)
}
