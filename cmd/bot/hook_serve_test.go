package main

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// doctorOn is a program of Claude Code for the doctor; without it there is none.
var doctorOn = flag.String("claude", "", "the program of Claude Code that bot hook doctor looks at")

// hook asks as Claude Code does over HTTP.
func (r *remote) hook(question string) string {
	r.t.Helper()
	return r.hookAt("/v1/hooks/claude-code", question)
}

func (r *remote) hookAt(path, question string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(question))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(r.t, http.StatusOK, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return string(b)
}

// A coding agent is held at its prompt, a person clicks in Slack, and it goes on:
// over HTTP, and with the command of its hook.
func TestAClickAnswersACodingAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.listen()
	agent.accept("first", "secret-token")
	p := w.start()
	answer := make(chan string, 1)
	go func() { answer <- agent.hook(strings.Replace(hookQuestion, "make deploy", "make over-http", 1)) }()
	card := w.sim.await(bob, "", "the card", says("Run make over-http", "/srv/app"))
	require.Empty(t, w.sim.click(bob, card, "make over-http", "Approve").VisibleError)
	require.Contains(t, <-answer, `"permissionDecision":"allow"`)

	cmd, stdout, stderr := startHook(t, agent.url, strings.Replace(hookQuestion, "make deploy", "make by-command", 1))
	require.NoError(t, cmd.Start())
	card = w.sim.await(bob, "", "the card", says("Run make by-command", "/srv/app"))
	require.Empty(t, w.sim.click(bob, card, "make by-command", "Approve").VisibleError)
	require.NoError(t, cmd.Wait(), stderr.String())
	require.Contains(t, stdout.String(), `"permissionDecision":"allow"`)

	// A redirect is no denial, so there is none.
	for _, path := range []string{"//v1/hooks/claude-code", "/v1/hooks", "/v1/hooks/claude-code/", "/v1/x/../hooks/claude-code"} {
		require.Contains(t, agent.hookAt(path, hookQuestion), `"permissionDecision":"deny"`, path)
	}

	dir := t.TempDir()
	doctor := func(more ...string) (string, int) {
		path, err := binary()
		require.NoError(t, err)
		args := append([]string{"hook", "doctor", "--url", agent.url, "--managed", filepath.Join(dir, "managed.json"), "--project", dir}, more...)
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = []string{"COUNTERSIGN_TOKEN=first", "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		t.Log(out.String())
		return out.String(), cmd.ProcessState.ExitCode()
	}
	said, code := doctor("--claude", script(t, "echo 2.1.330"))
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "no settings ask Countersign before a tool runs")
	said, code = doctor("--claude", script(t, "echo 2.1.330"), "--write")
	require.Zero(t, code, said)
	if *doctorOn != "" {
		said, _ = doctor("--claude", *doctorOn)
		require.Contains(t, said, "Claude Code")
	}

	go func() { answer <- agent.hook(strings.Replace(hookQuestion, "make deploy", "make late", 1)) }()
	w.sim.await(bob, "", "the card", says("make late"))
	require.NoError(t, p.term())
	require.Contains(t, <-answer, "Pending", "who waits is told before the bot is gone")
}

// script writes a program that a machine could have.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}
