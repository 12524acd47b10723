package config

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/countersign/countersign/internal/approvals"
)

// People names people and user groups by their ids.
type People struct {
	Users  []approvals.UserID  `yaml:"users"`
	Groups []approvals.GroupID `yaml:"groups"`
}

// Owners decide about an agent itself.
type Owners struct {
	Users   []approvals.UserID  `yaml:"users"`
	Groups  []approvals.GroupID `yaml:"groups"`
	Channel string              `yaml:"channel"` // where they are asked; the first of the agent's channels if left out
}

func (o Owners) people() People { return People{Users: o.Users, Groups: o.Groups} }

// check returns the problems of the owners, if there are any.
func (o *Owners) check(at string, wrong func(format string, args ...any)) {
	if o == nil {
		return
	}
	for _, p := range Problems(o.people().check(at + ".owners")) {
		wrong("%w", p)
	}
	if o.Channel != "" && !channelID.MatchString(o.Channel) {
		wrong("%s.owners.channel: %q is not a channel id such as C0123456789; names are not accepted because they can change", at, o.Channel)
	}
}

// OwnersAsked is where the owners of an agent are asked; empty if they cannot be.
func (a Agent) OwnersAsked() string {
	switch {
	case a.Owners != nil && a.Owners.Channel != "":
		return a.Owners.Channel
	case len(a.Channels) > 0:
		return a.Channels[0]
	}
	return ""
}

// The forms of Slack's ids. Names are not accepted, because people can change them.
var (
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]{4,31}$`)
	groupID   = regexp.MustCompile(`^S[A-Z0-9]{3,31}$`)
	channelID = regexp.MustCompile(`^[CG][A-Z0-9]{1,31}$`)
)

// check returns the problems of the users and groups that are named here.
func (p People) check(at string) error {
	var problems []error
	if len(p.Users) == 0 && len(p.Groups) == 0 {
		problems = append(problems, fmt.Errorf("%s: names nobody; add users or groups", at))
	}
	for _, u := range p.Users {
		checkUser(at+".users", u, func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) })
	}
	for _, g := range p.Groups {
		if !groupID.MatchString(string(g)) {
			problems = append(problems, fmt.Errorf("%s.groups: %q is not a user group id such as S0123456789", at, g))
		}
	}
	return errors.Join(problems...)
}

// checkUser returns what is wrong with the id of a person.
func checkUser(at string, id approvals.UserID, wrong func(format string, args ...any)) {
	if !userID.MatchString(string(id)) {
		wrong("%s: %q is not a user id such as U0123456789; names are not accepted because people can change them", at, id)
	}
}

func (p People) from() approvals.From { return approvals.From{Users: p.Users, Groups: p.Groups} }

// IsUser reports whether this is what Slack's ids of people look like.
func IsUser(id string) bool { return userID.MatchString(id) }

// IsGroup reports whether this is what Slack's ids of user groups look like.
func IsGroup(id string) bool { return groupID.MatchString(id) }

// IsChannel reports whether this is what Slack's ids of channels look like.
func IsChannel(id string) bool { return channelID.MatchString(id) }
