package openaimodel

import (
	"encoding/json"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// maxCalls is how many calls one answer may make.
const maxCalls = 1000

// calls puts tool calls together from the pieces that come in a stream. A piece
// belongs to the call with its index; the first one brings the id and the name.
//
// Compatible servers deviate, as far as this is understood: without an index, a
// piece belongs to the call with its id, or begins one, or, with no id either,
// belongs to the latest call. An id and a name may be repeated. A continuation
// may come with a fresh id, which is ignored. Complete calls may all come with
// one index, told apart by id and name. Anything else fails.
type calls struct {
	all    []*call       // in the order in which they began
	at     map[int]*call // the latest with that index
	latest *call
}

type call struct {
	index    int // -1: it has none
	id, name string
	args     strings.Builder
	extra    json.RawMessage // what the provider wants back with it
	told     bool            // that it began
	toldArgs int             // so many bytes
}

// tell says what was added to the call, once it has an id and a name.
func (k *call) tell(written func(agentrun.Delta)) {
	if k.id == "" || k.name == "" || k.told && k.toldArgs == k.args.Len() {
		return
	}
	written(agentrun.Delta{Kind: agentrun.DeltaCall, Call: approvals.ToolCallID(k.id), Tool: k.name, Text: k.args.String()[k.toldArgs:]})
	k.told, k.toldArgs = true, k.args.Len()
}

func (c *calls) add(d piece) error {
	to, err := c.find(d.ToolCall)
	if err != nil {
		return err
	}
	c.latest = to
	if to.id == "" {
		to.id = d.ID
	}
	switch {
	case to.name == "":
		to.name = d.Function.Name
	case d.Function.Name != "" && d.Function.Name != to.name:
		return malformed("the tool call %.60q changes its name from %.80q to %.80q", to.id, to.name, d.Function.Name)
	}
	to.args.WriteString(d.Function.Arguments)
	if len(d.Extra) > 0 && string(d.Extra) != "null" {
		to.extra = d.Extra
	}
	return nil
}

// find returns the call that the piece belongs to.
func (c *calls) find(d openai.ToolCall) (*call, error) {
	if d.Index == nil {
		return c.findByID(d)
	}
	if *d.Index < 0 {
		return nil, malformed("a tool call has the index %d", *d.Index)
	}
	to := c.at[*d.Index]
	if to == nil {
		return c.begin(*d.Index)
	}
	another := d.ID != "" && to.id != "" && d.ID != to.id && d.Function.Name != ""
	if !another {
		return to, nil
	}
	if !json.Valid([]byte(to.args.String())) {
		return nil, malformed("the tool calls %.60q and %.60q both have the index %d and cannot be told apart", to.id, d.ID, *d.Index)
	}
	return c.begin(*d.Index)
}

func (c *calls) findByID(d openai.ToolCall) (*call, error) {
	if d.ID != "" {
		if at := slices.IndexFunc(c.all, func(k *call) bool { return k.id == d.ID }); at >= 0 {
			return c.all[at], nil
		}
	}
	if c.latest != nil && (d.ID == "" || d.Function.Name == "") {
		return c.latest, nil
	}
	return c.begin(-1)
}

func (c *calls) begin(index int) (*call, error) {
	if len(c.all) == maxCalls {
		return nil, malformed("there are more than %d tool calls", maxCalls)
	}
	k := &call{index: index}
	c.all = append(c.all, k)
	if index >= 0 {
		if c.at == nil {
			c.at = map[int]*call{}
		}
		c.at[index] = k
	}
	return k, nil
}

// parts returns the calls in the order of their indexes, where they have any.
func (c *calls) parts() ([]agentrun.ResponsePart, error) {
	if !slices.ContainsFunc(c.all, func(k *call) bool { return k.index < 0 }) {
		slices.SortStableFunc(c.all, func(a, b *call) int { return a.index - b.index })
	}
	var parts []agentrun.ResponsePart
	for i, k := range c.all {
		switch {
		case k.id == "":
			return nil, malformed("tool call %d of %d, of %.80q, has no id", i+1, len(c.all), k.name)
		case k.name == "":
			return nil, malformed("tool call %d of %d has no name", i+1, len(c.all))
		}
		part := agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: approvals.ToolCallID(k.id), Name: k.name, Args: json.RawMessage(k.args.String()),
		}}
		if k.extra != nil {
			details, err := json.Marshal(callDetails{k.extra})
			if err != nil {
				return nil, err
			}
			part.ProviderDetails = details
		}
		parts = append(parts, part)
	}
	return parts, nil
}
