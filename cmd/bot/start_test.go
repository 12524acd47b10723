package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	p, stderr := begun(t, env...)
	stderr.await(t, "Redis does not answer")
	return p, stderr
}

// begun is a `bot serve` that was just started.
func begun(t *testing.T, env ...string) (*exec.Cmd, *output) {
	t.Helper()
	i := newInstallation(t, slacksim.Config{})
	i.env["REDIS_URL"] = "redis://" + statetest.FreeAddr(t)
	i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
	i.env["COUNTERSIGN_LOG_FORMAT"] = "json"
	i.check()
	return i.serve(env...)
}

// serve starts the built program on the installation, with these variables besides its
// own. The log is what the program writes.
func (i *installation) serve(env ...string) (p *exec.Cmd, log *output) {
	i.t.Helper()
	path, err := binary()
	require.NoError(i.t, err)
	p, log = exec.CommandContext(i.t.Context(), path, "serve", "--config", i.o.Path), newOutput()
	p.Env, p.Stderr = append(i.o.Environ, env...), log
	require.NoError(i.t, p.Start())
	return p, log
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
	t.Parallel()
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

// A collector of traces that hangs when the bot stops is in the log, and the stop does not
// fail.
func TestACollectorThatHangsDoesNotFailTheStop(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(collector.Close)
	addr := statetest.FreeAddr(t)
	p, log := begun(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "REDIS_URL=unix://"+statetest.NewInstance(t).Socket, "COUNTERSIGN_ADDR="+addr)
	log.await(t, `"msg":"listening"`)
	r, err := http.Post("http://"+addr+"/slack/events", "application/json", nil)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), log.String())
	require.Contains(t, log.String(), `"err":"send the last traces: context deadline exceeded"`)
	require.Contains(t, log.String(), `"msg":"stopped"`)
}

// What a library writes to Go's standard logger is a record of the log too: here that a
// server sent more than its answer.
func TestTheStandardLoggerIsTheLog(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		const body = `{"ok":true,"user_id":"U0BOT","bot_id":"B0BOT","team_id":"T0COUNTER"}`
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%sAND MORE", len(body), body)
			}
		}
	}()
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	p, stderr := begun(t, "SLACK_API_URL=http://"+l.Addr().String()+"/api/", "REDIS_URL=unix://"+statetest.NewInstance(t).Socket)
	stderr.await(t, `"msg":"Unsolicited response`)
	stderr.await(t, `"msg":"listening"`)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), stderr.String())
	requireJSON(t, stderr.String())
}

// SIGHUP reads the configuration again, and never ends the bot: also while it starts
// and while it stops, when there is nothing to read.
func TestSIGHUPNeverEndsTheBot(t *testing.T) {
	t.Parallel()
	p, log := starting(t)
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), log.String())
}

// With COUNTERSIGN_LOG_FORMAT=json, the reason why the bot does not start is a record
// of the log like everything else that it writes, and the exit code stays the same.
func TestWhyTheBotDoesNotStartIsARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"several problems": {[]string{"serve", "--config", "none.yaml"}, `none.yaml: no such file or directory\nSLACK_BOT_TOKEN: not set`, exitFailure},
		"a gateway":        {[]string{"mcp-gateway", "--config", "none\u202e.yaml"}, `none\\u202e.yaml`, exitFailure},
		"a missing flag":   {[]string{"serve"}, `bot serve: --config FILE is missing`, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := run(t.Context(), c.args, []string{"COUNTERSIGN_LOG_FORMAT=json"}, &stdout, &stderr)
			require.Equal(t, c.code, exitCode(err, &stderr))
			require.Empty(t, stdout.String())
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			requireJSON(t, stderr.String())
			require.Contains(t, stderr.String(), c.want)
		})
	}
	var stdout, stderr strings.Builder
	require.NoError(t, run(t.Context(), []string{"serve", "--help"}, []string{"COUNTERSIGN_LOG_FORMAT=json"}, &stdout, &stderr))
	require.Empty(t, stderr.String())
}

// An address that is wrong is named by its variable, and what it holds is not printed.
func TestWhatPreventsTheStartNamesTheVariable(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[string]string{
		"REDIS_URL=PLANTED@host":    "REDIS_URL: this is no Redis URL",
		"OPENAI_BASE_URL=::PLANTED": "OPENAI_BASE_URL: is not a URL",
	} {
		p, log := begun(t, wrong)
		require.Error(t, p.Wait())
		require.Contains(t, log.String(), want)
		require.NotContains(t, log.String(), "PLANTED")
	}
}

// A SIGHUP that comes while the bot still reads its configuration is not forgotten: the bot
// reads it again once it runs. It reads from a named pipe here, which shows when it does.
func TestASIGHUPBeforeTheBotRunsIsNotForgotten(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
	i.check()
	pipe := filepath.Join(i.dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	path, err := binary()
	require.NoError(t, err)
	stderr := newOutput()
	p := exec.CommandContext(t.Context(), path, "serve", "--config", pipe)
	p.Env, p.Stderr = i.o.Environ, stderr
	require.NoError(t, p.Start())

	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when it is being read
	require.NoError(t, err)
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	_, err = w.WriteString(i.text)
	require.NoError(t, errors.Join(err, w.Close()))
	stderr.await(t, "listening")
	again := make(chan error, 1)
	go func() { again <- os.WriteFile(pipe, []byte(i.text), 0o600) }()
	stderr.await(t, "the configuration has not changed")
	require.NoError(t, <-again)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), stderr.String())
}

// A bot that starts in an outage of Slack is alive and not ready, and works once that is over.
func TestABotThatStartsWhileSlackIsAwayWaits(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	var answers atomic.Bool
	slackURL, err := url.Parse(i.env["SLACK_API_URL"])
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: slackURL.Scheme, Host: slackURL.Host})
	outage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers.Load() {
			proxy.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(outage.Close)
	i.env["REDIS_URL"] = "redis://" + statetest.NewInstance(t).Addr
	i.env["SLACK_API_URL"] = outage.URL + slackURL.Path
	i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
	i.check()
	p, log := i.serve()
	log.await(t, "Slack does not answer; trying again until it does")
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		r, err := http.Get("http://" + i.env["COUNTERSIGN_ADDR"] + path)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, want, r.StatusCode, path)
	}
	answers.Store(true)
	log.await(t, "msg=listening")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait())
}

// Which tools of MCP servers are accepted is in Redis, and the bot waits for it too.
func TestABotWithMCPServersWaitsForRedis(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, slacksim.Config{})
	i.replace("    channels:", "    mcp: {files: {url: 'https://127.0.0.1:1/mcp'}}\n    channels:")
	i.o.Accepted, i.o.Rules = withAccepted, coverage
	i.env["REDIS_URL"] = "redis://" + statetest.FreeAddr(t)
	i.env["COUNTERSIGN_ADDR"] = statetest.FreeAddr(t)
	i.check()
	p, log := i.serve()
	log.await(t, `Redis cannot be used yet; trying again until it can" wait=2s`)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(), log.String())
}
