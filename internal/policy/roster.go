package policy

import (
	"fmt"
	"os"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
)

// A Roster is a snapshot of who is there and in which group.
type Roster struct {
	People map[approvals.UserID]Standing
	Groups map[approvals.GroupID][]approvals.UserID // user groups, and channels by their members
}

// Standing says when a person is heard. Somebody without one never is.
type Standing string

// The standings.
const (
	Member Standing = "member" // signs for themselves and as a member of groups
	Guest  Standing = "guest"  // signs only where a quorum names them
	Gone   Standing = "gone"   // a deactivated account or a bot: never signs
)

type rosterForm struct {
	mark
	People table[text]       `yaml:"people"`
	Groups table[list[text]] `yaml:"groups"`
}

// ReadRoster reads a roster from a YAML file: people with their standings, and
// groups with their members, all by id.
//
//	people: {U0ALICE000: member, U0EVE00000: guest}
//	groups: {S0SRE00000: [U0ALICE000]}
func ReadRoster(path string) (*Roster, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read the roster: %w", err)
	}
	var found problems
	var f rosterForm
	decode(path, b, &found, &f)
	r := &Roster{People: map[approvals.UserID]Standing{}, Groups: map[approvals.GroupID][]approvals.UserID{}}
	for _, e := range f.People.entries {
		if !userID.MatchString(e.key.s) {
			found.wrong(e.key.mark, "%q is not a user id such as U0123456789", e.key.s)
		}
		if s := Standing(e.val.s); e.val.s != "" && !slices.Contains([]Standing{Member, Guest, Gone}, s) {
			found.wrong(e.val.mark, "is %q, must be member, guest or gone", e.val.s)
		}
		r.People[approvals.UserID(e.key.s)] = Standing(e.val.s)
	}
	for _, e := range f.Groups.entries {
		if !groupID.MatchString(e.key.s) && !channelID.MatchString(e.key.s) {
			found.wrong(e.key.mark, "%q is not the id of a user group or a channel", e.key.s)
		}
		in := []approvals.UserID{}
		for _, u := range e.val.items {
			if r.People[approvals.UserID(u.s)] == "" && u.s != "" {
				found.wrong(u.mark, "%s is not under people", u.s)
			}
			in = append(in, approvals.UserID(u.s))
		}
		r.Groups[approvals.GroupID(e.key.s)] = in
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return r, nil
}
