package agentrun

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// calls returns the calls of the response, in emission order.
func (r Response) calls() []approvals.ToolCall {
	var calls []approvals.ToolCall
	for _, p := range r.Parts {
		if c, ok := p.(CallPart); ok {
			calls = append(calls, c.ToolCall)
		}
	}
	return calls
}

// text returns what the response says to people.
func (r Response) text() string {
	var s strings.Builder
	for _, p := range r.Parts {
		if t, ok := p.(Text); ok {
			s.WriteString(t.Content)
		}
	}
	return s.String()
}

// answeredBy returns the call that the part answers, if it answers one.
func answeredBy(p RequestPart) (approvals.ToolCallID, bool) {
	switch p := p.(type) {
	case ToolReturn:
		return p.CallID, true
	case RetryPrompt:
		return p.CallID, p.ToolName != ""
	case UserPrompt:
	}
	return "", false
}

// Pending returns the calls of the last response that have no result yet, in
// emission order. What is pending follows from the history alone.
func Pending(history []Message) ([]approvals.ToolCall, error) {
	last := lastResponse(history)
	if last < 0 {
		return nil, ErrNoModelResponse
	}
	calls := history[last].(Response).calls()
	seen := map[approvals.ToolCallID]bool{}
	for _, c := range calls {
		if seen[c.ID] {
			return nil, ErrDuplicateIDs
		}
		seen[c.ID] = true
	}
	done := map[approvals.ToolCallID]bool{}
	for _, m := range history[last+1:] {
		for _, p := range m.(Request).Parts {
			if id, ok := answeredBy(p); ok {
				done[id] = true
			}
		}
	}
	pending := slices.DeleteFunc(calls, func(c approvals.ToolCall) bool { return done[c.ID] })
	if len(pending) == 0 {
		return nil, ErrNoPendingCalls
	}
	return pending, nil
}

// unanswered is [Pending] for a history that may have nothing pending. Of calls
// that share an id it returns the first.
func unanswered(history []Message) []approvals.ToolCall {
	last := lastResponse(history)
	if last < 0 {
		return nil
	}
	done := map[approvals.ToolCallID]bool{}
	for _, m := range history[last+1:] {
		for _, p := range m.(Request).Parts {
			if id, ok := answeredBy(p); ok {
				done[id] = true
			}
		}
	}
	var open []approvals.ToolCall
	for _, c := range history[last].(Response).calls() {
		if !done[c.ID] {
			done[c.ID] = true
			open = append(open, c)
		}
	}
	return open
}

func lastResponse(history []Message) int {
	for i, m := range slices.Backward(history) {
		if _, ok := m.(Response); ok {
			return i
		}
	}
	return -1
}

// forModel returns the history as a model may read it: requests that follow
// each other are one, in which the results come first, in emission order, and
// what people and tools add to them after. The stored history is not touched.
func forModel(history []Message) []Message {
	var out []Message
	order := map[approvals.ToolCallID]int{}
	for _, m := range history {
		switch m := m.(type) {
		case Response:
			clear(order)
			for i, c := range m.calls() {
				order[c.ID] = i
			}
			out = append(out, m)
		case Request:
			if len(out) > 0 {
				if before, ok := out[len(out)-1].(Request); ok {
					m.Parts = slices.Concat(before.Parts, m.Parts)
					out = out[:len(out)-1]
				}
			}
			m.Parts = slices.Clone(m.Parts)
			slices.SortStableFunc(m.Parts, func(a, b RequestPart) int { return rank(a, order) - rank(b, order) })
			out = append(out, m)
		}
	}
	return out
}

func rank(p RequestPart, order map[approvals.ToolCallID]int) int {
	id, ok := answeredBy(p)
	if i, known := order[id]; ok && known {
		return i
	}
	return len(order)
}

// retries returns how often in a row the model was asked to correct its calls
// of each tool, in steps: since the tool last gave a result, and within this
// run. first is the run's first message that counts.
func retries(history []Message, first int) map[string]int {
	count := map[string]int{}
	for _, m := range history[min(first, len(history)):] {
		request, ok := m.(Request)
		if !ok {
			continue
		}
		again := map[string]bool{}
		for _, p := range request.Parts {
			switch p := p.(type) {
			case ToolReturn:
				delete(count, p.ToolName)
			case RetryPrompt:
				again[p.ToolName] = again[p.ToolName] || p.ToolName != ""
			case UserPrompt:
			}
		}
		for name, yes := range again {
			if yes {
				count[name]++
			}
		}
	}
	return count
}

// usedIDs returns the ids of all calls in the history.
func usedIDs(history []Message) map[approvals.ToolCallID]bool {
	used := map[approvals.ToolCallID]bool{}
	for _, m := range history {
		if r, ok := m.(Response); ok {
			for _, c := range r.calls() {
				used[c.ID] = true
			}
		}
	}
	return used
}
