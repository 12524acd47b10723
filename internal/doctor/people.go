package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
)

// named is who the configuration and its policy name, and the first place of
// each.
func (s slackCheck) named() (users map[approvals.UserID]string, groups map[approvals.GroupID]string) {
	users, groups = map[approvals.UserID]string{}, map[approvals.GroupID]string{}
	named := func(at string, of []approvals.UserID, in []approvals.GroupID) {
		for _, u := range of {
			if users[u] == "" && config.IsUser(string(u)) {
				users[u] = at + ".users"
			}
		}
		for _, g := range in {
			if groups[g] == "" && config.IsGroup(string(g)) {
				groups[g] = at + ".groups"
			}
		}
	}
	for i, a := range s.config.Agents {
		if a.Who != nil {
			named(fmt.Sprintf("agents[%d].who", i), a.Who.Users, a.Who.Groups)
		}
		if a.Owners != nil {
			named(fmt.Sprintf("agents[%d].owners", i), a.Owners.Users, a.Owners.Groups)
		}
	}
	for i, g := range s.config.Gateways {
		if g.Owners != nil {
			named(fmt.Sprintf("gateways[%d].owners", i), g.Owners.Users, g.Owners.Groups)
		}
	}
	if s.policy == nil {
		return users, groups
	}
	more, others := s.policy.Named()
	maps.Copy(more, users)
	maps.Copy(others, groups)
	return more, others
}

