package mcptool

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

const (
	maxResult = agentrun.MaxResult - 4<<10 // what describes the parts has room too
	maxWords  = 4 << 10                    // of an error
	maxLabel  = 500                        // of a name, a type or an address
	maxParts  = 100
)

// A part is one part of a result, as the model reads it. Content that is not
// text is described; no address is ever fetched.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
	Name     string `json:"name,omitempty"`
	Title    string `json:"title,omitempty"`
	URI      string `json:"uri,omitempty"`
	Bytes    int    `json:"bytes,omitempty"`
	SHA256   string `json:"sha256,omitempty"`
	Note     string `json:"note,omitempty"`

	data []byte // not for the model
}

// What a model reads about parts that are not shown.
const (
	noteData    = "The content is not shown."
	noteLink    = "The server names this address; nothing was fetched from it."
	noteUnknown = "A part of a kind that is not known."
)

// notCalled reports whether an error of JSON-RPC says that the tool was not called: the
// message could not be read, or names a method, a tool or arguments that there are not.
func notCalled(code int64) bool {
	switch code {
	case -32700, -32600, -32601, -32602:
		return true
	}
	return false
}

// read says what became of a call by the server's answer. Only a complete result
// that can be read is a success.
func (s Server) read(a *answer) (agentrun.Result, error) {
	if a.Error != nil {
		words := "The server reported an error (code %d): %s"
		if notCalled(a.Error.Code) {
			words = "The server refused the call (code %d): %s"
		}
		return agentrun.Result{}, &agentrun.FailedError{
			Message: fmt.Sprintf(words, a.Error.Code, clip(approvals.Visible(s.conceal(a.Error.Message)), maxWords)),
		}
	}
	var r struct {
		ResultType string            `json:"resultType"`
		Task       json.RawMessage   `json:"task"`
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return agentrun.Result{}, unsure("The server's answer could not be read.")
	}
	switch {
	case r.ResultType == "task" || r.ResultType == "" && len(r.Task) > 0:
		return agentrun.Result{}, unsure("The server answered with a task, which it may finish later, and not with a result.")
	case r.ResultType == "input_required":
		return agentrun.Result{}, unsure("The server asks for more input before it goes on, which nobody can give it here.")
	case r.ResultType != "" && r.ResultType != "complete":
		return agentrun.Result{}, unsure("The server's answer is of a kind that is not known.")
	case r.Content == nil && !isValue(r.Structured):
		return agentrun.Result{}, unsure("The server's answer has no result in it.")
	}
	parts, err := readParts(r.Content)
	if err != nil {
		return agentrun.Result{}, unsure("The server's answer could not be read: %s.", err)
	}
	if r.IsError {
		return agentrun.Result{}, &agentrun.FailedError{Message: "The tool reported an error: " + s.errorWords(parts, r.Structured)}
	}
	whole := kept(parts, r.Structured)
	result := s.result(parts, r.Structured)
	result.Parts = whole
	return result, nil
}

