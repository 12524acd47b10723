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
		if !userID.MatchString(string(u)) {
			problems = append(problems, fmt.Errorf("%s.users: %q is not a user id such as U0123456789; names are not accepted because people can change them", at, u))
		}
	}
	for _, g := range p.Groups {
		if !groupID.MatchString(string(g)) {
			problems = append(problems, fmt.Errorf("%s.groups: %q is not a user group id such as S0123456789", at, g))
		}
	}
	return errors.Join(problems...)
}

func (p People) from() approvals.From { return approvals.From{Users: p.Users, Groups: p.Groups} }

// IsUser reports whether this is what Slack's ids of people look like.
func IsUser(id string) bool { return userID.MatchString(id) }

// IsGroup reports whether this is what Slack's ids of user groups look like.
func IsGroup(id string) bool { return groupID.MatchString(id) }

// IsChannel reports whether this is what Slack's ids of channels look like.
func IsChannel(id string) bool { return channelID.MatchString(id) }
