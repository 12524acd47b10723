package format

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// readLangChain reads what LangGraph interrupts with: the list of __interrupt__,
// an object that has it, or one value of it. A value is a request of the
// human-in-the-loop middleware, of the JavaScript or the Python library, or the
// HumanInterrupt of Agent Inbox. None of them has ids of calls.
func readLangChain(body json.RawMessage, names []approvals.ToolCallID) (Reading, error) {
	root := Value{Raw: body}
	if root.has("__interrupt__") {
		doc, err := root.given("__interrupt__")
		if err != nil {
			return Reading{}, err
		}
		root = doc["__interrupt__"]
	}
	interrupts := []Value{root}
	if kind(root.Raw) == '[' {
		var err error
		if interrupts, err = root.List(); err != nil {
			return Reading{}, err
		}
	}
	l := langchain{Reading: Reading{Form: Form{Format: LangChain}, Carries: intake.Carries{Edits: true, Reasons: true, Late: true}}}
	for _, i := range interrupts {
		if err := l.interrupt(i); err != nil {
			return Reading{}, err
		}
	}
	if len(l.Calls) == 0 {
		return Reading{}, fault(root.At, "has no calls")
	}
	if err := l.checkGroups(root.At); err != nil {
		return Reading{}, err
	}
	if names != nil && len(names) != len(l.Calls) {
		return Reading{}, fault("", "has %d calls, but %d ids are given", len(l.Calls), len(names))
	}
	for i := range l.Calls {
		l.Calls[i].ID = approvals.ToolCallID(fmt.Sprintf("call-%d", i+1))
		if names != nil {
			l.Calls[i].ID = names[i]
		}
	}
	return l.Reading, nil
}

type langchain struct{ Reading }

// checkGroups refuses what could not be answered: several interrupts are
// answered by their ids.
func (l *langchain) checkGroups(at string) error {
	seen := map[string]bool{}
	for _, g := range l.Form.Groups {
		if len(l.Form.Groups) > 1 && g.ID == "" {
			return fault(at, "has several interrupts, so each needs an id")
		}
		if seen[g.ID] {
			return fault(at, "has the interrupt %.100q twice", g.ID)
		}
		seen[g.ID] = true
	}
	return nil
}

func (l *langchain) interrupt(v Value) error {
	g, value := Group{}, v
	if v.has("value") {
		doc, err := v.given("id", "interrupt_id", "value", "when", "resumable", "ns")
		if err != nil {
			return err
		}
		if g.ID, err = doc["id"].Text(maxName); err != nil {
			return err
		}
		if old, err := doc["interrupt_id"].Text(maxName); err != nil || g.ID == "" {
			if g.ID = old; err != nil {
				return err
			}
		}
		value = doc["value"]
	}
	before := len(l.Calls)
	var err error
	switch {
	case value.has("actionRequests"):
		err = l.middleware(value, Camel, "actionRequests", "reviewConfigs", "actionName", "allowedDecisions", "argsSchema")
	case value.has("action_requests"):
		err = l.middleware(value, Snake, "action_requests", "review_configs", "action_name", "allowed_decisions", "args_schema")
	case value.has("action_request"):
		err = l.inbox([]Value{value}, &g)
	case kind(value.Raw) == '[':
		var list []Value
		if list, err = value.List(); err == nil {
			err = l.inbox(list, &g)
		}
	default:
		err = fault(value.At, "is no interrupt for approval: it has neither actionRequests, action_requests nor action_request")
	}
	if err != nil {
		return err
	}
	if g.Calls = len(l.Calls) - before; g.Calls == 0 {
		return fault(value.At, "has no calls")
	}
	l.Form.Groups = append(l.Form.Groups, g)
	return nil
}

func (l *langchain) style(s Style, at string) error {
	if l.Form.Style != "" && l.Form.Style != s {
		return fault(at, "is spelled otherwise than the interrupt before it")
	}
	l.Form.Style = s
	return nil
}

func (l *langchain) middleware(v Value, s Style, requests, configs, name, allowed, schema string) error {
	if err := l.style(s, v.At); err != nil {
		return err
	}
	doc, err := v.given(requests, configs)
	if err != nil {
		return err
	}
	may, err := reviews(doc[configs], name, allowed, schema)
	if err != nil {
		return err
	}
	list, err := doc[requests].List()
	if err != nil {
		return err
	}
	for _, item := range list {
		c, err := readAction(item, "name")
		if err != nil {
			return err
		}
		decisions, reviewed := may[c.Tool]
		for _, needed := range []string{"approve", "reject"} {
			if reviewed && !slices.Contains(decisions, needed) {
				return fault(item.At, "cannot be answered: %s does not have %q", allowed, needed)
			}
		}
		l.Carries.Edits = l.Carries.Edits && (!reviewed || slices.Contains(decisions, "edit"))
		l.Calls = append(l.Calls, c)
	}
	return nil
}

