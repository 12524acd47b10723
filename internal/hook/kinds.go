package hook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Kind is an agent, by how it asks.
type Kind string

// The kinds.
const (
	ClaudeCode Kind = "claude-code"
	Codex      Kind = "codex"
	Cursor     Kind = "cursor"
	VSCode     Kind = "vscode"
	Gemini     Kind = "gemini"
)

// Kinds lists the kinds for people.
func Kinds() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(forms)) {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// A form is how one kind of agent asks and is answered.
type form struct {
	hold  time.Duration     // with grace and [leaving], less than the agent waits without a setting
	grace time.Duration     // how long the answer may take after the hold; see [margin]
	edits bool              // it runs changed input
	exact func(string) bool // of which tools the answer names the input that people approved, because another hook may change it
	read  func(map[string]json.RawMessage) (question, error)
	write func(question, verdict) ([]byte, error)
}

// forms are all kinds. testdata/kinds.json has an example of each, and says which
// were seen from the real program.
var forms = map[Kind]form{
	ClaudeCode: {9 * time.Minute, 12 * time.Second, true, func(tool string) bool { return !AsksItsPerson(tool) }, readClaude, writeClaude},
	// The question of Codex has the directory of the command only since about 0.169.0, and not
	// its own version: nobody can say where it runs.
	Codex:  {9 * time.Minute, 12 * time.Second, true, func(string) bool { return true }, readCodex, writeCodex},
	Cursor: {50 * time.Second, 6 * time.Second, false, nil, readCursor, writeCursor},
	VSCode: {25 * time.Second, 2 * time.Second, true, nil, readVSCode, writeVSCode},
	// Gemini CLI takes the input of the last of its hooks that names one, in their order.
	Gemini: {50 * time.Second, 6 * time.Second, true, func(string) bool { return true }, readGemini, writeGemini},
}

// AsksItsPerson reports whether a tool of Claude Code may need the person at the terminal.
// Then updatedInput in the answer of a hook counts as what that person answers:
// https://github.com/anthropics/claude-code/issues/39620. A server of MCP can say so of any
// of its tools, with _meta["anthropic/requiresUserInteraction"].
func AsksItsPerson(tool string) bool {
	return tool == "AskUserQuestion" || tool == "ExitPlanMode" || strings.HasPrefix(tool, "mcp__")
}

// fields reads texts by their names.
func fields(doc map[string]json.RawMessage, to map[string]*string) error {
	for key, into := range to {
		if raw, there := doc[key]; there && !bytes.Equal(raw, []byte("null")) && json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("%s in the question is no text", key)
		}
	}
	return nil
}

// whole checks that a question that decides has all its parts.
func (q question) whole(input json.RawMessage) (question, error) {
	if !q.decides {
		if q.outcome != "" && q.session == "" {
			return q, errors.New("the question names no session")
		}
		if len(input) > 0 {
			q.input, _ = compact(input) // only compared
		}
		return q, nil
	}
	if q.session == "" || q.tool == "" {
		return q, errors.New("the question names no session or no tool")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")) {
		return q, errors.New("the input of the tool is no JSON object")
	}
	var err error
	q.input, err = compact(input)
	return q, err
}

func readClaude(doc map[string]json.RawMessage) (question, error) {
	var q question
	var failure, reason string
	err := fields(doc, map[string]*string{
		"hook_event_name": &q.event, "session_id": &q.session, "tool_use_id": &q.use, "tool_name": &q.tool, "cwd": &q.cwd,
		"error": &failure, "reason": &reason,
	})
	if err != nil {
		return q, err
	}
	var server struct{ Name string }
	if raw, there := doc["mcp_server"]; there && json.Unmarshal(raw, &server) != nil {
		return q, errors.New("mcp_server in the question is no object")
	}
	q.server, q.reason = server.Name, SubAgent(doc)
	switch q.event {
	case "":
		return q, errors.New("the question does not name its event")
	case "PreToolUse":
		q.decides = true
	case "PostToolUse":
		q.outcome, q.response = "ran", textOf(doc["tool_response"])
	case "PostToolUseFailure":
		q.outcome, q.response = "failed", failure
	case "PermissionDenied":
		q.outcome, q.response = "not_run", reason
	case "SessionEnd":
		q.outcome = "ended"
	case "PermissionRequest": // is no gate: it is not sent for what a rule allows
	default:
		if err := undecided(q.event, doc); err != nil {
			return q, err
		}
	}
	return q.whole(doc["tool_input"])
}

// SubAgent says which sub-agent of Claude Code or Codex a question is from, or nothing if it
// is from none. With `claude --agent`, the main agent has a type and no id.
func SubAgent(doc map[string]json.RawMessage) string {
	var id, kind string
	if json.Unmarshal(doc["agent_id"], &id) != nil || id == "" {
		return ""
	}
	if json.Unmarshal(doc["agent_type"], &kind) != nil || kind == "" {
		return fmt.Sprintf("A sub-agent (id %s) made this call.", quoted(id))
	}
	return fmt.Sprintf("The sub-agent %s (id %s) made this call.", quoted(kind), quoted(id))
}

// quoted is a name in quotation marks. A long one is cut.
func quoted(name string) string {
	if r := []rune(name); len(r) > 100 {
		name = string(r[:100]) + "…"
	}
	return strconv.Quote(name)
}

// undecided refuses an event that is not known and names a tool that has no result:
// a tool may run by its answer. It is that of another kind of agent, or a new one.
func undecided(event string, doc map[string]json.RawMessage) error {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return len(doc[key]) > 0 && string(doc[key]) != "null" })
	}
	if has("tool_name", "tool_input", "command") && !has("tool_response", "tool_output", "output", "result_json", "error") {
		return fmt.Errorf("the event %.40q is not one of this kind of agent; --kind may be wrong", event)
	}
	return nil
}

