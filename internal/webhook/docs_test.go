package webhook_test

import (
	"bufio"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/webhook"
)

// The receivers of docs/webhooks.md, one on the library of the standard for Node and
// one in plain Python, take what we send, and nothing else.
func TestTheReceiversOfTheDocumentationTakeOurMessages(t *testing.T) {
	for language, program := range map[string]string{"js": "node", "python": "python3"} {
		t.Run(language, func(t *testing.T) {
			runtime, err := exec.LookPath(program)
			require.NoError(t, err, "the tests need Node.js 20 or later and Python 3: run `make deps`")
			if language == "js" {
				require.DirExists(t, "testdata/receiver/node_modules/standardwebhooks", "the receiver's packages are not installed: run `make deps`")
			}
			port, lines := run(t, runtime, language)
			number, err := strconv.Atoi(port)
			require.NoError(t, err)
			now := time.Now()
			cfg := webhook.Config{Allow: prefixes("127.0.0.1/32"), PlainHosts: []string{"127.0.0.1"}, Ports: []int{number}, Now: func() time.Time { return now }}
			s, address := sender(t, cfg), "http://127.0.0.1:"+port+"/"
			other := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))

			delivered := webhook.Outcome{Kind: webhook.Delivered, Status: 204}
			refused := webhook.Outcome{Kind: webhook.Retry, Status: 401, Reason: "The receiver answered 401."}
			require.Equal(t, refused, s.Send(t.Context(), to(t, address, other), settled), "the secret of another")
			require.Equal(t, delivered, s.Send(t.Context(), to(t, address), settled))
			require.Equal(t, delivered, s.Send(t.Context(), to(t, address, other, secretText), settled), "while the secret is replaced")
			second := settled
			second.ID, second.Type = "msg_2", "approval.withdrawn"
			require.Equal(t, delivered, s.Send(t.Context(), to(t, address), second))
			require.Equal(t, "approval.settled apr_1", lines(), "once")
			require.Equal(t, "approval.withdrawn apr_1", lines())

			now = now.Add(-time.Hour)
			require.Equal(t, refused, s.Send(t.Context(), to(t, address), settled), "an old message")
		})
	}
}

// run starts the receiver of this language and returns its port and what it prints.
func run(t *testing.T, program, language string) (port string, line func() string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/webhooks.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	modules, err := filepath.Abs("testdata/receiver/node_modules")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	script := filepath.Join(dir, "receiver.mjs")
	require.NoError(t, os.WriteFile(script, block[1], 0o600))

	cmd := exec.CommandContext(t.Context(), program, script)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secretText, "PORT=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	scanner := bufio.NewScanner(out)
	line = func() string {
		require.True(t, scanner.Scan(), "the receiver ended")
		return scanner.Text()
	}
	word, port, _ := strings.Cut(line(), " ")
	require.Equal(t, "port", word)
	return port, line
}
