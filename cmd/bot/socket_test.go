package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

// newSocketWorld is one whose app is set to Socket Mode, with a bot that knows
// no signing secret.
func newSocketWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.sim.control("socketmode", map[string]any{"enabled": true})
	for i, pair := range w.env {
		if strings.HasPrefix(pair, "SLACK_SIGNING_SECRET=") {
			w.env[i] = "SLACK_APP_TOKEN=" + w.slack.AppToken()
		}
	}
	return w
}

// control does something to the simulator.
func (s *sim) control(path string, in map[string]any) {
	s.t.Helper()
	var out map[string]any
	s.do(http.MethodPost, "/sim/"+path, in, &out)
	require.NotContains(s.t, out, "error")
}

// connected waits until so many connections are open that are not about to be
// closed.
func (s *sim) connected(n int) {
	s.t.Helper()
	for {
		var out struct {
			Sockets []slacksim.Socket
		}
		s.do(http.MethodGet, "/sim/sockets", nil, &out)
		fresh := 0
		for _, c := range out.Sockets {
			if !c.Warned {
				fresh++
			}
		}
		if fresh == n {
			return
		}
		select {
		case <-s.changed:
		case <-s.t.Context().Done():
			require.Fail(s.t, "connections are missing")
		}
	}
}

// insists clicks until the click is taken, as people do whom Slack warns.
func (s *sim) insists(user string, card message, call, button string, connections int) {
	s.t.Helper()
	for s.click(user, card, call, button).VisibleError != "" {
		s.connected(connections)
	}
}

// TestStoryOverSockets: connections go in every way there is, deliveries are
// repeated, a process is replaced by another, and nothing is lost or done
// twice.
func TestStoryOverSockets(t *testing.T) {
	t.Parallel()
	w := newSocketWorld(t)
	first := w.start()
	w.sim.connected(2)
	status := func(path string) int {
		resp, err := http.Get("http://" + w.addr + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Eventually(t, func() bool { return status("/readyz") == http.StatusOK }, time.Minute, 5*time.Millisecond)
	require.Equal(t, http.StatusNotFound, status("/slack/events"), "an empty secret opens nothing")

	// The mention is delivered twice, and its connection is cut.
	w.sim.control("faults", map[string]any{"duplicate_deliveries": 1})
	root := w.sim.ask(cleanUp, "")
	w.sim.control("disconnect", map[string]any{"reason": "cut"})
	w.sim.connected(2)
	for range 2 { // what was under way comes again after one and after five minutes
		w.sim.control("clock", map[string]any{"advance_ms": 300_000})
	}
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))

	// The first signature, while the connections are being replaced.
	w.sim.control("disconnect", map[string]any{"reason": "warning"})
	w.sim.insists(bob, card, "2023-q1", "Approve", 2)
	w.sim.control("clock", map[string]any{"advance_ms": 10_000})
	card = w.sim.await(bob, root, "one approved", func(m message) bool {
		return m.TS == card.TS && len(m.buttons("2023-q1")) < len(m.buttons("2023-q2"))
	})

	// Slack sends the connections away, and another process takes over.
	w.sim.control("disconnect", map[string]any{"reason": "refresh_requested"})
	w.sim.connected(2)
	require.NoError(t, first.term(), "it ends cleanly:\n%s", first.out)
	w.sim.connected(0)
	second := w.start()
	w.sim.connected(2)
	w.sim.control("disconnect", map[string]any{"reason": "cut"})
	w.sim.insists(bob, card, "2023-q2", "Approve", 2)

	w.sim.await(alice, root, "the answer", says("reports/2023-q1-sales.txt: deleted", "reports/2023-q2-sales.txt: deleted"))
	require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q1-sales.txt"))
	require.NoFileExists(t, filepath.Join(w.folder, "reports", "2023-q2-sales.txt"))
	requireOnce(t, first, second)
	var cards []string
	for _, m := range w.sim.thread(bob, root) {
		if says("delete_file")(m) && m.TS != root && !m.Ephemeral { // who presses twice is told so
			cards = append(cards, m.words())
		}
	}
	require.Len(t, cards, 1, "one run, one card")
	require.NoError(t, second.term())
	for _, p := range []*process{first, second} {
		require.NotContains(t, p.out.String(), "level=ERROR")
		require.NotContains(t, p.out.String(), "xapp-", "no token is logged")
		require.NotContains(t, p.out.String(), "ticket=", "nor the address of a connection")
	}
}

