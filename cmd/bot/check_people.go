package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// mostPeople are looked up in one check; Slack limits how many may be.
const mostPeople = 60

// anID keeps what is wrong already from being asked for.
var anID = regexp.MustCompile(`^[UWS][A-Z0-9]{3,}$`)

// named is who the configuration names, and the first place of each.
func (c *checker) named() (users, groups map[string]string) {
	users, groups = map[string]string{}, map[string]string{}
	add := func(at string, from peopleConfig) {
		for _, u := range from.Users {
			if users[string(u)] == "" && anID.MatchString(string(u)) {
				users[string(u)] = at + ".users"
			}
		}
		for _, g := range from.Groups {
			if groups[string(g)] == "" && anID.MatchString(string(g)) {
				groups[string(g)] = at + ".groups"
			}
		}
	}
	for i, a := range c.config.Agents {
		if a.Who != nil {
			add(fmt.Sprintf("agents[%d].who", i), *a.Who)
		}
	}
	rules := c.rules()
	for _, at := range slices.Sorted(maps.Keys(rules)) {
		for i, q := range rules[at].Quorums {
			add(fmt.Sprintf("%s.quorums[%d].from", at, i), peopleConfig(q.From))
		}
	}
	return users, groups
}

// rules are the rules of the policy by their place.
func (c *checker) rules() map[string]policy.Rule {
	rules := map[string]policy.Rule{"policy.default": c.config.Policy.Default}
	for name, r := range c.config.Policy.Tools {
		rules["policy.tools."+name] = r
	}
	return rules
}

// checkGroups returns who is in the groups, by group.
func (c *checker) checkGroups(ctx context.Context, api *slack.Client, team string) map[string][]string {
	_, places := c.named()
	if len(places) == 0 {
		return nil
	}
	list, err := api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeDisabled(true),
		slack.GetUserGroupsOptionIncludeUsers(true), slack.GetUserGroupsOptionTeamID(team))
	if err != nil {
		c.problem(slackAdvice(err), "Slack: the user groups cannot be looked up, so nobody in them could sign (usergroups.list): %s", err)
		return nil
	}
	known := map[string]slack.UserGroup{}
	for _, g := range list {
		known[g.ID] = g
	}
	members := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		g, there := known[id]
		switch {
		case !there:
			c.problem("correct the id", "%s: there is no user group %s", places[id], id)
		case g.DateDelete != 0:
			c.problem("enable it in Slack, or name another", "%s: the user group @%s (%s) is disabled", places[id], g.Handle, id)
		case len(g.Users) == 0:
			c.problem("add people in Slack, or name another", "%s: the user group @%s (%s) is empty", places[id], g.Handle, id)
		default:
			members[id] = g.Users
			c.fine("%s: %s is @%s, with %d people", places[id], id, g.Handle, len(g.Users))
		}
	}
	return members
}

// checkPeople looks up everybody who is named, and as many members of groups
// as it may. Then it is known whether the rules can be met at all.
func (c *checker) checkPeople(ctx context.Context, api *slack.Client, team string, members map[string][]string) {
	places, groups := c.named()
	ids := slices.Sorted(maps.Keys(places))
	for _, g := range slices.Sorted(maps.Keys(members)) {
		for _, u := range members[g] {
			if _, ok := places[u]; !ok && !slices.Contains(ids, u) {
				ids = append(ids, u)
			}
		}
	}
	complete := len(members) == len(groups)
	if len(ids) > mostPeople {
		c.unknown("", "Slack: of the %d people who may sign or ask, only %d were looked up", len(ids), mostPeople)
		ids, complete = ids[:mostPeople], false
	}
	able := map[string]bool{}
	for _, id := range ids {
		u, err := api.GetUserInfoContext(ctx, id)
		if err != nil && !isCode(err, "user_not_found", "user_not_visible") {
			c.unknown(slackAdvice(err), "Slack: who %s is (users.info): %s", id, err)
			complete = false
			continue
		}
		why := "is nobody in this workspace"
		if err == nil {
			why = unable(u, team)
		}
		switch place, isNamed := places[id]; {
		case why == "":
			able[id] = true
			if isNamed {
				c.fine("%s: %s is %s", place, id, u.Name)
			}
		case isNamed:
			c.problem("name somebody else", "%s: %s %s, and so is not heard", place, id, why)
		}
	}
	if complete {
		c.checkQuorums(ctx, able, members)
	}
}

// unable says why the bot does not hear the person. It is as strict as the bot
// is at a click.
func unable(u *slack.User, team string) string {
	switch {
	case u.Deleted:
		return "is deactivated"
	case u.IsBot, u.IsWorkflowBot, u.IsConnectorBot, u.ID == "USLACKBOT":
		return "is a bot"
	case u.IsStranger, u.TeamID != "" && u.TeamID != team:
		return "belongs to another workspace"
	case u.IsRestricted, u.IsUltraRestricted, u.IsInvitedUser:
		return "is a guest"
	}
	return ""
}

// checkQuorums has everybody sign everything that a stranger asked for, and
// sees what is still open.
func (c *checker) checkQuorums(ctx context.Context, able map[string]bool, members map[string][]string) {
	rules, err := policy.New(c.config.Policy)
	if err != nil {
		return // said before
	}
	met := true
	for _, at := range slices.Sorted(maps.Keys(c.rules())) {
		tool := strings.TrimPrefix(at, "policy.tools.")
		ruling, err := rules.Rule(ctx, approvals.Proposal{Call: approvals.ToolCall{Name: tool}, Gate: approvals.GateDeclared, At: c.Now()})
		ask, asks := ruling.(approvals.Ask)
		if err != nil || !asks {
			continue
		}
		if !everybodySigns(ask, able, members, c.Now()) {
			met = false
			c.problem("name more people, or need fewer", "%s: even if everybody signs who may, the quorums are not met: one person fills one place", at)
		}
	}
	if met {
		c.fine("policy: every rule can be met by the people who are there")
	}
}

func everybodySigns(ask approvals.Ask, able map[string]bool, members map[string][]string, at time.Time) bool {
	call := approvals.ToolCall{ID: "call", Name: "tool", Args: []byte("{}")}
	b, _, err := approvals.Open(approvals.Batch{ID: "batch", Run: "run", Requester: "somebody", OpenedAt: at}, []approvals.Deferral{{Call: call, Ask: ask}}, nil)
	if err != nil {
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(able)) {
		by := approvals.Principal{User: approvals.UserID(id), GroupsAt: at}
		for g, users := range members {
			if slices.Contains(users, id) {
				by.Groups = append(by.Groups, approvals.GroupID(g))
			}
		}
		next, _, err := b.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: call.ID, By: by, Verdict: approvals.Approve, Digest: approvals.DigestOf(b.ID, call), At: at,
		}})
		if err == nil { // otherwise they may not sign this one, or it is signed
			b = next
		}
	}
	return b.Approvals[0].Status == approvals.Approved
}
