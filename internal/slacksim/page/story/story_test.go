package story_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStory drives the pages of the demo in a browser. Each story has a demo of its own.
func TestStory(t *testing.T) {
	node, chromium, modules := needs(t)
	browser := startBrowser(t, node, "MODULES="+modules, "CHROMIUM="+chromium)
	bot := filepath.Join(t.TempDir(), "bot")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bot, "github.com/countersign/countersign/cmd/bot")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := build.CombinedOutput()
	require.NoError(t, err, "build the bot: %s", out)

	cards, err := filepath.Abs("../../../slackui/testdata")
	require.NoError(t, err)
	for name, story := range map[string]string{
		"with the mouse, from typing to the deleted file":  "withTheMouse",
		"with the keyboard alone":                          "withTheKeyboard",
		"on a phone, in the dark":                          "onAPhoneInTheDark",
		"hostile text stays text":                          "hostileText",
		"what is unread, and direct messages":              "unread",
		"a guest is refused, and told what to do":          "aGuest",
		"the workspace stops and is there again":           "stopped",
		"a refund that three groups sign and one corrects": "aRefund",
		"several calls signed from one list":               "severalAtOnce",
		"more requests than a channel has room for":        "tooMany",
		"what a coding agent asks at its prompt":           "aTerminalPrompt",
		"every block and element":                          "everyElement",
		"every form that the bot draws, on a phone":        "everyForm",
		"every card that the bot draws, on a phone":        "everyCard",
		"the chat on the web, beside its Slack":            inChat,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one of them waits for a minute that Slack wants
			folder := t.TempDir()
			page, token := startDemo(t, bot, folder)
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			script := "story.mjs"
			if story == inChat {
				script = "chat.mjs"
			}
			cmd := exec.CommandContext(ctx, node, script)
			cmd.Env = append(os.Environ(), "STORY="+story, "PAGE="+page, "TOKEN="+token, "FOLDER="+folder, "CARDS="+cards,
				"MODULES="+modules, "BROWSER="+browser, "SHOTS="+os.Getenv("STORY_SHOTS"))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// inChat is the story of the page of package chat.
const inChat = "inChat"

// needs finds what the story runs on. What is missing fails the test: a
// story that was skipped would prove nothing.
func needs(t *testing.T) (node, chromium, modules string) {
	t.Helper()
	node, err := exec.LookPath("node")
	require.NoError(t, err, "The browser story needs Node.js 20 or later on the PATH; `make deps` installs it.")
	chromium = os.Getenv("CHROMIUM")
	if chromium == "" {
		chromium = "/usr/bin/chromium"
	}
	require.FileExists(t, chromium, "The browser story needs Chromium: `make deps` installs it, or CHROMIUM names another.")
	modules, err = filepath.Abs("../web/package.json")
	require.NoError(t, err)
	require.DirExists(t, "../web/node_modules/playwright-core", "The browser story needs the page's npm packages: `make deps` installs them.")
	return node, chromium, modules
}

// startBrowser starts the browser of all stories, ends it with the test, and returns its
// address.
func startBrowser(t *testing.T, node string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), node, "browser.mjs")
	cmd.Env = append(os.Environ(), env...)
	var log bytes.Buffer
	cmd.Stderr = &log
	until, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = until.Close()
		require.NoError(t, cmd.Wait(), "the browser ends cleanly; it said:\n%s", log.String())
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the browser did not say where it is; it said:\n%s", &log)
	return strings.TrimSpace(address)
}

var (
	address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	secret  = regexp.MustCompile(`token: (xoxb-\w+)\)`)
)

// startDemo runs `bot demo` on a free port and ends it with the test. It
// returns the address of the page and the token of the app.
func startDemo(t *testing.T, bot, folder string) (page, token string) {
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
		if found := secret.FindSubmatch(said); found != nil {
			return string(address.Find(said)), string(found[1])
		}
		require.NoError(t, err, "the demo did not say where it is: %s", said)
	}
}
