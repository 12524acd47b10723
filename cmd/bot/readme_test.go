package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walk returns the numbered steps of the README's walk through the demo, each
// as one line.
func walk(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## See it\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)^\d\. (.*\n(?:   .*\n)*)`).FindAllStringSubmatch(section, -1) {
		steps = append(steps, strings.Join(strings.Fields(m[1]), " "))
	}
	return steps
}

// A page that nothing leads to is not read.
func TestTheReadmeLeadsToEveryPageOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, p := range pages {
		require.Contains(t, string(text), "(docs/"+filepath.Base(p))
	}
}

// TestStoryOfTheReadme takes the README at its word: what is here beside each
// of its steps does the step, and looks at what it says.
func TestStoryOfTheReadme(t *testing.T) {
	t.Parallel()
	s, folder := startDemo(t)
	first, second := filepath.Join(folder, "reports", "2023-q1-sales.txt"), filepath.Join(folder, "reports", "2023-q2-sales.txt")
	var root string
	var card message
	newest := func(what string, ok func(message) bool) {
		t.Helper()
		card = s.await(bob, root, what, func(m message) bool { return m.TS == card.TS && ok(m) })
	}
	steps := []struct {
		says string
		do   func()
	}{
		{"You are Alice, in #ops. Send `@countersign clean up the old reports`, one of the suggested messages. " +
			"The agent lists and reads files. Then a card in the thread asks for approval on two calls of `delete_file`.", func() {
			var state struct{ Suggestions []string }
			s.do("GET", "/sim/state", nil, &state)
			require.Contains(t, state.Suggestions, "@countersign "+cleanUp)
			root = s.ask(cleanUp, "")
			card = s.await(alice, root, "the card", says("delete_file", "2023-q1-sales.txt", "2023-q2-sales.txt"))
			require.Equal(t, 2, strings.Count(everyButton(card), "Approve"))
		}},
		{"Switch to Dave, who is in no group, press Approve on the first call, and confirm: a deletion can't be undone, so Slack asks once more. " +
			"The bot tells Dave, and nobody else, who can approve it. Nothing changes.", func() {
			require.Contains(t, fmt.Sprint(card.Blocks), "This can't be undone.", "the dialog before a deletion")
			require.Empty(t, s.click(dave, card, "2023-q1", "Approve").VisibleError)
			refusal := s.await(dave, root, "the refusal", func(m message) bool { return m.Ephemeral })
			require.Contains(t, everyText(map[string]any{"text": refusal.Text})+refusal.words(), "S0SRE")
			for _, m := range s.thread(bob, root) {
				require.False(t, m.Ephemeral, "only Dave is told")
			}
			require.Equal(t, 2, strings.Count(everyButton(card), "Approve"), "nothing changes")
		}},
		{"Switch to Bob, who is in @sre, and approve the first call in the same way. The card shows his name. " +
			"Nothing is deleted yet: the agent continues when both calls are decided.", func() {
			require.Empty(t, s.click(bob, card, "2023-q1", "Approve").VisibleError)
			newest("his name", says("Approved", bob))
			require.FileExists(t, first)
		}},
		{"Deny the second call, with a reason. Now the first file is deleted, the second is not, and no buttons are left on the card.", func() {
			require.Empty(t, s.click(bob, card, "2023-q2", "Deny").VisibleError)
			views := s.views(bob)
			require.Len(t, views, 1)
			s.submit(bob, views[0], "Legal still needs it")
			s.await(bob, root, "the answer", says("2023-q1-sales.txt: deleted"))
			require.NoFileExists(t, first)
			require.FileExists(t, second)
			newest("no buttons", func(m message) bool { return everyButton(m) == "" })
		}},
		{"Switch back to Alice. The agent has answered in the thread, with Bob's reason.", func() {
			s.await(alice, root, "the answer", says("2023-q1-sales.txt: deleted", "Legal still needs it"))
		}},
	}
	written := walk(t)
	require.Len(t, written, len(steps))
	for i, step := range steps {
		require.Equal(t, written[i], step.says)
		step.do()
	}
}

// everyButton is the texts of the buttons of the message.
func everyButton(m message) string {
	var all []string
	for _, b := range m.buttons("") {
		all = append(all, b.text)
	}
	return strings.Join(all, " ")
}
