// Package bolt_test runs an app on the official Slack framework for Node
// against the simulator, which has no part in that framework.
package bolt_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// The app's story: a mention, a click, a modal that is refused and then
// accepted, a slash command, loaded options, a shortcut, the Home tab.
func TestBoltAppTellsItsStory(t *testing.T) {
	w := start(t)
	w.tellsItsStory()
	w.calledEverything("url_verification")
}

// The same in Socket Mode, where the framework's own client connects.
func TestBoltAppTellsItsStoryOverSockets(t *testing.T) {
	w := startSocket(t)
	w.tellsItsStory()
	w.calledEverything("apps.connections.open", "hello")
	for _, e := range w.sim.Log() {
		require.True(t, e.Direction == slacksim.FromApp || e.Method == slacksim.SocketMethod, "%s went over HTTP", e.Kind)
	}
}

func (w *workspace) tellsItsStory() {
	t := w.t
	t.Helper()
	first := w.says("alice", "@countersign release payments")
	w.sees("bob", first, "<@U0ALICE> asks: *release payments*")
	w.clicks("bob", first, "approve")
	w.sees("carol", first, "Approved by bob: release payments")

	second := w.says("alice", "@countersign release search")
	w.sees("bob", second, "asks: *release search*")
	w.clicks("carol", second, "deny")
	view := w.dialog("carol")
	require.Equal(t, "Deny", view["title"])
	refused := w.submits("carol", view, "no")
	require.Equal(t, map[string]any{"reason": "Say more: eight characters at least."}, refused["errors"])
	require.Equal(t, view["id"], w.dialog("carol")["id"], "the modal stays open")
	require.Equal(t, true, w.submits("carol", view, "the index is in use")["closed"])
	w.sees("alice", second, "Denied by carol: release search (the index is in use)")
	w.sees("carol", "", "Your reason was recorded.")
	require.NotContains(t, w.screen("alice", ""), "Your reason was recorded.", "an ephemeral message is for one person")

	require.Contains(t, w.types("alice", ""), "Say what")
	require.Equal(t, "Looking at payments.", w.types("alice", "payments"))
	w.sees("alice", "", "payments has no open request")
	require.Contains(t, w.screen("bob", ""), "Looking at payments.")
	require.NotContains(t, w.screen("bob", ""), "payments has no open request")

	third := w.says("bob", "@countersign release mail")
	w.sees("bob", third, "asks: *release mail*")
	w.picks("alice", third, "window", "to", "tomorrow")
	w.sees("bob", third, "Put off until tomorrow by alice")
	w.uses("carol", third, "why")
	w.sees("carol", "", "Because <@U0BOB> wrote:")
	w.do("POST", "home", map[string]any{"user": "alice"})
	w.home("alice", "Nothing waits for you.")
}

// workspace is a simulator with the app beside it, driven over HTTP only.
type workspace struct {
	t   *testing.T
	sim *slacksim.Server
	url string
}

// start serves the simulator and runs the app until the test ends.
func start(t *testing.T) *workspace {
	t.Helper()
	w, node := serve(t, slacksim.Config{})
	app := "http://127.0.0.1:" + w.run(node, "SLACK_SIGNING_SECRET=bolt-secret") + "/slack/events" // Bolt takes everything at one URL
	w.do("POST", "urls", map[string]any{"events": app, "interactivity": app, "commands": app})
	w.do("POST", "verify", map[string]any{})
	return w
}

// startSocket does it with the app set to Socket Mode.
func startSocket(t *testing.T) *workspace {
	t.Helper()
	w, node := serve(t, slacksim.Config{SocketMode: true, AppToken: "xapp-1-bolt"})
	w.run(node, "SLACK_APP_TOKEN=xapp-1-bolt")
	require.Len(t, w.sim.Sockets(), 1)
	return w
}

// serve serves the simulator, and says where Node.js is.
func serve(t *testing.T, cfg slacksim.Config) (w *workspace, node string) {
	t.Helper()
	node, err := exec.LookPath("node")
	require.NoError(t, err, "the tests need Node.js 20 or later: install it and run `make deps`")
	_, err = os.Stat("node_modules/@slack/bolt")
	require.NoError(t, err, "the Bolt app's packages are not installed: run `make deps`")

	cfg.BotToken, cfg.SigningSecret = "xoxb-bolt", "bolt-secret"
	sim := slacksim.New(cfg)
	srv := httptest.NewServer(sim)
	t.Cleanup(func() { sim.Close(); srv.Close() })
	sim.SetPublicURL(srv.URL)
	return &workspace{t: t, sim: sim, url: srv.URL}, node
}

