package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Who is a person as their surface has authenticated them.
type Who struct {
	User string
	Team string // the person's own workspace, if the surface says it
}

// Audience returns the Reader of what is drawn in a channel for nobody in
// particular. It reads a batch that was asked for in the channel or that an
// escalation shows there, and nothing else.
func (d *Directory) Audience(b approvals.Batch, channel string) Reader {
	if channel == "" || channel != b.Channel && !slices.Contains(b.Channels(), channel) {
		return Reader{}
	}
	return Reader{batch: b.ID, calls: d.calls}
}

// MayRead returns the Reader of a person. [ErrMayNotRead] refuses everybody but
// those who can decide or veto a call of the batch, or did, whoever asked for
// it, and the members of the channels that it is shown in. Memberships are
// looked up now; if a lookup fails and no other membership is enough, the
// person is refused with the error of the lookup.
func (d *Directory) MayRead(ctx context.Context, who Who, b approvals.Batch) (Reader, error) {
	if err := d.mayRead(ctx, who, b); err != nil {
		return Reader{}, err
	}
	return Reader{batch: b.ID, calls: d.calls}, nil
}

// IsRefusal reports whether err of [Directory.MayRead] says that the person may
// not read the batch. Any other error leaves that open.
func IsRefusal(err error) bool {
	for _, refused := range []error{ErrMayNotRead, ErrGone, ErrBot, ErrGuest, ErrStranger, ErrUnknown} {
		if errors.Is(err, refused) {
			return true
		}
	}
	return false
}

func (d *Directory) mayRead(ctx context.Context, who Who, b approvals.Batch) error {
	me := approvals.UserID(who.User)
	asked := b.EverAsked()
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	member, err := d.Admitted(asking, who.User, who.Team, Sought{Named: asked.Users})
	if err != nil {
		return err
	}
	if _, decided := b.Deciders()[me]; decided || b.Requester == me || slices.Contains(asked.Users, me) {
		return nil
	}
	if !member {
		return ErrMayNotRead
	}
	groups := slices.Clone(asked.Groups)
	inChannels := len(groups) // the groups from here on are channels that show it
	for _, channel := range append(b.Channels(), b.Channel) {
		groups = append(groups, approvals.GroupID(channel))
	}
	var unanswered error
	var members []string // of the groups that are asked
	for i, g := range groups {
		if !blockkit.IDForm.MatchString(string(g)) || strings.HasPrefix(string(g), "D") {
			continue
		}
		r, err := d.Roster(asking, string(g))
		if err != nil {
			unanswered = errors.Join(unanswered, err)
			continue
		}
		if slices.Contains(r.Users, who.User) {
			return nil
		}
		if i < inChannels {
			members = append(members, r.Users...)
		}
	}
	if !asked.Delegation {
		return cmp.Or(unanswered, ErrMayNotRead)
	}
	away, _, err := d.Absences().Load(ctx)
	unanswered = errors.Join(unanswered, err)
	for _, a := range away.DelegationsTo(me, d.Now()) {
		named, inGroup := slices.Contains(asked.Users, a.User), slices.Contains(members, string(a.User))
		if !named && !inGroup {
			continue // the calls do not ask them
		}
		counts, member, err := absentCounts(asking, d, a)
		unanswered = errors.Join(unanswered, err)
		if counts && (named || member) {
			return nil
		}
	}
	return cmp.Or(unanswered, ErrMayNotRead)
}
