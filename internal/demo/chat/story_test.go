package chat_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStory has both pages of the demo open in a browser.
func TestStory(t *testing.T) {
	node, err := exec.LookPath("node")
	require.NoError(t, err, "The browser story needs Node.js 20 or later on the PATH; `make deps` installs it.")
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		chromium = "/usr/bin/chromium"
	}
	require.FileExists(t, chromium, "The browser story needs Chromium: `make deps` installs it, or CHROMIUM names another.")
	page, err := filepath.Abs("../../slacksim/page/web/package.json")
	require.NoError(t, err)
	require.DirExists(t, "../../slacksim/page/web/node_modules/playwright-core", "The browser story needs the page's npm packages: `make deps` installs them.")

	bot := filepath.Join(t.TempDir(), "bot")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bot, "github.com/countersign/countersign/cmd/bot")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := build.CombinedOutput()
	require.NoError(t, err, "build the bot: %s", out)
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "story.mjs")
	cmd.Env = append(os.Environ(), "PAGE="+startDemo(t, bot, folder), "FOLDER="+folder, "MODULES="+page, "CHROMIUM="+chromium, "SHOTS="+os.Getenv("STORY_SHOTS"))
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

var address = regexp.MustCompile(`Open +(http://127\.0\.0\.1:\d+)\n`)

// startDemo runs `bot demo` on a free port, ends it with the test, and returns the
// address of its page.
func startDemo(t *testing.T, bot, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), bot, "demo", "--addr", "127.0.0.1:0", "--folder", folder)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		require.NoError(t, cmd.Wait(), "the demo ends cleanly; it logged:\n%s", log.String())
		if t.Failed() {
			t.Logf("the demo logged:\n%s", log.String())
		}
	})
	var said []byte
	for chunk := make([]byte, 1024); ; {
		n, err := stdout.Read(chunk)
		said = append(said, chunk[:n]...)
		if found := address.FindSubmatch(said); found != nil {
			return string(found[1])
		}
		require.NoError(t, err, "the demo did not say where it is: %s", said)
	}
}
