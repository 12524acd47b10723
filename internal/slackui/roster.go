package slackui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// roster is what is remembered of a group: of a user group, or of a channel.
type roster struct {
	At    time.Time `json:"at"`
	Users []string  `json:"users"`
	Team  string    `json:"team,omitempty"` // of the organisation's workspaces, the one that has it
}

func (r roster) fetched() time.Time { return r.At }

// rosters are the members of groups.
type rosters map[approvals.GroupID]roster

// with returns those of the groups that the person is in, and when the oldest
// of all the rosters was asked for, at the latest.
func (r rosters) with(user string, latest time.Time) (in []approvals.GroupID, at time.Time) {
	for g, x := range r {
		if x.At.Before(latest) {
			latest = x.At
		}
		if slices.Contains(x.Users, user) {
			in = append(in, g)
		}
	}
	slices.Sort(in)
	return in, latest
}

// rosters looks all the groups up. One that cannot be is an error: it is not
// known who is in it, or who would be needed.
func (d *directory) rosters(ctx context.Context, groups []approvals.GroupID) (rosters, error) {
	found := make([]roster, len(groups))
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { found[i], errs[i] = d.roster(ctx, string(g)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := make(rosters, len(groups))
	for i, g := range groups {
		all[g] = found[i]
	}
	return all, nil
}

func (d *directory) roster(ctx context.Context, group string) (roster, error) {
	if !idForm.MatchString(group) {
		return roster{}, &lookupError{what: "group", id: brief(group, 32), err: errors.New("not the id of a group")}
	}
	return remembered(ctx, d, "group", "group", group, func(ctx context.Context, old roster) (roster, error) {
		if isChannel(group) {
			at := d.now()
			users, err := d.api.inChannel(ctx, group)
			return roster{At: at, Users: users}, err
		}
		return d.userGroup(ctx, group, old.Team)
	})
}

// isChannel reports whether the id is one of a channel, public or private.
func isChannel[ID ~string](id ID) bool {
	return strings.HasPrefix(string(id), "C") || strings.HasPrefix(string(id), "G")
}

// userGroup asks who is in a user group. An installation of an organisation
// has to say in which workspace: the one that had it before is asked first.
func (d *directory) userGroup(ctx context.Context, group, before string) (roster, error) {
	at := d.now()
	if !strings.HasPrefix(d.team, "E") {
		users, err := d.api.members(ctx, d.team, group)
		return roster{At: at, Users: users}, err
	}
	if before != "" {
		users, err := d.api.members(ctx, before, group)
		if !hasCode(err, "no_such_subteam", "invalid_team") {
			return roster{At: at, Users: users, Team: before}, err
		}
	}
	all, err := remembered(ctx, d, "teams", "workspaces", d.team, func(ctx context.Context, _ workspaces) (workspaces, error) {
		at := d.now()
		ids, err := d.api.workspaces(ctx)
		return workspaces{At: at, IDs: ids}, err
	})
	if err != nil {
		return roster{}, err
	}
	err = errNoAnswer
	for _, team := range all.IDs {
		var users []string
		if users, err = d.api.members(ctx, team, group); err == nil {
			return roster{At: at, Users: users, Team: team}, nil
		}
		if !hasCode(err, "no_such_subteam") {
			break
		}
	}
	return roster{}, err
}

// workspaces are those of the organisation in which the app is.
type workspaces struct {
	At  time.Time `json:"at"`
	IDs []string  `json:"ids"`
}

func (w workspaces) fetched() time.Time { return w.At }

// Members returns who is in the group, a user group or a channel, and when
// Slack said so. It lists whoever Slack lists: [UI.Able] says who of them
// counts. A group that is disabled, unknown or cannot be asked for is an error.
func (u *UI) Members(ctx context.Context, group approvals.GroupID) ([]approvals.UserID, time.Time, error) {
	r, err := u.people.roster(ctx, string(group))
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
	return u.able(ctx, user, sought{})
}

// AbleByName reports whether the person may sign where they are named by id,
// which guests and people of other organisations may as well.
func (u *UI) AbleByName(ctx context.Context, user approvals.UserID) (bool, error) {
	return u.able(ctx, user, sought{named: []approvals.UserID{user}})
}

func (u *UI) able(ctx context.Context, user approvals.UserID, what sought) (bool, error) {
	_, err := u.people.admitted(ctx, string(user), "", what)
	if errors.Is(err, errLookup) {
		return false, err
	}
	return err == nil, nil
}
