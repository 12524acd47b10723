package slacksim

import (
	"slices"
)

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

// stranger reports whether a person belongs to another organization or
// workspace than the installation.
func (s *installations) stranger(in *installation, p *Person) bool {
	colleague := s.owns(in, p.Team) || (s.inOrg(p.Team) && s.inOrg(in.team))
	return p.Stranger || !colleague
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
