package format

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/intake"
)

// writeLangChain writes what Command takes as resume: for each interrupt a list
// that is as long as its request, in its order.
func (f Form) writeLangChain(calls []intake.CallStatus) (json.RawMessage, error) {
	byID := map[string]any{}
	var only any
	for _, g := range f.Groups {
		if g.Calls > len(calls) {
			return nil, ErrOther
		}
		only = f.group(g, calls[:g.Calls])
		byID[g.ID] = only
		calls = calls[g.Calls:]
	}
	if len(calls) != 0 || len(f.Groups) == 0 {
		return nil, ErrOther
	}
	if len(f.Groups) == 1 {
		return compact(map[string]any{"resume": only})
	}
	return compact(map[string]any{"resume": byID})
}

func (f Form) group(g Group, calls []intake.CallStatus) any {
	out := make([]map[string]any, len(calls))
	for i, c := range calls {
		if f.Style == Inbox {
			out[i] = inboxResponse(c, i < len(g.Ignore) && g.Ignore[i])
			continue
		}
		out[i] = f.decision(c)
	}
	if f.Style == Inbox {
		return out
	}
	return map[string]any{"decisions": out}
}

// decision is one answer to the middleware. An edit repeats the name of the tool
// that was asked for: the middleware would run any other.
func (f Form) decision(c intake.CallStatus) map[string]any {
	key := "editedAction"
	if f.Style == Snake {
		key = "edited_action"
	}
	switch {
	case !approved(c):
		return map[string]any{"type": "reject", "message": Words(c)}
	case c.Edited:
		return map[string]any{"type": "edit", key: map[string]any{"name": c.Tool, "args": orNone(c.Args)}}
	}
	return map[string]any{"type": "approve"}
}

func inboxResponse(c intake.CallStatus, silent bool) map[string]any {
	switch {
	case !approved(c) && silent:
		return map[string]any{"type": "ignore", "args": nil}
	case !approved(c):
		return map[string]any{"type": "response", "args": Words(c)}
	case c.Edited:
		return map[string]any{"type": "edit", "args": map[string]any{"action": c.Tool, "args": orNone(c.Args)}}
	}
	return map[string]any{"type": "accept", "args": nil}
}
