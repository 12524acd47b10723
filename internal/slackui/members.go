package slackui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Members returns who is in the group, a user group or a channel, and when
// Slack said so. It lists whoever Slack lists: [UI.Able] says who of them
// counts. A group that is disabled, unknown or cannot be asked for is an error.
func (u *UI) Members(ctx context.Context, group approvals.GroupID) ([]approvals.UserID, time.Time, error) {
	r, err := u.people.Roster(ctx, string(group))
	if err != nil {
		return nil, time.Time{}, err
	}
	users := make([]approvals.UserID, len(r.Users))
	for i, user := range r.Users {
		users[i] = approvals.UserID(user)
	}
	return users, r.At, nil
}

// Able reports whether the person counts among those of a group: a full member,
// neither a bot nor deactivated. It is an error if that cannot be found out.
func (u *UI) Able(ctx context.Context, user approvals.UserID) (bool, error) {
	return u.able(ctx, user, directory.Sought{})
}

// AbleByName reports whether the person may approve where they are named by id,
// which guests and people of other organizations may as well.
func (u *UI) AbleByName(ctx context.Context, user approvals.UserID) (bool, error) {
	return u.able(ctx, user, directory.Sought{Named: []approvals.UserID{user}})
}

func (u *UI) able(ctx context.Context, user approvals.UserID, what directory.Sought) (bool, error) {
	_, err := u.people.Admitted(ctx, string(user), "", what)
	if errors.Is(err, directory.ErrLookup) || errors.Is(err, directory.ErrUnknown) { // the id is wrong, which is no answer about a person
		return false, err
	}
	return err == nil, nil
}

// Principal says who an authenticated person is for a policy that asks these, as
// for a click. It refuses who cannot take part, such as a deactivated account.
func (u *UI) Principal(ctx context.Context, user approvals.UserID, asked approvals.Asked) (approvals.Principal, error) {
	return u.people.Principal(ctx, string(user), "", directory.SoughtBy(asked))
}

// Admit refuses a person who is not an active full member.
func (u *UI) Admit(ctx context.Context, user approvals.UserID) error {
	return u.people.Admit(ctx, string(user), "")
}

// ByEmail returns the active full member with this address.
func (u *UI) ByEmail(ctx context.Context, email string) (approvals.UserID, error) {
	return u.people.ByEmail(ctx, email)
}

// MayOpen returns [directory.ErrMayNotRead] unless the conversation is in Slack and the
// person is in it now. It returns the agent that answers there, or "" if none does any
// more.
func (u *UI) MayOpen(ctx context.Context, user approvals.UserID, o agentrun.Origin) (agent string, err error) {
	if o.Surface != ref.Surface {
		return "", directory.ErrMayNotRead
	}
	in, err := u.isIn(ctx, user, o.Channel)
	if err == nil && !in {
		err = directory.ErrMayNotRead
	}
	return u.agentIn(o.Channel), err
}

// isIn reports whether the person is a member of the channel, or whether it is the
// person's direct messages with the bot.
func (u *UI) isIn(ctx context.Context, user approvals.UserID, channel string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	switch {
	case strings.HasPrefix(channel, "D"):
		own, err := u.people.API.OpenDirect(ctx, string(user))
		return err == nil && own == channel, err
	case !blockkit.IsChannel(channel):
		return false, nil
	}
	members, _, err := u.Members(ctx, approvals.GroupID(channel))
	return err == nil && slices.Contains(members, user), err
}

// MayRead refuses a person who may not read the arguments of the batch.
func (u *UI) MayRead(ctx context.Context, user approvals.UserID, b approvals.Batch) error {
	_, err := u.people.MayRead(ctx, directory.Who{User: string(user)}, b)
	return err
}