func TestAWrongAppTokenFailsTheStart(t *testing.T) {
	t.Parallel()
	w := newSocketWorld(t)
	for i, pair := range w.env {
		if strings.HasPrefix(pair, "SLACK_APP_TOKEN=") {
			w.env[i] = "SLACK_APP_TOKEN=xapp-1-other"
		}
	}
	p := w.launch()
	require.Error(t, p.cmd.Wait())
	require.Contains(t, p.out.String(), "apps.connections.open")
	require.Contains(t, p.out.String(), "invalid_auth")
	require.NotContains(t, p.out.String(), "xapp-1-other")
}

// Slack says of an app-level token that it is right, too.
func TestAnotherKindOfTokenFailsTheStart(t *testing.T) {
	t.Parallel()
	w := newSocketWorld(t)
	for i, pair := range w.env {
		if strings.HasPrefix(pair, "SLACK_BOT_TOKEN=") {
			w.env[i] = "SLACK_BOT_TOKEN=" + w.slack.AppToken()
		}
	}
	p := w.launch()
	require.Error(t, p.cmd.Wait())
	require.Contains(t, p.out.String(), "SLACK_BOT_TOKEN is not the token of a bot")
}

func TestCheckLooksAtSocketMode(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{SocketMode: true})
	delete(i.env, "SLACK_SIGNING_SECRET")
	i.env["SLACK_APP_TOKEN"] = i.slack.AppToken()
	found := i.check()
	require.NotContains(t, found, "problem  ")
	require.Contains(t, found, "Slack: opens connections with SLACK_APP_TOKEN")

	for token, want := range map[string]string{
		"xoxb-mine":              "SLACK_APP_TOKEN: this is not an app-level token",
		i.slack.AppToken() + " ": "SLACK_APP_TOKEN: begins or ends with a space",
		i.slack.BotToken():       "apps.connections.open): not_allowed_token_type",
		"xapp-1-tell-no-one":     "apps.connections.open): invalid_auth",
	} {
		i.env["SLACK_APP_TOKEN"] = token
		found := i.check()
		require.Contains(t, found, want)
		require.NotContains(t, found, "tell-no-one")
	}
	i.env["SLACK_APP_TOKEN"] = i.slack.AppToken()
	i.o.Address = "https://countersign.acme.test"
	require.Contains(t, i.check(), "leave out one of them")
	delete(i.env, "SLACK_APP_TOKEN")
	require.Contains(t, i.check(), "SLACK_SIGNING_SECRET: not set")
}

// manifest writes that of the app, with the line in it.
func (i *installation) manifest(line string) {
	i.t.Helper()
	text := manifests.Slack("https://countersign.acme.test")
	require.Contains(i.t, text, "socket_mode_enabled: false")
	text = strings.Replace(text, "socket_mode_enabled: false", line, 1)
	require.NoError(i.t, os.WriteFile(filepath.Join(i.dir, doctor.ManifestName), []byte(text), 0o600))
}

// The manifest beside the configuration says the same as the environment.
func TestCheckComparesTheModeOfTheManifest(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{SocketMode: true})
	i.o.Online = false
	i.manifest("socket_mode_enabled: true")
	require.Contains(t, i.check(), "but SLACK_APP_TOKEN is not set")
	i.env["SLACK_APP_TOKEN"] = i.slack.AppToken()
	require.NotContains(t, i.check(), "problem  ")
	i.manifest("socket_mode_enabled: false")
	require.Contains(t, i.check(), "must be true, because SLACK_APP_TOKEN is set")
}
