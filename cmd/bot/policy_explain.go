package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/strictyaml"
)

// policyExplain says of one call what each rule says of it, and why.
func policyExplain(ctx context.Context, in *call) error {
	p := newPolicyCommand(in)
	p.takesAgainst()
	p.takesJSON()
	var call policy.Recorded
	file := p.flags.String("call", "", "A `FILE` with the call as JSON, as bot policy calls writes one.")
	p.flags.StringVar(&call.Tool, "tool", "", "The `NAME` of the tool that is called.")
	arguments := p.flags.String("args", "", "The arguments of the call, as `JSON`.")
	p.flags.StringVar(&call.Agent, "agent", "", "The `NAME` of the agent that makes the call. Without it, the first one that has the tool; if none is known to, the first remote one.")
	p.flags.Func("requester", "The `ID` of the person who asked the agent.", func(s string) error {
		call.Requester = approvals.UserID(s)
		return checkActor(s)
	})
	p.flags.Func("channel", "The `ID` of the channel in which the agent was asked.", func(s string) error {
		call.Channel = s
		return checkConversation(s)
	})
	var place policy.RecordedPlace
	p.flags.StringVar(&place.Cwd, "cwd", "", "The `DIRECTORY` in which a remote agent says that the call would run.")
	p.flags.StringVar(&place.Repository, "repository", "", "The `NAME` of the repository there.")
	p.flags.StringVar(&place.Branch, "branch", "", "The `NAME` of the branch there.")
	p.flags.StringVar(&place.Server, "server", "", "The `NAME` of the MCP server that the tool is of.")
	at := p.flags.String("at", "", "The `TIME` of the call, such as 2026-03-01T09:00:00Z. Without it, now.")
	gate := p.flags.Bool("gate", false, "The code of the tool asks for approval for this call.")
	p.flags.BoolVar(&p.askChecks, "ask-checks", false, "Ask the check of the rule that decides, with the secrets of the environment. Otherwise nothing is sent to it.")
	if err := p.parse(); err != nil {
		return err
	}
	if *file != "" {
		if call.Tool != "" || *arguments != "" {
			return in.wrong("--call already says the tool and its arguments; leave out --tool and --args")
		}
		text, err := strictyaml.ReadWhole(*file)
		if err != nil {
			return fmt.Errorf("--call: %w", err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&call); err != nil {
			return fmt.Errorf("--call: %s: %w", *file, err)
		}
		if decoder.More() {
			return in.wrong("--call: %s holds more than one call; name a file with one of them", *file)
		}
	}
	if call.Tool == "" {
		return in.wrong("--tool NAME is missing, or --call FILE")
	}
	if *arguments != "" {
		call.Args = json.RawMessage(*arguments)
	}
	if err := approvals.CheckArgs(call.Args); err != nil && len(call.Args) > 0 {
		return in.wrong("--args: %w", err)
	}
	if *at != "" {
		t, err := time.Parse(time.RFC3339, *at)
		if err != nil {
			return in.wrong("--at: %q is not a time such as 2026-03-01T09:00:00Z", *at)
		}
		call.At = t
	}
	if call.At.IsZero() {
		call.At = p.now()
	}
	if place != (policy.RecordedPlace{}) {
		call.Place = &place
	}
	if *gate {
		call.Gate = approvals.GateDeclared
	}
	loaded, o, _, err := p.load(ctx)
	if err != nil {
		return err
	}
	switch agents := agentsOf(o); {
	case call.Agent == "":
		call.Agent = agentWith(o, call.Tool)
	case *file == "" && len(agents) > 0 && !slices.Contains(agents, call.Agent):
		return in.wrong("--agent: there is no agent %q%s", call.Agent, strictyaml.HintOr(call.Agent, agents))
	}
	return p.sayExplanation(loaded.ExplainCall(ctx, call))
}

// conversation is the form of an id of a channel, or of a direct message, in Slack.
var conversation = regexp.MustCompile(`^[CDG][A-Z0-9]+$`)

// checkConversation says what is wrong with the id of a channel. With a name, rules for
// that channel would seem not to match.
func checkConversation(value string) error {
	if !conversation.MatchString(value) {
		return errors.New("it must be a channel id of Slack such as C0123456789, not a name")
	}
	return nil
}

// agentsOf are the names of all agents that are known.
func agentsOf(o policy.Options) []string {
	all := slices.Clone(o.Remote)
	for _, t := range o.Tools {
		all = append(all, t.Agent)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// agentWith is whose call of a tool is meant if that is not said, as in an example of a
// policy.
func agentWith(o policy.Options, tool string) string {
	i := slices.IndexFunc(o.Tools, func(t policy.Tool) bool { return t.Name == tool })
	switch {
	case i >= 0:
		return o.Tools[i].Agent
	case len(o.Remote) > 0:
		return o.Remote[0]
	case len(o.Tools) > 0:
		return o.Tools[0].Agent
	}
	return ""
}

func (p *policyCommand) sayExplanation(e policy.Explanation) error {
	if !p.json {
		return p.say("%s", e.Text())
	}
	type step struct {
		Rule    string         `json:"rule"`
		At      string         `json:"at,omitempty"`
		Kind    policy.Kind    `json:"kind"`
		Shadow  bool           `json:"shadow,omitempty"`
		Check   string         `json:"check,omitempty"`
		Outcome policy.Outcome `json:"outcome"`
		Why     string         `json:"why,omitempty"`
	}
	steps := []step{}
	if e.Ruling != nil { // otherwise no rule is asked
		for _, s := range e.Steps {
			steps = append(steps, step(s))
		}
	}
	misfits := []string{}
	for _, wrong := range e.Misfits {
		misfits = append(misfits, approvals.Visible(wrong))
	}
	return p.sayJSON(withCheck(map[string]any{
		"agent": e.Agent, "tool": e.Tool, "unknown": e.Unknown, "misfits": misfits, "ruling": rulingJSON(e.Shown()), "rule": e.By, "steps": steps,
	}, e.Check))
}

// withCheck adds the check that would be asked, if there is one.
func withCheck(out map[string]any, check string) map[string]any {
	if check != "" {
		out["check"] = check
	}
	return out
}

func (p *policyCommand) sayJSON(v any) error {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return p.say("%s", escaped(out.String()))
}

// rulingJSON is a ruling in JSON. It holds no arguments.
func rulingJSON(r approvals.Ruling) map[string]any {
	out := map[string]any{"kind": rulingWord(r)}
	switch r := r.(type) {
	case approvals.Refuse:
		out["reason"] = r.Reason
	case approvals.Ask:
		out["why"], out["rule"] = r.Why, r.Rule
		if c := r.Checked; c.Check != "" {
			out["checked"] = map[string]any{"check": c.Check, "answer": c.Answer, "reason": c.Said.Text}
		}
		if r.Summary != "" {
			out["summary"] = r.Summary
		}
		if r.Severity != approvals.SeverityUnset {
			out["severity"] = r.Severity
		}
		var quorums []map[string]any
		for _, q := range r.Requirement.Quorums {
			quorums = append(quorums, quorumJSON(q))
		}
		out["quorums"], out["denials"] = quorums, max(1, r.Requirement.Deny)
		if !r.Requirement.Deadline.IsZero() {
			out["deadline"] = r.Requirement.Deadline
		}
	case approvals.Permit:
	}
	return out
}

func quorumJSON(q approvals.Quorum) map[string]any {
	out := map[string]any{"name": q.Name, "need": q.Need, "users": q.From.Users, "groups": q.From.Groups}
	if q.Stage != 0 {
		out["stage"] = q.Stage
	}
	if q.Choice != 0 {
		out["choice"], out["option"] = q.Choice, q.Option
	}
	return out
}
