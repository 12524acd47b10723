package policy

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// A Roster is a snapshot of who is there and in which group.
type Roster struct {
	People map[approvals.UserID]Standing
	Groups map[approvals.GroupID][]approvals.UserID // user groups, and channels by their members
}

// Standing says whether a person can approve. Someone without one cannot.
type Standing string

// The standings.
const (
	Member Standing = "member" // approves for themselves and as a member of groups
	Guest  Standing = "guest"  // approves only where a quorum names them
	Gone   Standing = "gone"   // a deactivated account or a bot: never approves
)

type rosterForm struct {
	strictyaml.Mark
	People table[text]       `yaml:"people"`
	Groups table[list[text]] `yaml:"groups"`
}

// ReadRoster reads a roster from a YAML file: people with their standings, and
// groups with their members, all by id.
//
//	people: {U0ALICE000: member, U0EVE00000: guest}
//	groups: {S0SRE00000: [U0ALICE000]}
func ReadRoster(path string) (*Roster, error) {
	b, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the roster: %w", err)
	}
	var found strictyaml.Problems
	var f rosterForm
	strictyaml.Decode(path, b, &found, &f)
	r := &Roster{People: map[approvals.UserID]Standing{}, Groups: map[approvals.GroupID][]approvals.UserID{}}
	for _, e := range f.People.Entries {
		if !userID.MatchString(e.Key.Value) {
			found.Wrong(e.Key.Mark, "%q is not a user id such as U0123456789", e.Key.Value)
		}
		if s := Standing(e.Value.Value); e.Value.Value != "" && !slices.Contains([]Standing{Member, Guest, Gone}, s) {
			found.Wrong(e.Value.Mark, "is %q, must be member, guest or gone", e.Value.Value)
		}
		r.People[approvals.UserID(e.Key.Value)] = Standing(e.Value.Value)
	}
	for _, e := range f.Groups.Entries {
		if !groupID.MatchString(e.Key.Value) && !channelID.MatchString(e.Key.Value) {
			found.Wrong(e.Key.Mark, "%q is not the id of a user group or a channel", e.Key.Value)
		}
		in := []approvals.UserID{}
		for _, u := range e.Value.Items {
			if r.People[approvals.UserID(u.Value)] == "" && u.Value != "" {
				found.Wrong(u.Mark, "%s is not under people", u.Value)
			}
			in = append(in, approvals.UserID(u.Value))
		}
		r.Groups[approvals.GroupID(e.Key.Value)] = in
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return r, nil
}
