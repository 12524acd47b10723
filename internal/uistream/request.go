package uistream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// The limits of a request. A history grows with each turn, and is only compared
// with what is stored.
const (
	maxBody     = 4 << 20
	maxDepth    = 80
	shownDepth  = 64 // of what a client sends back within its history
	maxMessages = 2000
	maxParts    = 2000
	maxText     = 40_000
	maxSystem   = 20_000
	maxFaults   = 20
)

// The triggers of a request.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
)

// A request is what a client posts.
type request struct {
	Chat     string
	Trigger  string
	Messages []message
	Dialect  string // of the body; a header goes before it
	Follow   *bool  // likewise
}

// A message is one of the history that a client sends.
type message struct {
	ID    string
	Role  string
	Parts []part
}

// A part is as much of a part of a message as is looked at. What has a type that
// is not known has only that.
type part struct {
	Type     string
	Text     string
	Tool     string // the name, of a call
	CallID   string
	State    string
	Input    json.RawMessage
	Approval *approvalPart
}

// An approvalPart is what a client says of the approval of a call.
type approvalPart struct {
	ID       string
	Approved *bool
	Reason   string
}

// A fault is what is wrong with a request at one place, as a JSON pointer.
type fault struct {
	At      string `json:"at"`
	Problem string `json:"problem"`
}

// A reader collects what is wrong with a request.
type reader struct{ faults []fault }

func (r *reader) wrong(at, format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fault{At: at, Problem: fmt.Sprintf(format, args...)})
	}
}

// into decodes a value, if it is there, and reports whether it was. Null is as
// if it were left out.
func (r *reader) into(raw json.RawMessage, at, want string, v any) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, v) != nil {
		r.wrong(at, "must be %s", want)
		return false
	}
	return true
}

// readRequest reads the body of a client. Keys that are not known are ignored:
// applications add their own, and so do newer clients.
func readRequest(body []byte) (request, []fault) {
	var r reader
	var q request
	if err := approvals.CheckJSON(body, maxDepth); err != nil {
		r.wrong("", "must be JSON: %s", strings.TrimPrefix(err.Error(), approvals.ErrInvalid.Error()+" JSON "))
		return q, r.faults
	}
	var wire map[string]json.RawMessage
	if !r.into(body, "", "an object", &wire) {
		if len(r.faults) == 0 { // it is null
			r.wrong("", "must be an object")
		}
		return q, r.faults
	}
	if r.into(wire["id"], "/id", "a text", &q.Chat); !chatIDOK(q.Chat) && len(r.faults) == 0 {
		r.wrong("/id", "must have 1 to %d letters, digits and -_.:", maxChatID)
	}
	if !r.into(wire["trigger"], "/trigger", "a text", &q.Trigger) {
		q.Trigger = triggerSubmit
	}
	if q.Trigger != triggerSubmit && q.Trigger != triggerRegenerate {
		r.wrong("/trigger", "must be %s or %s", triggerSubmit, triggerRegenerate)
	}
	r.into(wire["sdk"], "/sdk", "a text", &q.Dialect)
	r.into(wire["follow"], "/follow", "true or false", &q.Follow)
	var all []json.RawMessage
	switch {
	case wire["messages"] != nil:
		r.into(wire["messages"], "/messages", "a list", &all)
	case wire["message"] != nil:
		all = []json.RawMessage{wire["message"]}
	}
	switch {
	case len(all) == 0 && len(r.faults) == 0:
		r.wrong("/messages", "must have at least one message")
	case len(all) > maxMessages:
		r.wrong("/messages", "must have at most %d messages", maxMessages)
		return q, r.faults
	}
	at := func(i int) string {
		if wire["messages"] == nil {
			return "/message"
		}
		return fmt.Sprintf("/messages/%d", i)
	}
	for i, raw := range all {
		q.Messages = append(q.Messages, r.message(raw, at(i)))
	}
	if len(r.faults) == 0 {
		r.last(&q, at(len(all)-1))
	}
	return q, r.faults
}

