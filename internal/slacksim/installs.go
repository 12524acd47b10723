package slacksim

import (
	"slices"
)

// Workspace is one more workspace beside the first, whose identity is
// [TeamID], [TeamName] and [TeamDomain].
type Workspace struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
	// Token is what the app sends for its installation there. When it is
	// empty the app is not installed there and its people are only met in
	// shared channels.
	Token string `json:"-"`
	// Org puts it into Config.Enterprise. Otherwise its people are strangers
	// to the first workspace.
	Org bool `json:"is_org,omitempty"`
}

// Enterprise is the organization that the first workspace belongs to.
type Enterprise struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Installed means that the app is installed in the whole organization
	// with Config.BotToken: interactions carry no team, methods that list
	// want a team_id, and workspaces of the organization have no own tokens.
	Installed bool `json:"is_enterprise_install,omitempty"`
}

// installation is the app in one workspace, or in the organization.
type installation struct {
	team           string // empty: the organization
	token          string
	botUser, botID string
	ended          string // the error that calls get once it is over
}

func (in *installation) org() bool { return in.team == "" }

// installations are the workspaces and the app in them: who the app is, where,
// and what it can look at from there.
type installations struct {
	*engine

	teams    []Workspace // the first one first
	installs []*installation
}

// install makes the installations that the config asks for, and the bot
// users of all but the first, which is among the people.
func (s *world) install() {
	s.teams = append([]Workspace{{ID: TeamID, Name: TeamName, Domain: TeamDomain, Org: true}}, s.cfg.Workspaces...)
	first := &installation{team: TeamID, token: s.cfg.BotToken, botUser: BotUser, botID: BotID}
	if e := s.cfg.Enterprise; e != nil && e.Installed {
		first.team = ""
	}
	s.installs = []*installation{first}
	for i, w := range s.cfg.Workspaces {
		if w.Token == "" || (first.org() && w.Org) {
			continue
		}
		in := &installation{team: w.ID, token: w.Token, botUser: BotUser + itoa(i+2), botID: BotID + itoa(i+2)}
		s.installs = append(s.installs, in)
		s.people = append(s.people, &Person{ID: in.botUser, Name: BotName, RealName: "Countersign", Bot: true, Team: w.ID})
		for _, c := range s.channels {
			if c.Team == w.ID && !c.has(in.botUser) {
				c.Members = append(c.Members, in.botUser)
			}
		}
	}
}

// installed returns the app's installation for people of a workspace, or nil.
func (s *installations) installed(team string) *installation {
	for _, in := range s.installs {
		if in.ended == "" && (in.team == team || (in.org() && s.inOrg(team))) {
			return in
		}
	}
	return nil
}

// withToken returns the installation that a token is of, or nil.
func (s *installations) withToken(token string) *installation {
	for _, in := range s.installs {
		if in.token == token {
			return in
		}
	}
	return nil
}

// ofBot returns the installation whose bot user this is, or nil.
func (s *installations) ofBot(user string) *installation {
	for _, in := range s.installs {
		if in.botUser == user {
			return in
		}
	}
	return nil
}

// workspace returns a workspace by id; the first one for an empty id.
func (s *installations) workspace(id string) Workspace {
	for _, w := range s.teams {
		if w.ID == id {
			return w
		}
	}
	return s.teams[0]
}

// inOrg reports whether a workspace is in the organization.
func (s *installations) inOrg(team string) bool {
	return s.cfg.Enterprise != nil && slices.ContainsFunc(s.teams, func(w Workspace) bool { return w.ID == team && w.Org })
}

// home is the workspace that an installation writes from: its own, and the
// first one for an organization.
func (s *installations) home(in *installation) Workspace { return s.workspace(in.team) }

// owns reports whether a workspace is one that the app is installed in with
// this installation.
func (s *installations) owns(in *installation, team string) bool {
	return in.team == team || (in.org() && s.inOrg(team))
}

// sees reports whether an installation can look at a channel: one of its
// workspaces has it or shares it.
func (s *installations) sees(in *installation, c *channel) bool {
	if c.IM || c.MPIM {
		return c.has(in.botUser)
	}
	return s.owns(in, c.Team) || slices.ContainsFunc(c.Shared, func(t string) bool { return s.owns(in, t) })
}

// knows reports whether an installation can look at a person: somebody of
// its workspaces, or of a channel that they share.
func (s *world) knows(in *installation, p *Person) bool {
	if s.owns(in, p.Team) {
		return true
	}
	return slices.ContainsFunc(s.channels, func(c *channel) bool { return c.has(p.ID) && s.sees(in, c) })
}

// stranger reports whether a person belongs to somebody else than those the
// installation is for.
func (s *installations) stranger(in *installation, p *Person) bool {
	colleague := s.owns(in, p.Team) || (s.inOrg(p.Team) && s.inOrg(in.team))
	return p.Stranger || !colleague
}

// external reports whether a channel is shared with another organization.
func (s *installations) external(c *channel) bool {
	return slices.ContainsFunc(c.Shared, func(t string) bool { return !s.inOrg(t) || !s.inOrg(c.Team) })
}

// known finds somebody whom the call may name by id.
func (s *world) known(c *call, id string) *Person {
	if p := s.userByID(id); p != nil && s.knows(c.in, p) {
		return p
	}
	return nil
}

// listed returns the workspace that a method which lists is asked about.
// With a token of an organization it has to be named.
func (s *installations) listed(c *call) (string, *failure) {
	team := c.str("team_id")
	switch {
	case !c.in.org():
		return c.in.team, nil // team_id is ignored
	case team == "":
		return "", fail("missing_argument")
	case !s.owns(c.in, team):
		return "", fail("invalid_team")
	}
	return team, nil
}

// enterpriseOf is the organization of a workspace as payloads name it.
func (s *installations) enterpriseOf(team string) any {
	if team != "" && !s.inOrg(team) {
		return nil
	}
	if e := s.cfg.Enterprise; e != nil {
		return object{"id": e.ID, "name": e.Name}
	}
	return nil
}

func (s *installations) enterpriseID(team string) any {
	if o, ok := s.enterpriseOf(team).(object); ok {
		return o["id"]
	}
	return nil
}

// SetInstalled uninstalls the app from a workspace (the first one for an
// empty id) or installs it again, with the same token. Uninstalling tells
// the app with tokens_revoked and app_uninstalled, in no fixed order.
func (s *events) SetInstalled(team string, installed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, in := range s.installs {
		if in.team != team && (team != "" || i != 0) {
			continue
		}
		if installed {
			in.ended = ""
		} else if in.ended == "" {
			first, second := s.envelope(in, nil, in.team, object{
				"type": "tokens_revoked", "tokens": object{"oauth": []string{}, "bot": []string{in.botUser}},
			}), s.envelope(in, nil, in.team, object{"type": "app_uninstalled"})
			if s.lastID%2 == 0 {
				first, second = second, first
			}
			s.sendEvent(first)
			s.sendEvent(second)
			in.ended = "account_inactive"
		}
		s.changed()
		return nil
	}
	return noSuch("installation", team)
}
