package openaisim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The tools that the demo's stories call, with their arguments: strings, but
// for cents.
const (
	toolList   = "list_files"   // {}
	toolRead   = "read_file"    // {"path"}
	toolDelete = "delete_file"  // {"path"}
	toolWrite  = "write_file"   // {"path", "content"}
	toolEmail  = "send_email"   // {"to", "subject", "body"}
	toolRefund = "issue_refund" // {"order", "customer", "cents", "reason"}
	toolExport = "start_export" // {"folder", "format"}
)

const summaryPath = "reports/summary.txt"

// DemoStories returns what the demo's model understands. The stories find their
// place by what was called and answered, so that a run may stop at any call and
// continue later; they claim of a call only what its answer says.
func DemoStories() []Story {
	return []Story{
		story("clean up", "clean up the old reports", cleanUp, toolList, toolRead, toolDelete),
		story("summarize", "write a summary of the reports", summarize, toolList, toolRead, toolWrite),
		story("email", "email the team", emailTeam, toolEmail),
		story("refund", "refund the 48 euros of order 1042", refund, toolRefund),
		story("export", "wait for the export", awaitExport, toolExport),
		story("help", "what can you do?", whatCanYouDo),
	}
}

// story makes a story that says so when a tool it needs is missing.
func story(name, prompt string, turn func(Conversation) Reply, needs ...string) Story {
	return Story{Name: name, Prompt: prompt, Match: Says(prompt), Turn: func(c Conversation) Reply {
		for _, tool := range needs {
			if !c.Offers(tool) {
				return Reply{Text: fmt.Sprintf("I need the tool %s for this, but I don't have it.", tool)}
			}
		}
		return turn(c)
	}}
}

func cleanUp(c Conversation) Reply {
	listed, ok := c.Last(toolList)
	if !ok {
		return Reply{Text: "I'll look at what reports there are.", Calls: []Call{call(toolList)}}
	}
	if listed.refused() {
		return Reply{Text: "I couldn't list the files. " + listed.told()}
	}
	old := olderYears(listed.fileNames())
	if len(old) == 0 {
		return Reply{Text: "I found no old reports, so I changed nothing."}
	}
	if read := len(c.Named(toolRead)); read < len(old) {
		return Reply{Calls: callEach(toolRead, old[read:])}
	}
	var doomed []string
	for _, r := range c.Named(toolRead) {
		if !r.refused() {
			doomed = append(doomed, r.Arg("path"))
		}
	}
	if asked := len(c.Named(toolDelete)); asked < len(doomed) {
		return Reply{
			Text:  "I read the old reports. I'd like to delete: " + strings.Join(doomed[asked:], ", ") + ".",
			Calls: callEach(toolDelete, doomed[asked:]),
		}
	}
	lines := []string{"This is what happened to the old reports:", ""}
	for _, r := range c.Named(toolRead) {
		if r.refused() {
			lines = append(lines, fmt.Sprintf("- %s: not read, so I did not ask to delete it. %s", r.Arg("path"), r.told()))
		}
	}
	for _, r := range c.Named(toolDelete) {
		lines = append(lines, "- "+r.report(r.Arg("path"), "deleted", "deleted", "removed"))
	}
	return Reply{Text: strings.Join(lines, "\n")}
}

func summarize(c Conversation) Reply {
	if written, ok := c.Last(toolWrite); ok {
		return Reply{Text: written.report(written.Arg("path"), "written", "written", "wrote", "saved", "created")}
	}
	listed, ok := c.Last(toolList)
	if !ok {
		return Reply{Text: "I'll read the reports first.", Calls: []Call{call(toolList)}}
	}
	if listed.refused() {
		return Reply{Text: "I couldn't list the files. " + listed.told()}
	}
	var reports []string
	for _, name := range listed.fileNames() {
		if name != summaryPath {
			reports = append(reports, name)
		}
	}
	if len(reports) == 0 {
		return Reply{Text: "I found no reports to summarize."}
	}
	read := c.Named(toolRead)
	if len(read) < len(reports) {
		return Reply{Calls: callEach(toolRead, reports[len(read):])}
	}
	return Reply{
		Text:  "I read the reports and I'd like to save this summary.",
		Calls: []Call{call(toolWrite, "path", summaryPath, "content", summary(read))},
	}
}

