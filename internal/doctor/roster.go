package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// Lookup is what is asked about groups and people.
type Lookup interface {
	Members(ctx context.Context, g approvals.GroupID) ([]approvals.UserID, time.Time, error)
	Able(ctx context.Context, u approvals.UserID) (bool, error)
	AbleByName(ctx context.Context, u approvals.UserID) (bool, error)
}

// MostPeople are looked up at once; Slack limits how many may be.
const MostPeople = 60

// RosterOf looks up who is in the groups that the policy names, and which of
// those people can act. It is an error if a group or a person could not be
// looked up; one that Slack does not know is not in the roster. Of more people
// than mostPeople the rest are taken for members, and how many is returned.
func RosterOf(ctx context.Context, p *policy.Policy, l Lookup) (*policy.Roster, int, error) {
	people, groups := p.Named()
	r := &policy.Roster{People: map[approvals.UserID]policy.Standing{}, Groups: map[approvals.GroupID][]approvals.UserID{}}
	ids := slices.Sorted(maps.Keys(people))
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		members, _, err := l.Members(ctx, g)
		if isCode(err, "no_such_subteam", "subteam_not_found", "channel_not_found", "no_users_found") {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("who is in %s: %w", g, err)
		}
		r.Groups[g] = members
		for _, u := range members {
			if _, named := people[u]; !named {
				ids = append(ids, u)
			}
		}
	}
	named := len(people)
	slices.Sort(ids[named:])
	ids = slices.Concat(ids[:named], slices.Compact(ids[named:]))
	looked := ids[:min(len(ids), max(named, MostPeople))]
	for _, u := range ids[len(looked):] {
		r.People[u] = policy.Member
	}
	standings, err := standingsOf(ctx, looked, l)
	for i, u := range looked {
		if standings[i] != "" {
			r.People[u] = standings[i]
		}
	}
	return r, len(ids) - len(looked), err
}

// atOnce is how many people are asked for at the same time.
const atOnce = 8

func standingsOf(ctx context.Context, users []approvals.UserID, l Lookup) ([]policy.Standing, error) {
	standings, errs := make([]policy.Standing, len(users)), make([]error, len(users))
	var all sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i, u := range users {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			standings[i], errs[i] = standingOf(ctx, u, l)
		})
	}
	all.Wait()
	return standings, errors.Join(errs...)
}

func standingOf(ctx context.Context, u approvals.UserID, l Lookup) (policy.Standing, error) {
	able, err := l.Able(ctx, u)
	if err == nil && able {
		return policy.Member, nil
	}
	if err == nil {
		able, err = l.AbleByName(ctx, u)
	}
	switch {
	case isCode(err, "user_not_found", "user_not_visible"):
		return "", nil // no such person: the id is wrong
	case err != nil:
		return "", fmt.Errorf("who %s is: %w", u, err)
	case able:
		return policy.Guest, nil
	}
	return policy.Gone, nil
}