var listening = regexp.MustCompile(`^listening on port (\d+)$`)

// run starts the app and returns the port it listens on.
func (w *workspace) run(node string, env ...string) string {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, node, "app.js")
	cmd.Env = append(os.Environ(), "PORT=0", "SLACK_BOT_TOKEN=xoxb-bolt", "SLACK_API_URL="+w.url+"/api/")
	cmd.Env = append(cmd.Env, env...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	require.NoError(w.t, cmd.Start())

	port := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(port)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
			}
		}
	})
	w.t.Cleanup(func() {
		cancel()
		reading.Wait()
		_ = cmd.Wait() // it was killed
		if complaints.Len() > 0 {
			w.t.Errorf("the app complained:\n%s", complaints.String())
		}
	})
	select {
	case p := <-port:
		require.NotEmpty(w.t, p, "the app ended before it listened")
		return p
	case <-time.After(time.Minute):
		require.Fail(w.t, "the app did not say where it listens")
	}
	return ""
}

// do calls the control API.
func (w *workspace) do(method, path string, in any) map[string]any {
	w.t.Helper()
	body, err := json.Marshal(in)
	require.NoError(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/sim/"+path, bytes.NewReader(body))
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, resp.StatusCode, "%s %s: %s", method, path, data)
	var out map[string]any
	require.NoError(w.t, json.Unmarshal(data, &out), "%s", data)
	return out
}

// says posts as a person and returns the message's ts, which is the thread.
func (w *workspace) says(user, text string) string {
	w.t.Helper()
	ts, ok := w.do("POST", "post", map[string]any{"user": user, "channel": "ops", "text": text})["ts"].(string)
	require.True(w.t, ok)
	w.t.Logf("%-6s writes: %s", user, text)
	return ts
}

// sees waits until a person sees the text in the channel or thread.
func (w *workspace) sees(user, thread, want string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	err := w.sim.Await(ctx, func() bool { return strings.Contains(w.screen(user, thread), want) })
	require.NoError(w.t, err, "%s does not see %q but\n%s\n%s", user, want, w.screen(user, thread), w.calls())
	w.t.Logf("%-6s sees:   %s", user, want)
}

func (w *workspace) screen(user, thread string) string {
	w.t.Helper()
	var lines []string
	for _, m := range w.messages(user, thread) {
		lines = append(lines, readable(m)...)
	}
	return strings.Join(lines, "\n")
}

func (w *workspace) messages(user, thread string) []any {
	w.t.Helper()
	q := url.Values{"user": {user}, "channel": {"ops"}, "thread_ts": {thread}}
	list, _ := w.do("GET", "messages?"+q.Encode(), nil)["messages"].([]any)
	return list
}

// readable is what blocks say, or else the text.
func readable(message any) []string {
	m, _ := message.(map[string]any)
	blocks, _ := m["blocks"].([]any)
	if len(blocks) == 0 || (m["bot_id"] == nil && m["type"] != "home") {
		return []string{fmt.Sprint(m["text"])}
	}
	var lines []string
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		if text, ok := block["text"].(map[string]any); ok {
			lines = append(lines, fmt.Sprint(text["text"]))
		}
	}
	return lines
}

// clicks presses a button of the app's latest message in the thread.
func (w *workspace) clicks(user, thread, action string) {
	w.t.Helper()
	w.t.Logf("%-6s clicks: %s", user, action)
	w.acts("click", user, thread, map[string]any{"action_id": action})
}

// picks types into a menu whose options the app loads, and picks one.
func (w *workspace) picks(user, thread, action, typed, option string) {
	w.t.Helper()
	out := w.acts("suggest", user, thread, map[string]any{"action_id": action, "value": typed})
	w.t.Logf("%-6s types %q and is offered %d options", user, typed, len(out["options"].([]any)))
	w.acts("click", user, thread, map[string]any{"action_id": action, "value": option})
	w.t.Logf("%-6s picks:  %s", user, option)
}

