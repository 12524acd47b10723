package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// output is what the program writes, readable while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns the first match of the expression, as soon as it is written.
func (o *output) await(t *testing.T, expression string) string {
	t.Helper()
	re := regexp.MustCompile(expression)
	deadline := time.After(time.Minute)
	for {
		if m := re.FindString(o.String()); m != "" {
			return m
		}
		select {
		case <-o.more:
		case <-deadline:
			require.Fail(t, "not written: "+expression, o.String())
		}
	}
}

// startDemo runs `bot demo` and stops it with the test.
func startDemo(t *testing.T, args ...string) (s *sim, folder string) {
	t.Helper()
	folder = t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	stdout, stderr := newOutput(), newOutput()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"demo", "--addr", "127.0.0.1:0", "--folder", folder}, args...), nil, stdout, stderr)
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended, "the demo ends cleanly; it logged:\n%s", stderr)
		require.NotContains(t, stderr.String(), "level=ERROR")
		require.NotContains(t, stderr.String(), "xoxb-", "no token is logged")
	})
	return newSim(t, stdout.await(t, `http://127\.0\.0\.1:\d+`)), folder
}

// TestStory is the demo's story, as people would live it, over HTTP only.
func TestStory(t *testing.T) {
	t.Parallel()
	s, folder := startDemo(t)
	first, second := filepath.Join(folder, "reports", "2023-q1-sales.txt"), filepath.Join(folder, "reports", "2023-q2-sales.txt")

	root := s.ask(cleanUp, "")
	card := s.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	require.Contains(t, card.words(), alice, "the card says who asks")
	require.FileExists(t, first)
	require.FileExists(t, second)

	// Dave is in no group: he is told so, and nobody else sees it.
	require.Empty(t, s.click(dave, card, "2023-q1", "Approve").VisibleError)
	s.await(dave, root, "the refusal", func(m message) bool {
		return m.Ephemeral && strings.Contains(m.words(), "You can't approve this. Nothing changed.")
	})
	for _, m := range s.thread(bob, root) {
		require.False(t, m.Ephemeral, "Bob sees what only Dave was told: %s", m.words())
	}

	// Bob approves the first and denies the second with a reason.
	approve := card.buttons("2023-q1")
	require.Empty(t, s.click(bob, card, "2023-q1", "Approve").VisibleError)
	card = s.await(bob, root, "one approved", func(m message) bool {
		return m.TS == card.TS && len(m.buttons("2023-q1")) < len(approve) && len(m.buttons("2023-q2")) > 0
	})
	require.FileExists(t, first, "nothing runs before all are decided")

	// A second click on the settled call, from a screen that has not caught up.
	require.Empty(t, s.press(carol, card.TS, approve[0]).VisibleError)
	s.await(carol, root, "that it is settled", func(m message) bool { return m.Ephemeral && strings.Contains(m.words(), "Already approved") })

	require.Empty(t, s.click(bob, card, "2023-q2", "Deny").VisibleError)
	views := s.views(bob)
	require.Len(t, views, 1)
	s.submit(bob, views[0], "Legal still needs it <!channel>")

	answer := s.await(alice, root, "the answer", says("reports/2023-q1-sales.txt: deleted", "2023-q2-sales.txt"))
	require.Contains(t, answer.words(), "Legal still needs it")
	require.NotContains(t, answer.Text, "<!channel>", "nothing pings by injection")
	require.NoFileExists(t, first)
	require.FileExists(t, second)
	require.FileExists(t, filepath.Join(folder, "reports", "2026-q1-sales.txt"))

	card = s.await(bob, root, "the decided card", func(m message) bool { return m.TS == card.TS && len(m.buttons("")) == 0 })
	for _, want := range []string{bob, "Legal still needs it", "2023-q1-sales.txt"} {
		require.Contains(t, card.words(), want)
	}
}

