package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state/statetest"
)

// starting is a `bot serve` that waits for Redis, with the log as JSON and these
// variables besides.
func starting(t *testing.T, env ...string) (*exec.Cmd, *output) {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "redis://" + statetest.FreeAddr(t)
	i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
	i.env["COUNTERSIGN_LOG_FORMAT"] = "json"
	i.check()
	path, err := binary()
	require.NoError(t, err)
	stderr := newOutput()
	p := exec.CommandContext(t.Context(), path, "serve", "--config", i.o.Path)
	p.Env, p.Stderr = append(i.o.Environ, env...), stderr
	require.NoError(t, p.Start())
	stderr.await(t, "Redis does not answer")
	return p, stderr
}

// requireJSON requires that each line is a record.
func requireJSON(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

// What OpenTelemetry says of its variables is in the log, without their values.
func TestVariablesOfOpenTelemetryAreNotLogged(t *testing.T) {
	p, log := starting(
		t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization: Bearer hunter2", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization=hunter2%zz",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere",
	)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait())
	requireJSON(t, log.String())
	require.Contains(t, log.String(), `"what":"parse headers","err":"missing '="`)
	require.Contains(t, log.String(), `"what":"escape header value"`)
	require.Contains(t, log.String(), `"what":"read tls ca cert file"`)
	require.NotContains(t, log.String(), "hunter2")
}

// SIGHUP reads the configuration again, and never ends the bot: also while it starts
// and while it stops, when there is nothing to read.
func TestSIGHUPNeverEndsTheBot(t *testing.T) {
	p, log := starting(t)
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), log.String())
}
