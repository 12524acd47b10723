package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Why somebody is not heard.
var (
	ErrBot      = errors.New("a bot")
	ErrGone     = errors.New("a deactivated account")
	ErrGuest    = errors.New("a guest")
	ErrStranger = errors.New("somebody from another organization")
	ErrLookup   = errors.New("lookup failed")
)

// A LookupError is a question that was not answered, by Slack or by the store.
// It says nothing about the person.
type LookupError struct {
	What string // "account", "group" or "absences"
	Id   string
	Err  error
}

func (e *LookupError) Error() string { return fmt.Sprintf("look up %s %s: %v", e.What, e.Id, e.Err) }

func (e *LookupError) Unwrap() []error { return []error{ErrLookup, e.Err} }

// A NotAllowedError is a person who may not start the agent.
type NotAllowedError struct {
	Agent string
	From  approvals.From
}

func (e *NotAllowedError) Error() string { return "may not start the agent " + e.Agent }

// Directory knows who people are and which groups they are in, as Slack said
// it a moment ago. What it cannot find out it does not guess.
type Directory struct {
	Api        *slackapi.Client
	Memos      memo.Store
	Team       string // the workspace, or the organization, that installed the app
	Enterprise string // the organization of the workspace, if it has one
	Age        time.Duration
	Ahead      time.Duration // so long before it is too old, an answer that is needed is renewed; 0: never
	leisurely  bool          // older answers will do
	Now        func() time.Time
	calls      Calls // only for its Readers
}

// New returns d with the port through which its [Reader]s load arguments.
func New(d Directory, calls Calls) *Directory {
	d.calls = calls
	return &d
}

// Account is what is remembered of a person.
type Account struct {
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

// Sought is what a person is looked up for.
type Sought struct {
	Groups []approvals.GroupID
	Named  []approvals.UserID // who counts by name, guests and strangers too
	Others bool               // whether somebody may sign in the place of another
}

// SoughtBy is what a person is looked up for where these are asked.
func SoughtBy(a approvals.Asked) Sought {
	return Sought{Groups: a.Groups, Named: a.Users, Others: a.Delegation}
}

// SoughtFor is what matters to the calls of the batches that are open.
func SoughtFor(batches ...approvals.Batch) Sought {
	var what Sought
	for _, b := range batches {
		one := SoughtBy(b.Asked())
		what.Groups, what.Named = append(what.Groups, one.Groups...), append(what.Named, one.Named...)
		what.Others = what.Others || one.Others
	}
	slices.Sort(what.Groups)
	what.Groups = slices.Compact(what.Groups)
	return what
}

func (w Sought) names(user approvals.UserID) bool {
	return user != "" && slices.Contains(w.Named, user)
}

// Principal resolves the person: in which of the groups they are, and for whom
// they stand in. A guest or somebody of another organization is in no group of
// ours and stands in for nobody, and is refused unless they are named.
func (d *Directory) Principal(ctx context.Context, user, team string, what Sought) (approvals.Principal, error) {
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	member, err := d.Admitted(asking, user, team, what)
	if err != nil {
		return approvals.Principal{}, err
	}
	p := approvals.Principal{User: approvals.UserID(user), GroupsAt: d.Now()}
	if !member {
		return p, nil
	}
	rosters, err := d.rosters(asking, what.Groups)
	if err != nil {
		return approvals.Principal{}, err
	}
	p.Groups, p.GroupsAt = rosters.With(user, p.GroupsAt)
	if what.Others {
		p.For, err = d.absentFor(asking, p.User, what, rosters)
	}
	return p, err
}

// Admitted refuses everybody who can take no part. member is whether they are
// a full member; who is not is named.
func (d *Directory) Admitted(ctx context.Context, user, team string, what Sought) (member bool, err error) {
	named := what.names(approvals.UserID(user))
	if !blockkit.IDForm.MatchString(user) {
		return false, &LookupError{What: "account", Id: blockkit.Brief(user, 32), Err: ref.ErrPointer}
	}
	elsewhere := team != "" && team != d.Team && d.Enterprise == ""
	if elsewhere && !named {
		return false, ErrStranger
	}
	a, err := d.Account(ctx, user)
	if err == nil {
		err = d.Barred(a)
	}
	if err == nil && elsewhere {
		err = ErrStranger
	}
	if named && (errors.Is(err, ErrGuest) || errors.Is(err, ErrStranger)) {
		return false, nil
	}
	return err == nil, err
}

// Admit refuses everybody who is not a full member of the workspace or of its
// organization. team is what the payload says of the person, if it says
// anything.
func (d *Directory) Admit(ctx context.Context, user, team string) error {
	_, err := d.Admitted(ctx, user, team, Sought{})
	return err
}

// Barred is why the person does not count among those of a group.
func (d *Directory) Barred(a Account) error {
	colleague := a.Team == d.Team || (d.Enterprise != "" && a.Enterprise == d.Enterprise)
	switch {
	case a.Gone:
		return ErrGone
	case a.Bot:
		return ErrBot
	case a.Stranger, !colleague:
		return ErrStranger
	case a.Guest:
		return ErrGuest
	}
	return nil
}

// Account returns what Slack says of a person, as young as the directory demands.
func (d *Directory) Account(ctx context.Context, user string) (Account, error) {
	return remembered(ctx, d, "user", "account", user, func(ctx context.Context, _ Account) (Account, error) {
		at := d.Now()
		u, err := d.Api.User(ctx, user)
		if err != nil {
			return Account{}, err
		}
		return Account{
			At: at, Team: u.TeamID, Enterprise: u.Enterprise.EnterpriseID, Gone: u.Deleted, Stranger: u.IsStranger,
			Bot:   u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || user == "USLACKBOT",
			Guest: u.IsRestricted || u.IsUltraRestricted || u.IsInvitedUser,
			Zone:  u.TZ, Offset: u.TZOffset,
		}, nil
	})
}

func (a Account) fetched() time.Time { return a.At }

// Key is where something of this kind is remembered.
func (d *Directory) Key(kind, id string) string {
	return approvals.NewID(kind, approvals.PartitionOf(d.Team, id), strings.ToLower(d.Team+"-"+id))
}

// Forget drops what is remembered, so that the next question goes to Slack. An
// answer that is on its way from before is not kept either: the memo has moved.
// Nor does anybody join those who wait for it.
func (d *Directory) Forget(ctx context.Context, kind, id string) error {
	if !blockkit.IDForm.MatchString(id) {
		return nil
	}
	defer d.Api.Asks.Forget(d.Key(kind, id))
	for range memo.Attempts {
		_, version, err := d.Memos.Memo(ctx, d.Key(kind, id), kind)
		if err != nil {
			return fmt.Errorf("look what is remembered of %s: %w", id, err)
		}
		if version == 0 {
			return nil
		}
		err = d.Memos.CommitMemo(ctx, d.Key(kind, id), kind, []byte("{}"), version, 0)
		if !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("forget %s: %w", id, approvals.ErrConflict)
}

// Tools knows what the tools of the agents declare.
type Tools interface {
	ToolSpec(agent, name string) (agentrun.Spec, bool)
}
