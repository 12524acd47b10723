package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
)

// checkReach warns of channels in which an agent may be asked for a call that
// nobody who is in the channel may approve. Channels and groups that cannot be
// looked up are reported by other checks.
func (s slackCheck) checkReach(ctx context.Context) {
	if s.policy == nil {
		return // said before
	}
	for i, a := range s.config.Agents {
		for _, channel := range a.Channels {
			in, _, err := s.lookup.Members(ctx, approvals.GroupID(channel))
			if err != nil {
				continue
			}
			for _, u := range s.unreached(ctx, a.Name, channel, in) {
				s.warn(u.advice(), "agents[%d].channels: %s: nobody in it may approve %s of %s, which %s asks of %s",
					i, channel, strings.Join(u.tools, ", "), a.Name, u.rule, u.who)
			}
		}
	}
}

// unreached are the tools of an agent for which a rule asks no one in a
// channel.
type unreached struct {
	rule, who string
	direct    approvals.DirectMessages
	tools     []string
}

func (u unreached) advice() string {
	if u.direct == approvals.DirectNobody {
		return "invite approvers to the channel, or remove dm: false from the rule"
	}
	return "invite approvers to the channel; otherwise they are asked by direct message, if there are at most 20 of them"
}

// unreached returns for each rule the tools for which it asks no one in the
// channel.
func (s slackCheck) unreached(ctx context.Context, agent, channel string, in []approvals.UserID) []unreached {
	var all []unreached
	for _, t := range s.judging.Tools {
		if t.Agent != agent {
			continue
		}
		for _, of := range s.policy.Approvers(t, channel) {
			if present, known := s.present(ctx, of.From, in); present || !known {
				continue
			}
			rule := "the rule " + of.Rule
			if of.Rule == "" {
				rule = "the default of the policy"
			}
			if i := slices.IndexFunc(all, func(u unreached) bool { return u.rule == rule }); i >= 0 {
				all[i].tools = append(all[i].tools, t.Name)
				continue
			}
			all = append(all, unreached{rule: rule, who: s.names(ctx, of.From), direct: of.Direct, tools: []string{t.Name}})
		}
	}
	return all
}

// present reports whether one of the people is in the channel. known says
// whether the members of the groups that matter could be looked up.
func (s slackCheck) present(ctx context.Context, from approvals.From, in []approvals.UserID) (present, known bool) {
	among := func(users []approvals.UserID) bool {
		return slices.ContainsFunc(users, func(u approvals.UserID) bool { return slices.Contains(in, u) })
	}
	present, known = among(from.Users), true
	for _, g := range from.Groups {
		users, _, err := s.lookup.Members(ctx, g)
		present, known = present || among(users), known && err == nil
	}
	return present, known
}

// names lists people and groups, groups by their handles.
func (s slackCheck) names(ctx context.Context, from approvals.From) string {
	var all []string
	groups, _ := s.lookup.groups(ctx) // an id will do
	for _, g := range from.Groups {
		name := string(g)
		if !config.IsChannel(name) && groups[name].Handle != "" {
			name = fmt.Sprintf("@%s (%s)", groups[name].Handle, g)
		}
		all = append(all, name)
	}
	for _, u := range from.Users {
		all = append(all, string(u))
	}
	if len(all) == 0 {
		return "nobody"
	}
	return strings.Join(all, ", ")
}