func textOf(raw json.RawMessage) string {
	var text string
	var doc struct{ Stdout string }
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &doc) == nil && doc.Stdout != "":
		return doc.Stdout
	}
	return string(raw)
}

func readCodex(doc map[string]json.RawMessage) (question, error) {
	q, err := readClaude(doc)
	q.cwd = ""
	return q, err
}

// writeCodex names what runs, or decides nothing: Codex 0.171.0 reports an answer that
// allows a call without its input as a hook that failed, and ignores it.
func writeCodex(q question, v verdict) ([]byte, error) {
	if v.allow && v.input == nil {
		return []byte("{}"), nil
	}
	return writeClaude(q, v)
}

// writeClaude denies and allows as Claude Code and VS Code read it.
func writeClaude(_ question, v verdict) ([]byte, error) {
	type output struct {
		Event    string          `json:"hookEventName"`
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput,omitempty"`
	}
	o := output{"PreToolUse", "deny", v.reason, nil}
	if v.allow {
		o.Decision, o.Input = "allow", v.input
	}
	return encode(struct {
		Output output `json:"hookSpecificOutput"`
	}{o})
}

// readVSCode takes a text for the input, such as the patch of Copilot CLI, as an object
// of one text: a card shows an object.
func readVSCode(doc map[string]json.RawMessage) (question, error) {
	text := doc["tool_input"]
	if !isText(text) {
		return readClaude(doc)
	}
	doc = maps.Clone(doc)
	doc["tool_input"] = slices.Concat([]byte(`{"input":`), text, []byte("}"))
	q, err := readClaude(doc)
	q.text = true
	return q, err
}

// writeVSCode names what people made of a text as a text.
func writeVSCode(q question, v verdict) ([]byte, error) {
	if q.text && v.input != nil {
		doc, err := fieldsOf(v.input)
		if err != nil || len(doc) != 1 || !isText(doc["input"]) {
			return nil, errors.New("people changed the input to something other than one text, which this tool cannot run")
		}
		v.input = doc["input"]
	}
	return writeClaude(q, v)
}

func isText(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) }

func readCursor(doc map[string]json.RawMessage) (question, error) {
	q := question{decides: true}
	var command, address string
	err := fields(doc, map[string]*string{
		"hook_event_name": &q.event, "conversation_id": &q.session, "tool_use_id": &q.use, "tool_name": &q.tool, "cwd": &q.cwd,
		"command": &command, "url": &address,
	})
	if err != nil {
		return q, err
	}
	input := doc["tool_input"]
	switch q.event {
	case "beforeShellExecution":
		q.tool = "Shell"
		if input, err = encode(map[string]string{"command": command}); err != nil {
			return q, err
		}
	case "beforeMCPExecution":
		var text string // the input is JSON in a text
		if json.Unmarshal(input, &text) == nil {
			input = json.RawMessage(text)
		}
		q.tool, q.server = "mcp:"+q.tool, serverAt(address, command)
	case "preToolUse":
	case "":
		return q, errors.New("the question does not name its event")
	default:
		q.decides = false
		if err := undecided(q.event, doc); err != nil {
			return q, err
		}
		if strings.HasPrefix(q.event, "before") {
			return q, fmt.Errorf("the event %.40q is not one that is answered", q.event)
		}
		return q, nil
	}
	return q.whole(input)
}

// serverAt names an MCP server by the host of its address or the program of its command.
// The rest may hold secrets: a digest of the whole tells the server from others.
func serverAt(address, command string) string {
	const most = 200
	whole := strings.TrimSpace(address + " " + command)
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	shown := path.Base(program)
	if address != "" {
		shown = ""
		if u, err := url.Parse(address); err == nil {
			shown = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
		}
	}
	if shown == whole && len(shown) <= most || whole == "" {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	shown = strings.ToValidUTF8(shown[:min(len(shown), most)], "")
	return strings.TrimSpace(shown + " #" + hex.EncodeToString(sum[:8]))
}

func writeCursor(_ question, v verdict) ([]byte, error) {
	doc := map[string]any{"permission": "deny", "user_message": v.reason, "agent_message": v.reason}
	if v.allow {
		doc = map[string]any{"permission": "allow"}
	}
	return encode(doc)
}

func readGemini(doc map[string]json.RawMessage) (question, error) {
	var q question
	err := fields(doc, map[string]*string{
		"hook_event_name": &q.event, "session_id": &q.session, "tool_name": &q.tool, "cwd": &q.cwd,
	})
	if err != nil {
		return q, err
	}
	if q.event == "" {
		return q, errors.New("the question does not name its event")
	}
	var server struct {
		Name string `json:"server_name"`
	}
	if raw, there := doc["mcp_context"]; there && json.Unmarshal(raw, &server) != nil {
		return q, errors.New("mcp_context in the question is no object")
	}
	q.server = server.Name
	if q.decides = q.event == "BeforeTool"; !q.decides {
		if err := undecided(q.event, doc); err != nil {
			return q, err
		}
	}
	return q.whole(doc["tool_input"])
}

func writeGemini(_ question, v verdict) ([]byte, error) {
	doc := map[string]any{"decision": "deny", "reason": v.reason}
	if v.allow {
		doc = map[string]any{"decision": "allow", "reason": v.reason}
		if v.input != nil {
			doc["hookSpecificOutput"] = map[string]any{"hookEventName": "BeforeTool", "tool_input": v.input}
		}
	}
	return encode(doc)
}

func encode(doc any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