// isValue reports whether structured content is there. Since the version 2026-07-28 it may
// be any JSON value.
func isValue(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (s Server) errorWords(parts []part, structured json.RawMessage) string {
	var words []string
	for _, p := range parts {
		if p.Text != "" {
			words = append(words, p.Text)
		}
	}
	if len(words) == 0 && isValue(structured) {
		words = append(words, string(structured))
	}
	if len(words) == 0 {
		return "it did not say which."
	}
	return clip(approvals.Visible(s.conceal(strings.Join(words, "\n"))), maxWords)
}

// readParts reads the parts of a result. A part that lacks what its type needs
// is an error.
func readParts(content []json.RawMessage) ([]part, error) {
	var all []part
	for i, raw := range content {
		if i == maxParts {
			all = append(all, part{Type: "cut", Note: fmt.Sprintf("%d more parts are not shown.", len(content)-maxParts)})
			break
		}
		p, err := readPart(raw)
		if err != nil {
			return nil, fmt.Errorf("part %d of it %w", i+1, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func readPart(raw json.RawMessage) (part, error) {
	type resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     *string `json:"blob"`
	}
	var wire struct {
		Type     string    `json:"type"`
		Text     *string   `json:"text"`
		Data     *string   `json:"data"`
		MIMEType string    `json:"mimeType"`
		URI      string    `json:"uri"`
		Name     string    `json:"name"`
		Title    string    `json:"title"`
		Resource *resource `json:"resource"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil || wire.Type == "" {
		return part{}, errNoPart
	}
	p := part{Type: label(wire.Type), MIMEType: label(wire.MIMEType), Name: label(wire.Name), Title: label(wire.Title), URI: label(wire.URI)}
	switch wire.Type {
	case "text":
		if wire.Text == nil {
			return p, errNoPart
		}
		return part{Type: "text", Text: *wire.Text}, nil
	case "image", "audio":
		if wire.Data == nil {
			return p, errNoPart
		}
		return p, p.describe(*wire.Data)
	case "resource_link":
		if wire.URI == "" {
			return p, errNoPart
		}
		p.Note = noteLink
		return p, nil
	case "resource":
		if wire.Resource == nil || wire.Resource.Text == nil && wire.Resource.Blob == nil {
			return p, errNoPart
		}
		p.URI, p.MIMEType = label(wire.Resource.URI), label(wire.Resource.MIMEType)
		if wire.Resource.Text != nil {
			p.Text = *wire.Resource.Text
			return p, nil
		}
		return p, p.describe(*wire.Resource.Blob)
	}
	p.Note = noteUnknown
	return p, nil
}

var errNoPart = fmt.Errorf("is incomplete")

func label(s string) string { return clip(approvals.Visible(s), maxLabel) }

// describe says what the content is without showing it.
func (p *part) describe(data string) error {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return errNoPart
	}
	sum := sha256.Sum256(content)
	p.Bytes, p.SHA256, p.Note, p.data = len(content), hex.EncodeToString(sum[:]), noteData, content
	return nil
}

// kept are the parts as they are stored for those who show them.
func kept(parts []part, structured json.RawMessage) []agentrun.Part {
	var all []agentrun.Part
	for _, p := range parts {
		if p.Type == "cut" {
			continue
		}
		all = append(all, agentrun.Part{
			Type: agentrun.PartType(p.Type), Text: p.Text, MIMEType: p.MIMEType, Name: p.Name, Title: p.Title, URI: p.URI,
			Size: p.Bytes, SHA256: p.SHA256, Data: p.data,
		})
	}
	if isValue(structured) {
		all = append(all, agentrun.Part{Type: agentrun.PartData, Text: string(structured)})
	}
	if len(all) == 1 && all[0].Type == agentrun.PartText {
		return nil // the value is that text
	}
	return all
}

// result is what the model reads: the text alone where there is only text, else
// the parts, within the bound of the server.
func (s Server) result(parts []part, structured json.RawMessage) agentrun.Result {
	room := s.maxResult()
	if !isValue(structured) {
		structured = nil
	}
	if structured != nil && len(parts) == 1 && parts[0].Type == "text" && sameJSON(parts[0].Text, structured) {
		parts = nil // it repeats the structured content for clients that read only text
	}
	var note string
	if len(structured) > room {
		note = fmt.Sprintf("The structured content has %d bytes and is not shown.", len(structured))
		structured = nil
	}
	room -= len(structured)
	for i := range parts {
		whole := len(parts[i].Text)
		parts[i].Text = cutTo(parts[i].Text, max(0, room))
		room -= len(parts[i].Text)
		if len(parts[i].Text) < whole {
			parts[i].Note = fmt.Sprintf("Cut: the first %d of %d bytes.", len(parts[i].Text), whole)
		}
	}
	if structured == nil && note == "" && len(parts) == 1 && parts[0].Type == "text" {
		text := parts[0].Text
		if parts[0].Note != "" {
			text += "\n[" + parts[0].Note + "]"
		}
		return agentrun.Result{Value: encoded(text)}
	}
	return agentrun.Result{Value: encoded(struct {
		Content    []part          `json:"content,omitempty"`
		Structured json.RawMessage `json:"structured_content,omitempty"`
		Note       string          `json:"note,omitempty"`
	}{parts, structured, note})}
}

func cutTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

func sameJSON(text string, structured json.RawMessage) bool {
	var a, b any
	return json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal(structured, &b) == nil && reflect.DeepEqual(a, b)
}

func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null") // it is made of text and JSON that was read
	}
	return bytes.TrimSpace(b.Bytes())
}
