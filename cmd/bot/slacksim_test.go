package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

func TestSlacksimServesWhatItPrints(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"slacksim", "--addr", "127.0.0.1:0", "--bot-token", "xoxb-mine"}, nil, in, io.Discard)
	}()
	said := make([]byte, 4096)
	n, err := out.Read(said)
	require.NoError(t, err)
	words := string(said[:n])
	require.NotContains(t, words, "xoxb-mine", "what a person chose may be a real token")
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(words)
	require.NotEmpty(t, url, words)

	answer, err := slack.New("xoxb-mine", slack.OptionAPIURL(url+"/api/")).AuthTestContext(ctx)
	require.NoError(t, err)
	require.Equal(t, "countersign", answer.User)
	_, err = slack.New("xoxb-other", slack.OptionAPIURL(url+"/api/")).AuthTestContext(ctx)
	require.EqualError(t, err, "invalid_auth")
	for path, want := range map[string]string{"/": "<!doctype html>", "/sim/state": `"people"`} {
		resp, err := http.Get(url + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, strings.ToLower(string(body)), want)
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestSlacksimStaysOnThisMachine(t *testing.T) {
	for _, addr := range []string{":8485", "0.0.0.0:0", "[::]:0", "192.0.2.7:8485"} {
		err := run(t.Context(), []string{"slacksim", "--addr", addr}, nil, io.Discard, io.Discard)
		require.ErrorContains(t, err, "--expose", addr)
	}
	for addr, local := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "127.9.9.9:1": true, "0.0.0.0:0": false} {
		got, err := loopback(t.Context(), addr)
		require.NoError(t, err)
		require.Equal(t, local, got, addr)
	}

	var warned bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, run(ctx, []string{"slacksim", "--addr", "0.0.0.0:0", "--expose"}, nil, io.Discard, &warned))
	require.Contains(t, warned.String(), "no login")
}

func TestSlacksimSaysEveryMistakeAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"slacksim", "--addr", "nowhere", "--bot-token", "secret", "--events-url", "localhost:3000"}, nil, io.Discard, io.Discard)
	for _, want := range []string{"--addr", "--bot-token", "--events-url"} {
		require.ErrorContains(t, err, want)
	}
	var help bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"slacksim", "--help"}, nil, io.Discard, &help))
	require.Contains(t, help.String(), "-interactivity-url")
	require.Contains(t, usage, "bot slacksim")
}
