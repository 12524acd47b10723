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

// Why a person cannot take part.
var (
	ErrBot      = errors.New("a bot")
	ErrGone     = errors.New("a deactivated account")
	ErrGuest    = errors.New("a guest")
	ErrStranger = errors.New("a person from another organization")
	ErrUnknown  = errors.New("a person whom Slack does not know")
	ErrLookup   = errors.New("lookup failed")
)

// A LookupError says that Slack or the store did not answer. It says nothing about
// the person.
type LookupError struct {
	What string // "account", "group" or "absences"
	ID   string
	Err  error
}

func (e *LookupError) Error() string { return fmt.Sprintf("look up %s %s: %v", e.What, e.ID, e.Err) }

func (e *LookupError) Unwrap() []error { return []error{ErrLookup, e.Err} }

// Permanent reports whether asking again would not help, because Slack no longer has the
// group, or does not show it to the app.
func (e *LookupError) Permanent() bool {
	return e.What == "group" && slackapi.HasCode(e.Err, "no_such_subteam", "subteam_disabled", "channel_not_found")
}

// Lasts reports whether asking again would not help until the app or the workspace is
// changed.
func (e *LookupError) Lasts() bool { return slackapi.Lasts(e.Err) }

// Refused reports whether asking again would not help until the app, its token or the
// workspace is changed. What Slack delivers again waits for another token.
func (e *LookupError) Refused() bool { return e.Lasts() || slackapi.TokenRefused(e.Err) }

// A NotAllowedError refuses a person who may not start the agent.
type NotAllowedError struct {
	Agent string
	From  approvals.From
}

func (e *NotAllowedError) Error() string { return "may not start the agent " + e.Agent }

// Directory looks up people and their groups in Slack, and remembers the answers.
type Directory struct {
	API        *slackapi.Client
	Memos      memo.Store
	Team       string        // the workspace, or the organization, that installed the app
	Enterprise string        // the organization of the workspace, if it has one
	Age        time.Duration // how old a remembered answer may be
	Ahead      time.Duration // how long before that age an answer in use is renewed; 0: never
	forDisplay bool          // answers up to displayAge will do
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

// Sought says what to look up about a person.
type Sought struct {
	Groups []approvals.GroupID
	Named  []approvals.UserID // whom a rule names, who may be guests or strangers
	Others bool               // whether someone may approve in the place of another
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

// Principal resolves the person: the groups that they are in, and the people for
// whom they stand in. A guest, or someone from another organization, is refused
// unless a rule names them; then they are in no group and stand in for nobody.
//
// A group that Slack no longer has counts as one without members, so that people of
// the other groups, and those who are named, can still decide. Whoever is none of
// these is refused with the [*LookupError] of that group.
func (d *Directory) Principal(ctx context.Context, user, team string, what Sought) (approvals.Principal, error) {
	p, gone, err := d.Resolve(ctx, user, team, what)
	if err == nil && len(gone) > 0 && len(p.Groups)+len(p.For) == 0 && !what.names(p.User) {
		return approvals.Principal{}, gone[0]
	}
	return p, err
}

// Resolve is [Directory.Principal] for a caller that says itself what the groups that
// Slack no longer has mean. It refuses nobody because of them.
func (d *Directory) Resolve(ctx context.Context, user, team string, what Sought) (p approvals.Principal, gone []*LookupError, err error) {
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	member, err := d.Admitted(asking, user, team, what)
	if err != nil {
		return approvals.Principal{}, nil, err
	}
	p = approvals.Principal{User: approvals.UserID(user), GroupsAt: d.Now()}
	if !member {
		return p, nil, nil
	}
	rosters, gone, err := rostersOf(asking, d, what.Groups)
	if err != nil {
		return approvals.Principal{}, nil, err
	}
	p.Groups, p.GroupsAt = rosters.With(user, p.GroupsAt)
	if what.Others {
		p.For, err = d.absentFor(asking, p.User, what, rosters)
	}
	return p, gone, err
}

// Admitted refuses a person who cannot take part. member says whether they are a
// full member; otherwise they are admitted because what names them.
func (d *Directory) Admitted(ctx context.Context, user, team string, what Sought) (member bool, err error) {
	named := what.names(approvals.UserID(user))
	if !blockkit.IDForm.MatchString(user) {
		return false, &LookupError{What: "account", ID: blockkit.Brief(user, 32), Err: ref.ErrPointer}
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

// Admit refuses a person who is not a full member of the workspace or of its
// organization. team is the person's workspace according to the payload, which may
// leave it out.
func (d *Directory) Admit(ctx context.Context, user, team string) error {
	_, err := d.Admitted(ctx, user, team, Sought{})
	return err
}

// Barred returns why the person does not count as a member of any group, or nil.
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

// Account returns the account of a person, no older than the directory allows. It is
// [ErrUnknown] if Slack answers that there is none, and a [*LookupError] if Slack does
// not answer.
func (d *Directory) Account(ctx context.Context, user string) (Account, error) {
	a, err := remembered(ctx, d, "user", "account", user, func(ctx context.Context, _ Account) (Account, error) {
		at := d.Now()
		u, err := d.API.User(ctx, user)
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
	if e, failed := errors.AsType[*LookupError](err); failed && slackapi.HasCode(err, "user_not_found", "user_not_visible") {
		return Account{}, fmt.Errorf("%w: %w", ErrUnknown, e.Err)
	}
	return a, err
}

// Sender is [Directory.Account] for a person whose command Slack has just delivered. A
// deactivated account sends none, so if it is remembered as deactivated, Slack is asked
// again.
func Sender(ctx context.Context, d *Directory, user string) (Account, error) {
	a, err := d.Account(ctx, user)
	if err != nil || !a.Gone {
		return a, err
	}
	if err := d.Forget(ctx, "user", user); err != nil {
		return Account{}, &LookupError{What: "account", ID: user, Err: err}
	}
	return d.Account(ctx, user)
}

func (a Account) fetched() time.Time { return a.At }

// Key is the id of the memo of something of this kind.
func (d *Directory) Key(kind, id string) string {
	return approvals.NewID(kind, approvals.PartitionOf(d.Team, id), strings.ToLower(d.Team+"-"+id))
}

// Forget drops what is remembered, so that the next lookup asks Slack. The answer
// to a question that is under way is not kept, and later callers do not wait for
// it.
func (d *Directory) Forget(ctx context.Context, kind, id string) error {
	if !blockkit.IDForm.MatchString(id) {
		return nil
	}
	defer d.API.Asks.Forget(d.Key(kind, id))
	for range memo.Attempts {
		_, version, err := d.Memos.Memo(ctx, d.Key(kind, id), kind)
		if err != nil {
			return fmt.Errorf("read what is remembered of %s: %w", id, err)
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

// Tools returns what the tools of the agents declare.
type Tools interface {
	ToolSpec(agent, name string) (agentrun.Spec, bool)
}
