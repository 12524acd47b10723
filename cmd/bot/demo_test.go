package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestTheDemoHasWhatTheManifestHas(t *testing.T) {
	t.Parallel()
	s, _ := startDemo(t)
	var state slacksim.State
	s.do(http.MethodGet, "/sim/state", nil, &state)
	require.True(t, state.Home, "the manifest has a Home tab")
	require.True(t, state.Messages, "and takes direct messages")
	require.Equal(t, []string{"/countersign"}, state.Commands)
	require.Equal(t, []slacksim.MenuEntry{{CallbackID: "countersign.here", Name: "Review approvals here"}}, state.Shortcuts)
}

// What the demo prints is all that a visitor needs to try the HTTP API.
func TestAnAgentOfTheVisitorAsksInTheDemo(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stdout := newOutput()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "--addr", "127.0.0.1:0"}, nil, stdout, io.Discard) }()
	s := newSim(t, stdout.await(t, `http://127\.0\.0\.1:\d+`))
	set := regexp.MustCompile(`COUNTERSIGN_URL=(\S+) COUNTERSIGN_TOKEN=(\S+)`).FindStringSubmatch(stdout.await(t, `COUNTERSIGN_URL=\S+ COUNTERSIGN_TOKEN=\S+`))
	asked := make(chan string, 1)
	go func() {
		out, err := program(t, &remote{url: set[1], token: set[2]}, filepath.Join("..", "..", "examples", "curl", "refund.sh"), "R-17", "4200")
		asked <- fmt.Sprint(out, err)
	}()
	card := s.await(bob, "", "the card", says("Refund 42.00 EUR for order R-17", "High risk", "visitor", "Money leaves the company"))
	require.Empty(t, s.click(bob, card, "R-17", "Approve").VisibleError)
	require.Regexp(t, `^waiting for people to decide about refund-R-17 \(request \S+\)\nrefunding with {"order":"R-17","cents":4200}\n<nil>$`, <-asked)
	stop()
	require.NoError(t, <-ended)
}

// Whoever starts the demo and knocks until somebody opens is answered as everybody else
// is: Slack would send a bot that is not there yet the message again after a minute.
func TestAMessageThatIsSentWhileTheDemoStarts(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "--addr", addr}, nil, io.Discard, io.Discard) }()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			require.NoError(t, conn.Close())
			break
		}
		require.Empty(t, ended, "the demo has ended")
	}
	s := newSim(t, "http://"+addr)
	s.await(alice, s.ask("what can you do?", ""), "the answer", says("I can clean up"))
	var all slacksim.Requests
	s.do(http.MethodGet, "/sim/log", nil, &all)
	require.NotEmpty(t, all.Log)
	for _, e := range all.Log {
		require.Empty(t, e.Problem, "%s %s", e.Direction, e.Kind)
	}
	stop()
	require.NoError(t, <-ended)
}

func TestTheDemoStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":8484", "0.0.0.0:0", "[::]:0", "192.0.2.7:8484"} {
		err := run(t.Context(), []string{"demo", "--addr", addr}, nil, io.Discard, io.Discard)
		require.ErrorContains(t, err, "--expose", addr)
		require.ErrorContains(t, err, "no login", addr)
	}
}

func TestTheDemoIsServedToOtherMachinesOnDemand(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr := newOutput(), newOutput()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "--addr", "0.0.0.0:0", "--expose"}, nil, stdout, stderr) }()
	s := newSim(t, stdout.await(t, `http://(127\.0\.0\.1|\[::1\]):\d+`))
	root := s.ask("what can you do?", "")
	s.await(alice, root, "the answer", says("I can clean up"))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/sim/state", nil)
	require.NoError(t, err)
	req.Host = "this-machine.example"
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, "other machines know it by another name")
	stop()
	require.NoError(t, <-ended, stderr.String())
	require.Contains(t, stderr.String(), "Warning: the demo has no login")
}
