package agentrun

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxCallable is how long the name of a function may be for a model.
const maxCallable = 64

// CallableName returns the name by which a model calls a tool. Model providers
// take 1 to 64 letters, digits, _ and -, while the tool of a server is called
// server.tool everywhere else. A name that they take stays as it is. In another
// one every other character becomes a _, and what is too long is cut and ends in
// a part of its hash. Two tools of one agent whose callable names are the same
// cannot be told apart, so such an agent is refused.
func CallableName(name string) string {
	callable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(callable) <= maxCallable {
		return callable
	}
	sum := sha256.Sum256([]byte(name))
	return callable[:maxCallable-9] + "_" + hex.EncodeToString(sum[:4])
}

// callable returns the messages with the names that the model knows.
func callable(messages []Message) []Message {
	all := make([]Message, len(messages))
	for i, m := range messages {
		switch m := m.(type) {
		case Request:
			m.Parts = callableRequest(m.Parts)
			all[i] = m
		case Response:
			m.Parts = renamedCalls(m.Parts, CallableName)
			all[i] = m
		}
	}
	return all
}

func callableRequest(parts []RequestPart) []RequestPart {
	all := make([]RequestPart, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case ToolReturn:
			p.ToolName = CallableName(p.ToolName)
			all[i] = p
		case RetryPrompt:
			if p.ToolName != "" {
				p.ToolName = CallableName(p.ToolName)
			}
			all[i] = p
		case UserPrompt:
			all[i] = p
		}
	}
	return all
}

// renamedCalls returns the parts with other names in their calls. The names of hosted
// tools are those of the provider.
func renamedCalls(parts []ResponsePart, name func(string) string) []ResponsePart {
	all := make([]ResponsePart, len(parts))
	for i, p := range parts {
		all[i] = p
		if c, ok := p.(CallPart); ok && c.ApprovalRequest == "" {
			c.Name = name(c.Name)
			all[i] = c
		}
	}
	return all
}

// byCallable returns the names of the tools by those that a model knows.
func (s toolset) byCallable() map[string]string {
	names := make(map[string]string, len(s))
	for name, t := range s {
		if t.Spec().Kind != KindHosted { // the provider calls these by their own names
			names[CallableName(name)] = name
		}
	}
	return names
}

// called returns the response with the names of the tools that the model called.
// A name that is none of theirs stays as the model wrote it.
func (s toolset) called(r Response) Response {
	byCallable := s.byCallable()
	r.Parts = renamedCalls(r.Parts, func(name string) string {
		if tool, ok := byCallable[name]; ok {
			return tool
		}
		return name
	})
	return r
}