// reviews returns the decisions that each action takes.
func reviews(v Value, name, allowed, schema string) (map[string][]string, error) {
	may := map[string][]string{}
	if v.Raw == nil {
		return may, nil
	}
	list, err := v.List()
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		doc, err := item.given(name, allowed, schema, "description")
		if err != nil {
			return nil, err
		}
		tool, err := doc[name].Text(maxName)
		if err != nil {
			return nil, err
		}
		words, err := doc[allowed].List()
		if err != nil {
			return nil, fault(item.At+"/"+allowed, "must be a list")
		}
		decisions := []string{}
		for _, w := range words {
			d, err := w.Text(maxName)
			if err != nil {
				return nil, err
			}
			decisions = append(decisions, d)
		}
		if before, twice := may[tool]; twice {
			decisions = slices.DeleteFunc(decisions, func(d string) bool { return !slices.Contains(before, d) })
		}
		may[tool] = decisions
	}
	return may, nil
}

func readAction(v Value, name string, more ...string) (intake.Call, error) {
	doc, err := v.given(append([]string{name, "args", "arguments", "description"}, more...)...)
	if err != nil {
		return intake.Call{}, err
	}
	var c intake.Call
	if c.Tool, err = doc[name].Text(maxName); err == nil && c.Tool == "" {
		err = fault(v.At+"/"+name, "is missing")
	}
	if err != nil {
		return c, err
	}
	args, twice := doc["args"], false
	if other, ok := doc["arguments"]; ok {
		args, twice = other, doc["args"].Raw != nil
	}
	if twice {
		return c, fault(v.At, "has args and arguments")
	}
	if c.Args, err = args.Args(); err != nil {
		return c, err
	}
	c.Reason, err = description(doc["description"], c.Tool)
	return c, err
}

// description returns what the agent says about a call. Unless the agent has words
// of its own, the middleware repeats the tool and its arguments there, which are
// shown anyway, and which may be longer than a description may be.
func description(v Value, tool string) (string, error) {
	s, err := v.Text(len(v.Raw))
	if err != nil {
		return "", err
	}
	said, _, repeats := strings.Cut(s, "\n\nTool: "+tool+"\nArgs: ")
	if repeats && said == "Tool execution requires approval" {
		return "", nil
	}
	if len(said) > maxDescription {
		return "", fault(v.At, "must have at most %d bytes, but has %d", maxDescription, len(said))
	}
	return said, nil
}

// inbox reads the HumanInterrupts of one interrupt.
func (l *langchain) inbox(list []Value, g *Group) error {
	for _, v := range list {
		if err := l.style(Inbox, v.At); err != nil {
			return err
		}
		doc, err := v.given("action_request", "config", "description")
		if err != nil {
			return err
		}
		action, ok := doc["action_request"]
		if !ok {
			return fault(v.At+"/action_request", "is missing")
		}
		c, err := readAction(action, "action")
		if err != nil {
			return err
		}
		if c.Reason, err = doc["description"].Text(maxDescription); err != nil {
			return err
		}
		may, err := inboxConfig(doc["config"], v.At+"/config")
		if err != nil {
			return err
		}
		l.Carries.Edits = l.Carries.Edits && may["allow_edit"]
		l.Carries.Reasons = l.Carries.Reasons && may["allow_respond"]
		g.Ignore = append(g.Ignore, !may["allow_respond"])
		l.Calls = append(l.Calls, c)
	}
	return nil
}

func inboxConfig(v Value, at string) (map[string]bool, error) {
	keys := []string{"allow_accept", "allow_edit", "allow_respond", "allow_ignore"}
	if v.Raw == nil {
		return nil, fault(at, "is missing")
	}
	doc, err := v.given(keys...)
	if err != nil {
		return nil, err
	}
	may := map[string]bool{}
	for _, k := range keys {
		if may[k], err = doc[k].Flag(); err != nil {
			return nil, err
		}
	}
	if !may["allow_accept"] || !may["allow_respond"] && !may["allow_ignore"] {
		return nil, fault(at, "must allow to accept, and to respond or to ignore: otherwise a decision could not be answered")
	}
	return may, nil
}
