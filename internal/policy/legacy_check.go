package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Ids as the chat service mints them, see
// https://docs.slack.dev/reference/objects/user-object and .../usergroup-object.
var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{4,}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{3,}$`)
)

// check returns everything that is wrong with the rule at this place.
func check(at string, r Rule) error {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(at+"."+format, args...))
	}
	if r.Refuse != "" {
		if len(r.Quorums) > 0 || r.Deny != 0 || r.RequesterMaySign || r.Within != 0 || r.Why != "" {
			wrong("refuse: a refused call is never signed, so it takes no other key")
		}
		return errors.Join(problems...)
	}
	if len(r.Quorums) == 0 {
		wrong("quorums: name at least one; nobody could ever sign")
	}
	if r.Deny < 0 {
		wrong("deny: is %d, must be 1 or more", r.Deny)
	}
	if r.Within < 0 || r.Within > MaxWithin {
		wrong("within: is %s, must be between 0 and %s", r.Within, MaxWithin)
	}
	for i, q := range r.Quorums {
		place := fmt.Sprintf("quorums[%d]", i)
		if q.Name == "" {
			wrong("%s.name: is missing; approvers read it", place)
		}
		if slices.ContainsFunc(r.Quorums[:i], func(o Quorum) bool { return o.Name == q.Name }) {
			wrong("%s.name: %q is there twice", place, q.Name)
		}
		if q.Need < 1 {
			wrong("%s.need: is %d, must be 1 or more", place, q.Need)
		}
		if err := q.From.Check(at + "." + place + ".from"); err != nil {
			problems = append(problems, err)
		}
		if len(q.From.Groups) == 0 && len(q.From.Users) < q.Need {
			wrong("%s.need: %d signatures are needed and only %d people are named", place, q.Need, len(q.From.Users))
		}
	}
	return errors.Join(problems...)
}

// Check returns everything that is wrong with who is named at this place.
func (f From) Check(at string) error {
	var problems []error
	if len(f.Users) == 0 && len(f.Groups) == 0 {
		problems = append(problems, fmt.Errorf("%s: names nobody", at))
	}
	for _, u := range f.Users {
		if !userID.MatchString(string(u)) {
			problems = append(problems, fmt.Errorf("%s.users: %q is not a user id such as U0123456789; names are not accepted, they can be changed by anybody", at, u))
		}
	}
	for _, g := range f.Groups {
		if !groupID.MatchString(string(g)) {
			problems = append(problems, fmt.Errorf("%s.groups: %q is not a user group id such as S0123456789", at, g))
		}
	}
	return errors.Join(problems...)
}
