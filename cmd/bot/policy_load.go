package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/tools/filetool"
)

// toolsFor returns tools of an agent that its configuration does not name. A
// nil one has none.
type toolsFor func(agent string) ([]agentrun.Tool, error)

// and returns the tools of both.
func (f toolsFor) and(more toolsFor) toolsFor {
	if f == nil {
		return more
	}
	return func(agent string) ([]agentrun.Tool, error) {
		first, err1 := f(agent)
		second, err2 := more(agent)
		return append(slices.Clone(first), second...), errors.Join(err1, err2)
	}
}

// toolSets are the tools of every agent, by its name.
type toolSets map[string][]agentrun.Tool

// newToolSets returns the tools of all agents, or everything that is wrong with
// them: a folder that is not there or through which the agent would reach the
// bot itself, two tools of one agent with one name, and a setting for a tool
// that the agent does not have, which would guard nothing.
//
// Whoever looks at a policy judges it with these tools: if one command left out
// those that code adds, it would refuse a rule that another accepts.
func newToolSets(c config, e environment, extra toolsFor) (toolSets, error) {
	sets := toolSets{}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	places := c.outOfReach(e)
	for i, a := range c.Agents {
		var all []agentrun.Tool
		if a.Files != "" {
			set, err := filetool.New(a.Files)
			if err == nil {
				err = checkFolder(a.Files, places)
			}
			if err != nil {
				wrong("agents[%d].files: %w", i, err)
			}
			all = append(all, set...)
		}
		if extra != nil {
			set, err := extra(a.Name)
			if err != nil {
				wrong("agent %s: %w", a.Name, err)
			}
			all = append(all, set...)
		}
		own := map[string]bool{}
		for _, t := range all {
			name := t.Spec().Name
			if own[name] {
				wrong("agent %s: two tools are called %s", a.Name, name)
			}
			own[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
			if !own[name] {
				wrong("agents[%d].tools.%s: %s has no such tool, so the setting would have no effect; its tools are %s",
					i, name, a.Name, strings.Join(slices.Sorted(maps.Keys(own)), ", "))
			}
		}
		sets[a.Name] = all
	}
	return sets, errors.Join(problems...)
}

// policyTools are the tools as a policy hears of them.
func policyTools(c config, sets toolSets) []policy.Tool {
	var all []policy.Tool
	for i, a := range c.Agents {
		for _, t := range sets[a.Name] {
			s := t.Spec()
			all = append(all, policy.Tool{
				Agent: a.Name, Name: s.Name, Schema: s.Schema,
				Annotations: policy.Annotations(s.Annotations), Asks: policy.Asks(s.Asks()),
				Setting:      a.Tools[s.Name].Approval.setting(fmt.Sprintf("agents[%d].tools.%s.approval", i, s.Name)),
				AgentSetting: a.Approval.setting(fmt.Sprintf("agents[%d].approval", i)),
			})
		}
	}
	return all
}

func (a approvalConfig) setting(place string) policy.Setting {
	if a.Kind == "" {
		return policy.Setting{}
	}
	return policy.Setting{Approval: policy.Approval(a.Kind), When: a.When, Place: place}
}

// checkPolicy returns everything that is wrong with the tools of the
// configuration and with its policy.
func (c config) checkPolicy(e environment, extra toolsFor) error {
	sets, err := newToolSets(c, e, extra)
	if c.Policy == "" {
		return err // that there is none, check says
	}
	if err != nil {
		sets = nil // a rule may be for a tool that is missing
	}
	_, wrong := policy.Load(c.Policy, policy.Options{Tools: policyTools(c, sets), Now: time.Now})
	return errors.Join(err, wrong)
}

// openPolicy reads the policy of the configuration; follow follows its changes.
func (b *bot) openPolicy(c config, sets toolSets) (err error) {
	b.path = c.Policy
	b.judging = policy.Options{Tools: policyTools(c, sets), Directory: &b.people, Shadow: b.onShadow, Now: time.Now}
	b.policy, err = policy.Open(c.Policy, b.judging, b.onPolicy)
	return err
}

// defaultReload is how often the policy is looked at if nothing is said.
const defaultReload = 5 * time.Second

// follow takes changes of the policy until ctx ends: every so often, and at
// once on SIGHUP. Nothing that is under way is dropped.
func (b *bot) follow(ctx context.Context, every time.Duration) {
	if every == 0 {
		every = defaultReload
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var watching sync.WaitGroup
	watching.Go(func() { b.policy.Watch(ctx, every) })
	defer watching.Wait()
	for {
		select {
		case <-hup:
			_ = b.policy.Reload(ctx) // what came of it is reported
		case <-ctx.Done():
			return
		}
	}
}

// onPolicy says what became of a change of the policy. One that nobody can meet
// is taken all the same: what it asks for does not run.
func (b *bot) onPolicy(ctx context.Context, before, after *policy.Policy, err error) {
	if err != nil {
		b.log.ErrorContext(ctx, "the changed policy was refused, and the previous one stays in force",
			slog.String("version", before.Version()), slog.Any("err", err))
		return
	}
	b.log.InfoContext(ctx, "the policy changed", slog.String("before", before.Version()), slog.String("version", after.Version()))
	if gone := policy.Lifted(before, after); len(gone) > 0 {
		b.log.WarnContext(ctx, "rules that denied or asked were removed", slog.Any("rules", gone))
	}
	if err := b.checkPeople(ctx); err != nil {
		b.log.WarnContext(ctx, "the changed policy has rules under which not enough people can sign", slog.Any("err", err))
	}
}

// onShadow says what a rule that is not enforced would have done. It never says
// the arguments.
func (b *bot) onShadow(ctx context.Context, r policy.ShadowRuling) {
	b.log.InfoContext(ctx, "shadow ruling", slog.String("rule", r.Rule), slog.String("agent", r.Agent), slog.String("tool", r.Tool),
		slog.String("would", rulingWord(r.Would)), slog.String("did", rulingWord(r.Was)))
}

// rulingWord is the ruling as a policy file calls it.
func rulingWord(r approvals.Ruling) string {
	switch r.(type) {
	case approvals.Permit:
		return "allow"
	case approvals.Refuse:
		return "deny"
	case approvals.Ask:
		return "ask"
	}
	return "nothing"
}