func TestStoryOfASlashCommandAndAnotherMention(t *testing.T) {
	t.Parallel()
	s, _ := startDemo(t)
	root := s.ask(cleanUp, "")
	s.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))

	var offered struct{ Commands []string }
	s.do(http.MethodGet, "/sim/state", nil, &offered)
	require.Equal(t, []string{"/countersign"}, offered.Commands, "what the composer of the page offers")
	var list map[string]any
	s.do(http.MethodPost, "/sim/command", map[string]string{"user": bob, "channel": ops, "command": "/countersign", "text": "list"}, &list)
	require.Contains(t, everyText(list), "Delete reports/2023-q1-sales.txt")

	// While people decide, the thread is busy: what someone else asks waits,
	// and says so.
	next := s.askAs(bob, "what can you do?", root)
	s.await(alice, root, "that it waits", func(m message) bool { return strings.HasPrefix(m.words(), "Queued") && m.TS > next })

	card := s.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	require.Empty(t, s.click(bob, card, "2023-q1", "Approve").VisibleError)
	card = s.await(bob, root, "one approved", func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 })
	require.Empty(t, s.click(bob, card, "2023-q2", "Approve").VisibleError)
	s.await(alice, root, "the answer", says("reports/2023-q1-sales.txt: deleted", "reports/2023-q2-sales.txt: deleted"))
	s.await(alice, root, "the next answer", func(m message) bool { return m.TS > next && strings.Contains(m.words(), "clean up the old reports") })
}

// TestStoryOfSomethingNew: what the person who asked writes next ends what
// still waits, and nothing of it runs.
func TestStoryOfSomethingNew(t *testing.T) {
	t.Parallel()
	s, folder := startDemo(t)
	root := s.ask(cleanUp, "")
	s.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	next := s.ask("what can you do?", root)
	s.await(alice, root, "the answer", func(m message) bool { return m.TS > next && strings.Contains(m.words(), "I can clean up") })
	card := s.await(bob, root, "the card without buttons", says("Superseded", "sent a newer message before it was decided"))
	require.Empty(t, card.buttons("2023-q1"))
	require.FileExists(t, filepath.Join(folder, "reports", "2023-q1-sales.txt"))
}

// everyText is every string below v.
func everyText(v any) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return b.String()
}

func TestHelpAndMisspellings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, nil, &out, &out))
	require.Contains(t, out.String(), "bot demo")
	err := run(t.Context(), []string{"serve", "--config", "missing.yaml"}, []string{}, &out, &out)
	require.ErrorContains(t, err, "missing.yaml")
	require.ErrorContains(t, err, "SLACK_BOT_TOKEN", "everything is said at once")
}

func TestTheFolderOfTheDemoGoesWithIt(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr := newOutput(), newOutput()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "--addr", "127.0.0.1:0"}, nil, stdout, stderr) }()
	stdout.await(t, `Files `)
	stop()
	require.NoError(t, <-ended, stderr.String())
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStoryOfARefund: three groups must agree, and the amount is wrong. Whoever
// corrects it clears what was approved before, and what runs is what was approved
// at the end.
func TestStoryOfARefund(t *testing.T) {
	t.Parallel()
	s, folder := startDemo(t)
	root := s.ask("refund the 48 euros of order 1042", "")
	card := s.await(bob, root, "the card", says("issue_refund", "48000", "Money leaves the company", "operations", "finance", "security"))
	require.Empty(t, s.click(bob, card, "", "Approve").VisibleError)
	card = s.await(frank, root, "that someone signed", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.words(), ": 1 of 1 approval")
	})

	// Frank is in @finance: he corrects the amount.
	require.Empty(t, s.click(frank, card, "", "Edit").VisibleError)
	s.edit(frank, "48000", "4800")
	card = s.await(bob, root, "the corrected card", func(m message) bool {
		return m.TS == card.TS && says("no longer counts", "48000 → 4800", "finance\n: 1 of 1 approval")(m)
	})
	require.NoDirExists(t, filepath.Join(folder, "refunds"))
	for _, user := range []string{bob, carol} {
		require.Empty(t, s.click(user, card, "", "Approve").VisibleError)
	}
	s.await(alice, root, "the answer", says("Refunded 48.00 EUR of order 1042"))
	files, err := filepath.Glob(filepath.Join(folder, "refunds", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	written, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(written), `"cents": 4800,`)
}