// checkGroups looks at the groups that are named, and says how many are in
// them.
func (s slackCheck) checkGroups(ctx context.Context) {
	_, places := s.named()
	if len(places) == 0 {
		return
	}
	list, err := s.lookup.groups(ctx)
	if err != nil && !isRefusal(err) {
		s.unknown(slackAdvice(err), "Slack: which user groups there are (usergroups.list): %s", err)
		return
	}
	if err != nil {
		s.problem(slackAdvice(err), "Slack: cannot look up user groups (usergroups.list), so nobody in a group could approve: %s", err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		if config.IsChannel(string(id)) {
			s.checkMembers(ctx, id, places[id])
			continue
		}
		g, there := list[string(id)]
		switch {
		case !there:
			s.problem("correct the id", "%s: there is no user group %s", places[id], id)
		case g.DateDelete != 0:
			s.problem("enable it in Slack, or name another", "%s: the user group @%s (%s) is disabled", places[id], g.Handle, id)
		case len(g.Users) == 0:
			s.problem("add people in Slack, or name another", "%s: the user group @%s (%s) is empty", places[id], g.Handle, id)
		default:
			s.fine("%s: %s is @%s, with %s", places[id], id, g.Handle, counted(len(g.Users), "person", "people"))
		}
	}
}

// checkMembers looks at a channel whose members approve.
func (s slackCheck) checkMembers(ctx context.Context, id approvals.GroupID, place string) {
	members, _, err := s.lookup.Members(ctx, id)
	if err != nil && !isRefusal(err) {
		s.unknown(slackAdvice(err), "%s: who is in the channel %s (conversations.members): %s", place, id, err)
		return
	}
	if err != nil {
		advice := "correct the id; write /invite @countersign there"
		if more := slackAdvice(err); more != "" {
			advice += "; " + more
		}
		s.problem(advice, "%s: cannot look up who is in the channel %s: %s", place, id, err)
		return
	}
	s.fine("%s: %s is a channel with %s", place, id, counted(len(members), "person", "people"))
}

// checkPeople looks up everyone who is named.
func (s slackCheck) checkPeople(ctx context.Context) {
	places, _ := s.named()
	for _, id := range slices.Sorted(maps.Keys(places)) {
		u, err := s.lookup.person(ctx, id)
		var why string
		switch {
		case isCode(err, "user_not_found", "user_not_visible"):
			why = "is not in this workspace"
		case err != nil:
			s.unknown(slackAdvice(err), "Slack: who %s is (users.info): %s", id, err)
			continue
		default:
			why = s.lookup.unable(u)
			if guest := strings.HasPrefix(why, "is a guest") || strings.HasPrefix(why, "belongs to"); guest && s.signsByName(id) {
				s.fine("%s: %s is %s, who %s and can approve where they are named", places[id], id, u.Name, why)
				continue
			}
		}
		if why == "" {
			s.fine("%s: %s is %s", places[id], id, u.Name)
			continue
		}
		s.problem("name someone else", "%s: %s %s, so the bot ignores them", places[id], id, why)
	}
}

// checkRequesters looks up who counts as the requester of what other agents ask. If an
// id is nobody's, or a bot's, whoever has the credential could approve what they asked
// for.
func (s slackCheck) checkRequesters(ctx context.Context) {
	for _, p := range s.requesters() {
		u, err := s.lookup.person(ctx, approvals.UserID(p.id))
		const correct = "correct the id"
		switch {
		case isCode(err, "user_not_found", "user_not_visible"):
			s.problem(correct, "%s: %s is not in this workspace, so the person whose credential it is can approve their own requests", p.at, p.id)
		case err != nil:
			s.unknown(slackAdvice(err), "%s: who %s is (users.info): %s", p.at, p.id, err)
		case isBot(u):
			s.problem(correct, "%s: %s is a bot, so the person whose credential it is can approve their own requests", p.at, p.id)
		case u.Deleted:
			s.warn("name the person who has the credential now", "%s: %s (%s) is deactivated", p.at, p.id, u.Name)
		default:
			s.fine("%s: %s is %s", p.at, p.id, u.Name)
		}
	}
}

// requesters are the people whom the configuration makes the requesters of other agents,
// each at every place.
func (s slackCheck) requesters() []place {
	var all []place
	of := func(at string, a config.RemoteAgent) {
		if a.Owner != "" {
			all = append(all, place{at + ".owner", string(a.Owner)})
		}
		if a.Triggers == nil {
			return
		}
		for _, u := range a.Triggers.Users {
			all = append(all, place{at + ".triggers.users", string(u)})
		}
	}
	for i, a := range s.config.RemoteAgents {
		of(fmt.Sprintf("remote_agents[%d]", i), a)
	}
	for i, g := range s.config.Gateways {
		for n, client := range g.Remotes() {
			of(fmt.Sprintf("gateways[%d].clients[%d]", i, n), client)
		}
	}
	return all
}

// checkRoster finds out whether enough people can approve under every rule. It
// looks up who is named, and as many members of groups as it may.
func (s slackCheck) checkRoster(ctx context.Context) {
	if s.policy == nil {
		return // said before
	}
	roster, more, err := RosterOf(ctx, s.policy, s.lookup)
	if err != nil {
		s.unknown(slackAdvice(err), "%s: whether enough people can approve: %s", s.config.Policy, err)
		return
	}
	if more > 0 {
		s.unknown("", "Slack: %s", counted(more, "more person who can approve, assumed to be a member", "more people who can approve, assumed to be members"))
	}
	o := s.judging
	o.Roster = roster
	_, err = policy.Load(s.config.Policy, o)
	for _, p := range config.Problems(err) {
		s.problem("", "%s", p)
	}
	if err == nil {
		s.fine("%s: enough people can approve under every rule", s.config.Policy)
	}
}

// signsByName reports whether this person is named as one who decides, and not as
// one who starts an agent, which guests never can.
func (s slackCheck) signsByName(id approvals.UserID) bool {
	for _, a := range s.config.Agents {
		if a.Who != nil && slices.Contains(a.Who.Users, id) {
			return false
		}
	}
	return true
}

// unable returns why the bot ignores the person. It is as strict as the bot is
// at a click of someone who is not named by id.
func (l *SlackLookup) unable(u *slack.User) string {
	switch {
	case u.Deleted:
		return "is deactivated"
	case isBot(u):
		return "is a bot"
	case u.IsStranger, u.TeamID != "" && u.TeamID != l.team && (l.org == "" || u.Enterprise.EnterpriseID != l.org):
		return "belongs to another workspace"
	case u.IsRestricted, u.IsUltraRestricted, u.IsInvitedUser:
		return "is a guest"
	}
	return ""
}

func isBot(u *slack.User) bool {
	return u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || u.ID == "USLACKBOT"
}
