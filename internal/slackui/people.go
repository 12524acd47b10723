package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Why somebody is not heard.
var (
	errBot      = errors.New("a bot")
	errGone     = errors.New("a deactivated account")
	errGuest    = errors.New("a guest")
	errStranger = errors.New("somebody from another organisation")
	errLookup   = errors.New("lookup failed")
)

// A lookupError is a question that was not answered, by Slack or by the store.
// It says nothing about the person.
type lookupError struct {
	what string // "account", "group" or "absences"
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
	api        *api
	memos      memos
	team       string // the workspace, or the organisation, that installed the app
	enterprise string // the organisation of the workspace, if it has one
	age        time.Duration
	ahead      time.Duration // so long before it is too old, an answer that is needed is renewed; 0: never
	leisurely  bool          // older answers will do
	now        func() time.Time
}

// account is what is remembered of a person.
type account struct {
	At         time.Time `json:"at"`
	Team       string    `json:"team"`
	Enterprise string    `json:"enterprise,omitempty"`
	Bot        bool      `json:"bot,omitempty"`
	Gone       bool      `json:"gone,omitempty"`
	Guest      bool      `json:"guest,omitempty"`
	Stranger   bool      `json:"stranger,omitempty"`
	Zone       string    `json:"zone,omitempty"`
	Offset     int       `json:"offset,omitempty"` // seconds east of UTC, if the zone is not known here
}

// sought is what a person is looked up for.
type sought struct {
	groups []approvals.GroupID
	named  []approvals.UserID // who counts by name, guests and strangers too
	others bool               // whether somebody may sign in the place of another
}

// soughtFor is what matters to the calls of the batches that are open.
func soughtFor(batches ...approvals.Batch) sought {
	var what sought
	for _, b := range batches {
		what.groups = append(what.groups, b.Groups()...)
		for _, a := range b.Approvals {
			if a.Status != approvals.Pending {
				continue
			}
			what.others = what.others || a.Requirement.Delegation
			for _, q := range slices.Concat(a.Requirement.Quorums, a.Requirement.Vetoes) {
				what.named = append(what.named, q.From.Users...)
				what.groups = append(what.groups, q.From.Groups...)
			}
		}
	}
	what.groups = slices.DeleteFunc(what.groups, func(g approvals.GroupID) bool { return g == "" })
	slices.Sort(what.groups)
	what.groups = slices.Compact(what.groups)
	return what
}

func (w sought) names(user approvals.UserID) bool {
	return user != "" && slices.Contains(w.named, user)
}

// principal resolves the person: in which of the groups they are, and for whom
// they stand in. A guest or somebody of another organisation is in no group of
// ours and stands in for nobody, and is refused unless they are named.
func (d *directory) principal(ctx context.Context, user, team string, what sought) (approvals.Principal, error) {
	asking, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	member, err := d.admitted(asking, user, team, what)
	if err != nil {
		return approvals.Principal{}, err
	}
	p := approvals.Principal{User: approvals.UserID(user), GroupsAt: d.now()}
	if !member {
		return p, nil
	}
	rosters, err := d.rosters(asking, what.groups)
	if err != nil {
		return approvals.Principal{}, err
	}
	p.Groups, p.GroupsAt = rosters.with(user, p.GroupsAt)
	if what.others {
		p.For, err = d.absentFor(asking, p.User, what, rosters)
	}
	return p, err
}

// admitted refuses everybody who can take no part. member is whether they are
// a full member; who is not is named.
func (d *directory) admitted(ctx context.Context, user, team string, what sought) (member bool, err error) {
	named := what.names(approvals.UserID(user))
	if !idForm.MatchString(user) {
		return false, &lookupError{what: "account", id: brief(user, 32), err: errPointer}
	}
	elsewhere := team != "" && team != d.team && d.enterprise == ""
	if elsewhere && !named {
		return false, errStranger
	}
	a, err := d.account(ctx, user)
	if err == nil {
		err = d.barred(a)
	}
	if err == nil && elsewhere {
		err = errStranger
	}
	if named && (errors.Is(err, errGuest) || errors.Is(err, errStranger)) {
		return false, nil
	}
	return err == nil, err
}

// admit refuses everybody who is not a full member of the workspace or of its
// organisation. team is what the payload says of the person, if it says
// anything.
func (d *directory) admit(ctx context.Context, user, team string) error {
	_, err := d.admitted(ctx, user, team, sought{})
	return err
}

// barred is why the person does not count among those of a group.
func (d *directory) barred(a account) error {
	colleague := a.Team == d.team || (d.enterprise != "" && a.Enterprise == d.enterprise)
	switch {
	case a.Gone:
		return errGone
	case a.Bot:
		return errBot
	case a.Stranger, !colleague:
		return errStranger
	case a.Guest:
		return errGuest
	}
	return nil
}

func (d *directory) account(ctx context.Context, user string) (account, error) {
	return remembered(ctx, d, "user", "account", user, func(ctx context.Context, _ account) (account, error) {
		at := d.now()
		u, err := d.api.user(ctx, user)
		if err != nil {
			return account{}, err
		}
		return account{
			At: at, Team: u.TeamID, Enterprise: u.Enterprise.EnterpriseID, Gone: u.Deleted, Stranger: u.IsStranger,
			Bot:   u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || user == "USLACKBOT",
			Guest: u.IsRestricted || u.IsUltraRestricted || u.IsInvitedUser,
			Zone:  u.TZ, Offset: u.TZOffset,
		}, nil
	})
}

func (a account) fetched() time.Time { return a.At }

func (d *directory) key(kind, id string) string {
	return approvals.NewID(kind, approvals.PartitionOf(d.team, id), strings.ToLower(d.team+"-"+id))
}

// forget drops what is remembered, so that the next question goes to Slack. An
// answer that is on its way from before is not kept either: the memo has moved.
// Nor does anybody join those who wait for it.
func (d *directory) forget(ctx context.Context, kind, id string) error {
	if !idForm.MatchString(id) {
		return nil
	}
	defer d.api.asks.forget(d.key(kind, id))
	for range attempts {
		_, version, err := d.memos.Memo(ctx, d.key(kind, id), kind)
		if err != nil {
			return fmt.Errorf("look what is remembered of %s: %w", id, err)
		}
		if version == 0 {
			return nil
		}
		err = d.memos.CommitMemo(ctx, d.key(kind, id), kind, []byte("{}"), version, 0)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("forget %s: %w", id, approvals.ErrConflict)
}

// Tools knows what the tools of the agents declare.
type directoryTools interface {
	ToolSpec(agent, name string) (agentrun.Spec, bool)
}

// directoryCalls loads the whole arguments of a call.
type directoryCalls interface {
	Call(ctx context.Context, b approvals.Batch, id approvals.ToolCallID) (approvals.ToolCall, error)
}
