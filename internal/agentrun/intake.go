package agentrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// MaxCallID is how many bytes the id of a call may have: it must fit into a
// button.
const MaxCallID = 512

// MaxCalls is how many calls a response may have: people must be able to read
// what they approve, and a model that went wild must not flood the tools.
const MaxCalls = 64

// MaxOutput is how many characters of a final answer are kept for people; what
// is longer is cut, and says so. The history keeps all of it.
const MaxOutput = 100_000

// unusable says why nothing of the response is used: it has nothing in it that is visible,
// it has too many calls, or they cannot be told from each other. Such a response is not
// kept, so none of its calls can ever run. why is for people, and goes on from "the last
// one"; again is for the model.
func unusable(history []Message, r Response) (why, again string) {
	calls := r.calls()
	if len(calls) == 0 && !strings.ContainsFunc(r.text(), visible) {
		return "was empty", "Your last response was empty. Answer, or call a tool."
	}
	if len(calls) > MaxCalls {
		return fmt.Sprintf("had %d tool calls, and at most %d can be made at once", len(calls), MaxCalls),
			fmt.Sprintf("Your last response had %d tool calls, so none of them was run. Make at most %d in one response.", len(calls), MaxCalls)
	}
	used := map[approvals.ToolCallID]bool{}
	for _, c := range calls {
		switch {
		case c.ID == "" || len(c.ID) > MaxCallID || !utf8.ValidString(string(c.ID)):
			return "had a tool call without a usable id",
				"A tool call in your last response had no usable id, so none of its calls was run. Answer again."
		case c.Name == "" || !utf8.ValidString(c.Name):
			return "had a tool call that named no tool",
				"A tool call in your last response named no tool, so none of its calls was run. Answer again."
		case used[c.ID]:
			return "had two tool calls with the same id",
				"A tool call in your last response had the id of another one, so none of its calls was run. Answer again, with an id of its own for every call."
		}
		used[c.ID] = true
	}
	if asksTwice(history, r) {
		return "had a request for approval with the id of an earlier one",
			"A tool call in your last response had the id of an earlier one, so none of its calls was run. Answer again, with an id of its own for every call."
	}
	return "", ""
}

// visible reports whether a person sees something where r stands.
func visible(r rune) bool {
	return !unicode.IsSpace(r) && !approvals.Invisible(r)
}

// askedAgain reports whether the last request is already one for a response
// that can be used.
func askedAgain(history []Message) bool {
	last, ok := history[len(history)-1].(Request)
	return ok && len(last.Parts) == 1 && isRefusal(last.Parts[0])
}

func isRefusal(p RequestPart) bool {
	r, ok := p.(RetryPrompt)
	return ok && r.ToolName == ""
}

// output returns what people read of the model's last word.
func output(text string) string {
	n := 0
	for i := range text {
		if n == MaxOutput {
			return fmt.Sprintf("%s\n[cut: the first %d of %d characters]", text[:i], n, utf8.RuneCountInString(text))
		}
		n++
	}
	return text
}

// renamed returns the response with ids of its own for calls whose ids are in
// the history already: many servers number the calls of each answer from zero.
// A decision, a journal entry and a result belong to one call of the thread for
// ever, so the new id is what is stored, asked about and told to the model. It
// has no character that a provider could refuse in an id, and the same history
// and response give the same ids.
func renamed(history []Message, r Response) Response {
	before := usedIDs(history)
	taken := usedIDs(append(slices.Clip(history), r))
	parts := slices.Clone(r.Parts)
	for i, p := range parts {
		c, ok := p.(CallPart)
		if !ok || !before[c.ID] {
			continue
		}
		c.ID = unused(c.ID, taken)
		taken[c.ID] = true
		parts[i] = c
	}
	r.Parts = parts
	return r
}

// unused returns the id with the first number after it that makes it new, cut
// so that it stays an id.
func unused(id approvals.ToolCallID, taken map[approvals.ToolCallID]bool) approvals.ToolCallID {
	for n := 2; ; n++ {
		suffix := fmt.Sprintf("-%d", n)
		end := min(len(id), MaxCallID-len(suffix))
		for end < len(id) && !utf8.RuneStart(id[end]) {
			end--
		}
		if other := id[:end] + approvals.ToolCallID(suffix); !taken[other] {
			return other
		}
	}
}

// modelWords says, for people, why the model gave no answer.
func modelWords(err error) string {
	var known *ModelError
	if errors.As(err, &known) && known.Words != "" {
		return known.Words
	}
	return "The model could not be reached or did not answer properly. Please try again later."
}

// modelClass says, for the log, why the model gave no answer.
func modelClass(err error) string {
	if known, ok := errors.AsType[*ModelError](err); ok {
		return known.Error()
	}
	return class(err)
}

func finishWords(reason FinishReason) string {
	switch reason {
	case FinishLength:
		return "The model's answer was cut off at its length limit, so it was not used."
	case FinishContentFilter:
		return "The model's provider filtered the answer out."
	case FinishError:
		return "The model stopped with an error, so its answer was not used."
	case FinishStop, FinishToolCall:
	}
	return ""
}