// last checks the message that the request is about.
func (r *reader) last(q *request, at string) {
	last := q.Messages[len(q.Messages)-1]
	switch {
	case last.Role == roleSystem:
		r.wrong(at+"/role", "the last message must be of the user or the assistant")
	case q.Trigger == triggerRegenerate && last.Role != roleUser:
		r.wrong(at+"/role", "only the answer to a message of the user can be made again")
	case last.Role == roleUser && strings.TrimSpace(last.text()) == "":
		r.wrong(at+"/parts", "must have a text")
	case last.Role == roleUser && utf8.RuneCountInString(last.text()) > maxText:
		r.wrong(at+"/parts", "must have at most %d characters of text", maxText)
	}
	if last.Role != roleUser {
		return
	}
	for i, p := range last.Parts {
		if p.Type == "file" { // to leave it out would change what was asked
			r.wrong(fmt.Sprintf("%s/parts/%d", at, i), "files can't be sent to this agent")
		}
	}
}

func (r *reader) message(raw json.RawMessage, at string) message {
	var m message
	var wire map[string]json.RawMessage
	if !r.into(raw, at, "an object", &wire) {
		return m
	}
	r.into(wire["id"], at+"/id", "a text", &m.ID)
	if !r.into(wire["role"], at+"/role", "a text", &m.Role) || !slices.Contains([]string{roleUser, roleAssistant, roleSystem}, m.Role) {
		r.wrong(at+"/role", "must be %s, %s or %s", roleUser, roleAssistant, roleSystem)
	}
	var parts []json.RawMessage
	if !r.into(wire["parts"], at+"/parts", "a list", &parts) {
		r.wrong(at+"/parts", "must be a list")
	}
	if len(parts) > maxParts {
		r.wrong(at+"/parts", "must have at most %d parts", maxParts)
		return m
	}
	for i, p := range parts {
		m.Parts = append(m.Parts, r.part(p, fmt.Sprintf("%s/parts/%d", at, i)))
	}
	return m
}

func (r *reader) part(raw json.RawMessage, at string) part {
	var p part
	var wire map[string]json.RawMessage
	if !r.into(raw, at, "an object", &wire) {
		return p
	}
	if !r.into(wire["type"], at+"/type", "a text", &p.Type) {
		r.wrong(at+"/type", "must be a text")
		return p
	}
	name, isTool := strings.CutPrefix(p.Type, "tool-")
	switch {
	case p.Type == "text":
		if !r.into(wire["text"], at+"/text", "a text", &p.Text) {
			r.wrong(at+"/text", "must be a text")
		}
	case p.Type == "dynamic-tool":
		r.into(wire["toolName"], at+"/toolName", "a text", &p.Tool)
		r.call(&p, wire, at)
	case isTool:
		p.Tool = name
		r.call(&p, wire, at)
	}
	return p
}

// call reads a part that is about a call.
func (r *reader) call(p *part, wire map[string]json.RawMessage, at string) {
	if !r.into(wire["toolCallId"], at+"/toolCallId", "a text", &p.CallID) {
		r.wrong(at+"/toolCallId", "must be a text")
	}
	r.into(wire["state"], at+"/state", "a text", &p.State)
	p.Input = wire["input"]
	approval := wire["approval"]
	if len(approval) == 0 || string(approval) == "null" {
		return
	}
	var a map[string]json.RawMessage
	if !r.into(approval, at+"/approval", "an object", &a) {
		return
	}
	p.Approval = &approvalPart{}
	r.into(a["id"], at+"/approval/id", "a text", &p.Approval.ID)
	r.into(a["approved"], at+"/approval/approved", "true or false", &p.Approval.Approved)
	r.into(a["reason"], at+"/approval/reason", "a text", &p.Approval.Reason)
	if p.State == stateResponded && p.Approval.Approved == nil {
		r.wrong(at+"/approval/approved", "must be true or false")
	}
}

// The states of a part about a call, of those that are looked at.
const (
	stateStreaming = "input-streaming"
	stateAvailable = "input-available"
	stateRequested = "approval-requested"
	stateResponded = "approval-responded"
	stateOutput    = "output-available"
	stateError     = "output-error"
	stateDenied    = "output-denied"
)

// text is what the person wrote.
func (m message) text() string {
	var all []string
	for _, p := range m.Parts {
		if p.Type == "text" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// system is what the system messages say.
func (q request) system() string {
	var all []string
	for _, m := range q.Messages {
		if m.Role == roleSystem && strings.TrimSpace(m.text()) != "" {
			all = append(all, m.text())
		}
	}
	return strings.Join(all, "\n\n")
}

// call returns the part about a call.
func (m message) call(id approvals.ToolCallID) (part, bool) {
	for _, p := range m.Parts {
		if p.CallID == string(id) && p.Tool != "" {
			return p, true
		}
	}
	return part{}, false
}
