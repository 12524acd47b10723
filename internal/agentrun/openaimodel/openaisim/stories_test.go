package openaisim_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

const (
	q1   = "reports/2023-q1-sales.txt"
	q2   = "reports/2023-q2-sales.txt"
	q1of = "reports/2026-q1-sales.txt"
)

func demoTools(names ...string) []openai.Tool {
	var tools []openai.Tool
	for _, name := range names {
		tools = append(tools, openai.Tool{Type: "function", Function: &openai.FunctionDefinition{
			Name: name, Parameters: json.RawMessage(`{"type":"object"}`),
		}})
	}
	return tools
}

// play runs a prompt to its last text, answering calls with answer, and
// returns the calls of each turn as "name args".
func play(t *testing.T, parallel bool, prompt string, answer func(name, path string) string) (turns []string, final string) {
	t.Helper()
	_, client, _ := start(t, openaisim.DemoStories()...)
	request := openai.ChatCompletionRequest{
		Model: "scripted", ParallelToolCalls: parallel,
		Messages: []openai.ChatCompletionMessage{{Role: "user", Content: prompt}},
		Tools:    demoTools("list_files", "read_file", "delete_file", "write_file", "send_email", "issue_refund", "start_export"),
	}
	for range 20 {
		m, _, err := gather(t, client, request)
		require.NoError(t, err)
		request.Messages = append(request.Messages, m)
		if len(m.ToolCalls) == 0 {
			return turns, m.Content
		}
		var said []string
		for _, call := range m.ToolCalls {
			var args map[string]any
			require.NoError(t, json.Unmarshal([]byte(call.Function.Arguments), &args))
			path, _ := args["path"].(string)
			said = append(said, strings.TrimSpace(call.Function.Name+" "+path))
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{
				Role: "tool", ToolCallID: call.ID, Content: answer(call.Function.Name, path),
			})
		}
		turns = append(turns, strings.Join(said, ", "))
	}
	t.Fatal("the story does not end")
	return nil, ""
}

var listings = map[string]string{
	"array":   `["` + q1 + `","` + q2 + `","` + q1of + `"]`,
	"objects": `{"count":3,"files":[{"path":"` + q1 + `","bytes":12},{"path":"` + q2 + `"},{"path":"` + q1of + `"}]}`,
	"lines":   "3 files:\n- " + q1 + " (1.2 KB)\n- " + q2 + "\n- " + q1of + "\n",
}

func TestCleanUp(t *testing.T) {
	for name, listing := range listings {
		for _, parallel := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				turns, final := play(t, parallel, "<@U1> please clean up the old reports!", func(name, path string) string {
					switch {
					case name == "list_files":
						return listing
					case name == "read_file":
						return "Sales of " + path
					case path == q1:
						return "Deleted " + path + "."
					}
					return `The tool call was denied: "Keep it, it was deleted once already"`
				})
				if parallel {
					require.Equal(t, []string{
						"list_files", "read_file " + q1 + ", read_file " + q2, "delete_file " + q1 + ", delete_file " + q2,
					}, turns)
				}
				require.Equal(t, "list_files", turns[0])
				require.False(t, slices.ContainsFunc(turns, func(s string) bool { return strings.Contains(s, "2026") }))
				require.Contains(t, final, "- "+q1+": deleted.")
				require.Contains(t, final, "- "+q2+`: not deleted. The tool answered: The tool call was denied: "Keep it`)
			})
		}
	}
}

