package openaisim

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// A Story is one conversation that the scripted model understands.
type Story struct {
	// Name is for people who read a test or a log.
	Name string
	// Prompt is what to say to start the story; the default answer lists it.
	Prompt string
	// Match reports whether a user message starts the story. It is asked about
	// each line of the message, from the last, and then about all of it.
	Match func(userText string) bool
	// Turn gives the next reply. It must depend on nothing but the
	// conversation, because a client may send the same request again.
	Turn func(Conversation) Reply
}

// A Reply is what the model says next: text, tool calls, or both.
type Reply struct {
	Text  string
	Calls []Call
	// Fault, if any, strikes each time this reply is given. A fault that is
	// queued with [Server.Fail] goes first, and takes its place once.
	Fault *Fault
}

// A Call is a tool call as the model writes it.
type Call struct {
	// ID is made up, and unique, if it is empty.
	ID   string
	Name string
	// Args is sent as it is. It should be a JSON object; a story may break that
	// on purpose.
	Args string
}

// A Conversation is what happened since the user message that started a story.
type Conversation struct {
	// User is that message, whole.
	User string
	// Replies is how many answers the model has given since.
	Replies int
	// Results are the calls it made and what came back, in the order of the calls.
	Results []Result
	// Tools are the names of the tools the model may call now.
	Tools []string
}

// Offers reports whether the model may call the named tool now.
func (c Conversation) Offers(tool string) bool {
	return slices.Contains(c.Tools, tool)
}

// Named returns the results of the named tool, in the order of the calls.
func (c Conversation) Named(tool string) []Result {
	var named []Result
	for _, r := range c.Results {
		if r.Name == tool {
			named = append(named, r)
		}
	}
	return named
}

// Last returns the latest result of the named tool.
func (c Conversation) Last(tool string) (Result, bool) {
	named := c.Named(tool)
	if len(named) == 0 {
		return Result{}, false
	}
	return named[len(named)-1], true
}

// A Result is a call with the answer it got.
type Result struct {
	ID, Name string
	// Args are the arguments as the history has them.
	Args string
	// Content is the tool message: JSON or plain text.
	Content string
}

// Arg returns the string argument of that name, or "".
func (r Result) Arg(name string) string {
	var args map[string]json.RawMessage
	var value string
	if json.Unmarshal([]byte(r.Args), &args) != nil || json.Unmarshal(args[name], &value) != nil {
		return ""
	}
	return value
}

// JSON decodes the content into v and reports whether that went well.
func (r Result) JSON(v any) bool {
	return json.Unmarshal([]byte(r.Content), v) == nil
}

// Text returns the content as a person would read it: the text inside a JSON
// string or inside an object that wraps one, otherwise the content as it is.
func (r Result) Text() string {
	var text string
	if r.JSON(&text) {
		return text
	}
	var object map[string]json.RawMessage
	if !r.JSON(&object) {
		return r.Content
	}
	for _, key := range []string{"content", "text", "output", "result", "message"} {
		if json.Unmarshal(object[key], &text) == nil {
			return text
		}
	}
	return r.Content
}

// Says returns a matcher for text that contains the prompt, whatever its case,
// spacing and punctuation, and whatever stands before and after it, such as the
// mention that starts a message in Slack.
func Says(prompt string) func(userText string) bool {
	want := " " + words(prompt) + " "
	return func(userText string) bool {
		return strings.Contains(" "+words(userText)+" ", want)
	}
}

// words returns the words of s in lower case, one space apart.
func words(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}), " ")
}
