package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Why somebody is not heard.
var (
	errOtherTeam = errors.New("another workspace")
	errNoTeam    = errors.New("no workspace in the payload")
	errBot       = errors.New("a bot")
	errGone      = errors.New("a deactivated account")
	errGuest     = errors.New("a guest")
	errStranger  = errors.New("somebody from another organisation")
	errLookup    = errors.New("lookup failed")
)

// A lookupError is a question to Slack that was not answered. It says nothing
// about the person.
type lookupError struct {
	what string // "account" or "group"
	id   string
	err  error
}

func (e *lookupError) Error() string   { return fmt.Sprintf("look up %s %s: %v", e.what, e.id, e.err) }
func (e *lookupError) Unwrap() []error { return []error{errLookup, e.err} }

// A notAllowedError is a person who may not start the agent.
type notAllowedError struct {
	agent string
	from  approvals.From
}

func (e *notAllowedError) Error() string { return "may not start the agent " + e.agent }

// directory knows who people are and which groups they are in, as Slack said
// it a moment ago. What it cannot find out it does not guess.
type directory struct {
	api   *api
	memos memos
	team  string
	age   time.Duration
	now   func() time.Time
}

// account is what is remembered of a person.
type account struct {
	At       time.Time `json:"at"`
	Team     string    `json:"team"`
	Bot      bool      `json:"bot,omitempty"`
	Gone     bool      `json:"gone,omitempty"`
	Guest    bool      `json:"guest,omitempty"`
	Stranger bool      `json:"stranger,omitempty"`
}

// roster is what is remembered of a user group.
type roster struct {
	At    time.Time `json:"at"`
	Users []string  `json:"users"`
}

// principal resolves the person for these groups.
func (d *directory) principal(ctx context.Context, user, team string, groups []approvals.GroupID) (approvals.Principal, error) {
	if err := d.admit(ctx, user, team); err != nil {
		return approvals.Principal{}, err
	}
	p := approvals.Principal{User: approvals.UserID(user), GroupsAt: d.now()}
	rosters := make([]roster, len(groups))
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { rosters[i], errs[i] = d.roster(ctx, string(g)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return approvals.Principal{}, err
	}
	for i, g := range groups {
		if rosters[i].At.Before(p.GroupsAt) {
			p.GroupsAt = rosters[i].At
		}
		if slices.Contains(rosters[i].Users, user) {
			p.Groups = append(p.Groups, g)
		}
	}
	return p, nil
}

// admit refuses everybody who is not a full member of the workspace. team is
// what the payload says of the person, if it says anything.
func (d *directory) admit(ctx context.Context, user, team string) error {
	if team != "" && team != d.team {
		return errStranger
	}
	if !idForm.MatchString(user) {
		return &lookupError{what: "account", id: brief(user, 32), err: errPointer}
	}
	a, err := d.account(ctx, user)
	if err != nil {
		return err
	}
	switch {
	case a.Gone:
		return errGone
	case a.Bot:
		return errBot
	case a.Stranger, a.Team != "" && a.Team != d.team:
		return errStranger
	case a.Guest:
		return errGuest
	}
	return nil
}

func (d *directory) account(ctx context.Context, user string) (account, error) {
	return remembered(ctx, d, "user", "account", user, func() (account, error) {
		u, err := d.api.user(ctx, user)
		if err != nil {
			return account{}, err
		}
		return account{
			At: d.now(), Team: u.TeamID, Gone: u.Deleted, Stranger: u.IsStranger,
			Bot:   u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || user == "USLACKBOT",
			Guest: u.IsRestricted || u.IsUltraRestricted || u.IsInvitedUser,
		}, nil
	})
}

func (d *directory) roster(ctx context.Context, group string) (roster, error) {
	if !idForm.MatchString(group) {
		return roster{}, &lookupError{what: "group", id: brief(group, 32), err: errors.New("not the id of a user group")}
	}
	return remembered(ctx, d, "group", "group", group, func() (roster, error) {
		users, err := d.api.members(ctx, d.team, group)
		return roster{At: d.now(), Users: users}, err
	})
}

func (a account) fetched() time.Time { return a.At }
func (r roster) fetched() time.Time  { return r.At }

// remembered answers from the memo if that is young enough, and asks Slack
// otherwise. A memo that cannot be read or written costs a question, no more.
func remembered[T interface{ fetched() time.Time }](ctx context.Context, d *directory, kind, what, id string, ask func() (T, error)) (T, error) {
	key := approvals.NewID(kind, approvals.PartitionOf(d.team, id), strings.ToLower(d.team+"-"+id))
	var known T
	raw, version, err := d.memos.Memo(ctx, key, kind)
	if err == nil && len(raw) > 0 && json.Unmarshal(raw, &known) == nil {
		if age := d.now().Sub(known.fetched()); age >= 0 && age <= d.age {
			return known, nil
		}
	}
	fresh, askErr := ask()
	if askErr != nil {
		return fresh, &lookupError{what: what, id: id, err: askErr}
	}
	if raw, err := json.Marshal(fresh); err == nil {
		_ = d.memos.CommitMemo(ctx, key, kind, raw, version, 0) // somebody else's answer is as good
	}
	return fresh, nil
}