func TestWhatIsClaimedOfACall(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"done":             {"Deleted " + q1, "deleted."},
		"done, in JSON":    {`{"deleted":true,"path":"` + q1 + `"}`, "deleted."},
		"ok":               {`{"ok":true}`, "deleted."},
		"denied":           {"The tool call was denied.", "not deleted. The tool answered: The tool call was denied."},
		"denied, in JSON":  {`{"kind":"tool-denied","message":"no"}`, "not deleted. The tool answered: no"},
		"expired":          {"The approval expired before enough people approved.", "not deleted. The tool answered: The approval expired"},
		"in doubt":         {"It is not known whether the file was deleted.", "The tool answered: It is not known"},
		"failed":           {`{"error":"disk full"}`, `The tool answered: {"error":"disk full"}`},
		"another file":     {"Deleted reports/other.txt", "The tool answered: Deleted reports/other.txt"},
		"a quoted success": {`The tool call was denied: "deleted ok"`, "not deleted."},
		"empty":            {"", "The tool answered nothing."},
		"long":             {"x " + strings.Repeat("ä", 400), "The tool answered: x " + strings.Repeat("ä", 298) + "… (cut)"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := story(t, "clean up").Turn(openaisim.Conversation{
				Tools: []string{"list_files", "read_file", "delete_file"},
				Results: []openaisim.Result{
					{Name: "list_files", Args: "{}", Content: listings["array"]},
					{Name: "read_file", Args: `{"path":"` + q1 + `"}`, Content: "Sales were expired by a call."},
					{Name: "read_file", Args: `{"path":"` + q2 + `"}`, Content: "The tool call was denied."},
					{Name: "delete_file", Args: `{"path":"` + q1 + `"}`, Content: tc.answer},
				},
			})
			require.Empty(t, reply.Calls)
			require.Contains(t, reply.Text, "- "+q2+": not read")
			require.NotContains(t, reply.Text, "- "+q1+": not read")
			require.Contains(t, reply.Text, "- "+q1+": "+tc.want)
		})
	}
}

func story(t *testing.T, name string) openaisim.Story {
	t.Helper()
	stories := openaisim.DemoStories()
	i := slices.IndexFunc(stories, func(s openaisim.Story) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0)
	return stories[i]
}

func TestNothingOldIsNothingToDo(t *testing.T) {
	turns, final := play(t, true, "clean up the old reports", func(string, string) string { return q1of })
	require.Equal(t, []string{"list_files"}, turns)
	require.Contains(t, final, "changed nothing")
}

func TestSummarize(t *testing.T) {
	turns, final := play(t, true, "write a summary of the reports", func(name, path string) string {
		switch name {
		case "list_files":
			return listings["lines"] + "reports/summary.txt"
		case "read_file":
			return `{"content":"Sales of ` + path + `\nup"}`
		}
		return "Wrote 120 bytes to " + path
	})
	require.Equal(t, []string{
		"list_files", "read_file " + q1 + ", read_file " + q2 + ", read_file " + q1of, "write_file reports/summary.txt",
	}, turns)
	require.Equal(t, "reports/summary.txt: written.", final)
}

func TestEmailRefundExportAndHelp(t *testing.T) {
	turns, final := play(t, true, "Email the team", func(string, string) string { return "The message was sent." })
	require.Equal(t, []string{"send_email"}, turns)
	require.Equal(t, "The email to team@example.com: sent.", final)

	turns, final = play(t, true, "refund the 48 euros of order 1042", func(string, string) string { return "Refunded 48.00 EUR of order 1042." })
	require.Equal(t, []string{"issue_refund"}, turns)
	require.Equal(t, "I requested the refund of order 1042. The tool answered: Refunded 48.00 EUR of order 1042.", final, "what ran, not what was asked for")
	_, final = play(t, true, "refund the 48 euros of order 1042", func(string, string) string { return "The tool call was denied." })
	require.Equal(t, "Order 1042 was not refunded. The tool answered: The tool call was denied.", final)

	turns, final = play(t, true, "wait for the export", func(string, string) string { return `{"url":"https://example.com/1"}` })
	require.Equal(t, []string{"start_export"}, turns)
	require.Equal(t, `The export is done. The tool answered: {"url":"https://example.com/1"}`, final)

	turns, final = play(t, true, "What can you do?", nil)
	require.Empty(t, turns)
	require.Contains(t, final, "scripted model")
	require.Contains(t, final, "send_email")
}

func TestAStoryNeedsItsTools(t *testing.T) {
	for _, s := range openaisim.DemoStories() {
		require.True(t, s.Match("Hey <@U1|bot>, "+strings.ToUpper(s.Prompt)))
		reply := s.Turn(openaisim.Conversation{})
		require.Empty(t, reply.Calls)
		require.NotEmpty(t, reply.Text)
	}
}