func summary(read []Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Summary of %d reports\n", len(read))
	for _, r := range read {
		if r.refused() {
			fmt.Fprintf(&b, "\n%s\n  not read\n", r.Arg("path"))
			continue
		}
		lines := strings.Split(strings.TrimSpace(r.Text()), "\n")
		fmt.Fprintf(&b, "\n%s\n  lines: %d\n  begins: %s\n", r.Arg("path"), len(lines), cut(strings.TrimSpace(lines[0])))
	}
	return b.String()
}

func emailTeam(c Conversation) Reply {
	if sent, ok := c.Last(toolEmail); ok {
		return Reply{Text: sent.report("The email to "+sent.Arg("to"), "sent", "sent", "delivered")}
	}
	body := []string{
		"Hello everyone,",
		"",
		"the reports folder has grown, and some of what is in it is years old. On Friday I would like to tidy it:",
		"",
		"  1. Reports of past years are deleted, once someone has approved each of them.",
		"  2. What stays gets a summary of one page, in " + summaryPath + ".",
		"  3. Nothing outside the reports folder is touched.",
		"",
		"If you still need one of the old files, please answer before Friday noon.",
		"",
		"This message was composed by a scripted model for a demonstration.",
	}
	return Reply{
		Text: "I wrote a message to the team.",
		Calls: []Call{call(toolEmail, "to", "team@example.com",
			"subject", "Tidying the reports folder on Friday", "body", strings.Join(body, "\n"))},
	}
}

// refund asks for ten times the amount, so that there is something for people
// to correct before they approve.
func refund(c Conversation) Reply {
	if refunded, ok := c.Last(toolRefund); ok {
		if refunded.refused() {
			return Reply{Text: "Order 1042 was not refunded. " + refunded.told()}
		}
		return Reply{Text: "I requested the refund of order 1042. " + refunded.told()}
	}
	return Reply{
		Text: "I'd like to refund order 1042.",
		Calls: []Call{{
			Name: toolRefund,
			Args: `{"order": "1042", "customer": "ada@example.com", "cents": 48000, "reason": "The card was charged twice."}`,
		}},
	}
}

func awaitExport(c Conversation) Reply {
	export, ok := c.Last(toolExport)
	if !ok {
		return Reply{
			Text:  "I'll start the export and wait for it.",
			Calls: []Call{call(toolExport, "folder", "reports", "format", "csv")},
		}
	}
	if export.refused() {
		return Reply{Text: "Nothing was exported. " + export.told()}
	}
	return Reply{Text: "The export is done. " + export.told()}
}

func whatCanYouDo(c Conversation) Reply {
	text := "I am a scripted model, here to show how calls are approved. I can clean up the old reports, " +
		"write a summary of them, email the team, refund an order and wait for an export."
	if len(c.Tools) > 0 {
		text += " I was given these tools: " + strings.Join(c.Tools, ", ") + "."
	}
	return Reply{Text: text}
}

// call makes a call from pairs of argument names and values.
func call(tool string, pairs ...string) Call {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", argument(pairs[i]), argument(pairs[i+1]))
	}
	return Call{Name: tool, Args: "{" + b.String() + "}"}
}

// argument returns s as a JSON string in which nothing is escaped for HTML.
func argument(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // unreachable: every string has a JSON form
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func callEach(tool string, paths []string) []Call {
	var calls []Call
	for _, path := range paths {
		calls = append(calls, call(tool, "path", path))
	}
	return calls
}