// uses takes a shortcut from the menu of the thread's first message.
func (w *workspace) uses(user, ts, callback string) {
	w.t.Helper()
	out := w.do("POST", "shortcut", map[string]any{"user": user, "channel": "ops", "ts": ts, "callback_id": callback})
	require.EqualValues(w.t, 200, out["status"], "%v", out)
	w.t.Logf("%-6s uses:   the shortcut %s", user, callback)
}

// acts does something with the app's latest message in the thread.
func (w *workspace) acts(route, user, thread string, in map[string]any) map[string]any {
	w.t.Helper()
	all := w.messages(user, thread)
	last, _ := all[len(all)-1].(map[string]any)
	in["user"], in["channel"], in["ts"] = user, "ops", last["ts"]
	out := w.do("POST", route, in)
	require.EqualValues(w.t, 200, out["status"], "%v", out)
	require.NotContains(w.t, out, "visible_error")
	return out
}

// home waits until a person's Home tab says something.
func (w *workspace) home(user, want string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	require.NoError(w.t, w.sim.Await(ctx, func() bool {
		return strings.Contains(strings.Join(readable(w.do("GET", "views?user="+user, nil)["home"]), "\n"), want)
	}))
	w.t.Logf("%-6s sees:   %s (Home)", user, want)
}

// dialog waits for a modal on a person's screen.
func (w *workspace) dialog(user string) map[string]any {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	var top map[string]any
	err := w.sim.Await(ctx, func() bool {
		views, _ := w.do("GET", "views?user="+user, nil)["views"].([]any)
		if len(views) > 0 {
			top, _ = views[len(views)-1].(map[string]any)
		}
		return top != nil
	})
	require.NoError(w.t, err, "%s has no modal\n%s", user, w.calls())
	w.t.Logf("%-6s sees:   the modal %q", user, top["title"])
	return top
}

func (w *workspace) submits(user string, view map[string]any, reason string) map[string]any {
	w.t.Helper()
	out := w.do("POST", "submit", map[string]any{
		"user": user, "view_id": view["id"], "values": map[string]any{"reason": map[string]any{"text": reason}},
	})
	w.t.Logf("%-6s submits %q: closed %v, errors %v", user, reason, out["closed"] == true, out["errors"])
	return out
}

// types sends the slash command and returns what the app answered with.
func (w *workspace) types(user, text string) string {
	w.t.Helper()
	out := w.do("POST", "command", map[string]any{"user": user, "channel": "ops", "command": "/release", "text": text})
	require.EqualValues(w.t, 200, out["status"], "%v", out)
	message, _ := out["message"].(map[string]any)
	w.t.Logf("%-6s types:  /release %s", user, text)
	w.t.Logf("%-6s sees:   %v", user, message["text"])
	return fmt.Sprint(message["text"])
}

// calledEverything waits until the log shows that the framework did what it
// should (a listener may make its last call after what people see), and prints
// what went over the wire.
func (w *workspace) calledEverything(besides ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	var missing []string
	err := w.sim.Await(ctx, func() bool {
		missing = slices.Concat([]string{
			"auth.test", "app_mention", "chat.postMessage", "block_actions", "response_url",
			"views.open", "view_submission", "chat.update", "chat.postEphemeral", "slash_command",
			"block_suggestion", "message_action", "app_home_opened", "views.publish",
			"reactions.add", "chat.scheduleMessage", "users.conversations",
		}, besides)
		for _, e := range w.sim.Log() {
			missing = slices.DeleteFunc(missing, func(kind string) bool { return kind == e.Kind })
		}
		return len(missing) == 0
	})
	require.NoError(w.t, err, "did not go over the wire: %v", missing)
	require.NoError(w.t, w.sim.Idle(ctx))
	for _, e := range w.sim.Log() {
		require.Empty(w.t, e.Problem, "%s %s", e.Kind, e.Response)
	}
	w.t.Log("over the wire:\n" + w.calls())
}

func (w *workspace) calls() string {
	var lines []string
	for _, e := range w.sim.Log() {
		arrow := "slack → app"
		if e.Direction == slacksim.FromApp {
			arrow = "app → slack"
		}
		lines = append(lines, fmt.Sprintf("  %s  %-18s %d %.70s", arrow, e.Kind, e.Status, e.Response))
	}
	return strings.Join(lines, "\n")
}
