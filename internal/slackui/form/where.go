package form

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Where says that the provider of the model runs a call; or where a call of a remote
// agent would run, and to which server its tool belongs, in the agent's words and uncut:
// that is part of what people approve. For a command without a directory it says that
// the agent did not name one.
func Where(a approvals.Approval, args json.RawMessage) []blockkit.Para {
	p := a.Place
	if a.Hosted {
		return []blockkit.Para{blockkit.Line(blockkit.Say(hosted))}
	}
	if p == (approvals.Place{}) {
		return nil
	}
	code := func(s string) blockkit.Span { return blockkit.Styled(blockkit.Visible(s), blockkit.Code) }
	var spans []blockkit.Span
	say := func(first, next string) {
		if len(spans) == 0 {
			next = first
		}
		spans = append(spans, blockkit.Say(next))
	}
	if p.Cwd != "" {
		say("In ", "")
		spans = append(spans, code(p.Cwd))
	}
	if p.Branch != "" {
		say("On branch ", " on branch ")
		spans = append(spans, code(p.Branch))
	}
	if p.Repository != "" {
		say("In ", " of ")
		spans = append(spans, code(p.Repository))
	}
	if len(spans) > 0 {
		spans = append(spans, blockkit.Say("."))
	}
	if p.Server != "" {
		say(ofServer, " "+ofServer)
		spans = append(spans, code(p.Server), blockkit.Say("."))
	}
	if p.Cwd == "" && command(args) {
		say(unplaced, " "+unplaced)
	}
	return []blockkit.Para{blockkit.Line(spans...)}
}

// Unplaced is [Where] of a command of a remote agent that did not say where.
func Unplaced(b approvals.Batch, a approvals.Approval, args json.RawMessage) []blockkit.Para {
	if b.Executor == "" || a.Place != (approvals.Place{}) || !command(args) {
		return nil
	}
	return []blockkit.Para{blockkit.Line(blockkit.Styled(unplaced, blockkit.Bold))}
}

// command reports whether the arguments hold a command for a terminal.
func command(args json.RawMessage) bool {
	var said struct {
		Command any `json:"command"`
		Cmd     any `json:"cmd"`
	}
	return json.Unmarshal(args, &said) == nil && (said.Command != nil || said.Cmd != nil)
}

// Spec returns the spec by which people can edit the arguments of a call, and false if
// they cannot: the provider of the model runs the call, the agent takes no edits, or this
// program does not know the tool. The tools of a remote agent have no schema here: their
// arguments must only be an object.
func Spec(b approvals.Batch, a approvals.Approval, spec agentrun.Spec, known bool) (agentrun.Spec, bool) {
	if b.Limits.NoEdits || a.Hosted {
		return agentrun.Spec{}, false
	}
	if !known && b.Executor != "" {
		return agentrun.Spec{Name: a.Call.Name, Schema: json.RawMessage(`{"type":"object"}`)}, true
	}
	return spec, known
}
