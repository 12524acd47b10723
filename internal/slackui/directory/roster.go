package directory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// roster is what is remembered of a user group or a channel: its members.
type roster struct {
	At    time.Time `json:"at"`
	Users []string  `json:"users"`
	Team  string    `json:"team,omitempty"` // the workspace of the organization that has the group
}

func (r roster) fetched() time.Time { return r.At }

// Rosters are the rosters of groups, by group.
type Rosters map[approvals.GroupID]roster

// With returns the groups that the person is in, and the time at which the oldest
// of all the rosters was looked up, but not later than latest.
func (r Rosters) With(user string, latest time.Time) (in []approvals.GroupID, at time.Time) {
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

// Members returns the people who are named and the members of the groups, each once.
func (r Rosters) Members(from []approvals.From) []approvals.UserID {
	var all []approvals.UserID
	for _, f := range from {
		all = append(all, f.Users...)
		for _, g := range f.Groups {
			for _, user := range r[g].Users {
				all = append(all, approvals.UserID(user))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rostersOf looks all the groups up, and returns those that Slack no longer has as
// errors of their own. If any other lookup fails, all fail: it is not known whether the
// person is in that group.
func rostersOf(ctx context.Context, d *Directory, groups []approvals.GroupID) (in Rosters, gone []*LookupError, err error) {
	found := make([]roster, len(groups))
	errs := make([]error, len(groups))
	look := func(i int) { found[i], errs[i] = d.Roster(ctx, string(groups[i])) }
	var others sync.WaitGroup
	for i := 1; i < len(groups); i++ {
		others.Go(func() { look(i) })
	}
	if len(groups) > 0 {
		look(0)
	}
	others.Wait()
	in = make(Rosters, len(groups))
	for i, g := range groups {
		lost, failed := errors.AsType[*LookupError](errs[i])
		switch {
		case failed && lost.Permanent():
			gone = append(gone, lost)
		case errs[i] == nil:
			in[g] = found[i]
		default:
			err = errors.Join(err, errs[i])
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return in, gone, nil
}

// Roster returns the members of a group, no older than the directory allows.
func (d *Directory) Roster(ctx context.Context, group string) (roster, error) {
	if !blockkit.IDForm.MatchString(group) {
		return roster{}, &LookupError{What: "group", ID: blockkit.Brief(group, 32), Err: errors.New("not the id of a group")}
	}
	return remembered(ctx, d, "group", "group", group, func(ctx context.Context, old roster) (roster, error) {
		if blockkit.IsChannel(group) {
			at := d.Now()
			users, err := d.API.ChannelMembers(ctx, group)
			return roster{At: at, Users: users}, err
		}
		return d.userGroup(ctx, group, old.Team)
	})
}

// userGroup asks for the members of a user group. An installation for an
// organization has to name a workspace: the one that had the group before is asked
// first.
func (d *Directory) userGroup(ctx context.Context, group, before string) (roster, error) {
	at := d.Now()
	if !strings.HasPrefix(d.Team, "E") {
		users, err := d.API.Members(ctx, d.Team, group)
		return roster{At: at, Users: users}, err
	}
	if before != "" {
		users, err := d.API.Members(ctx, before, group)
		if !slackapi.HasCode(err, "no_such_subteam", "invalid_team") {
			return roster{At: at, Users: users, Team: before}, err
		}
	}
	all, err := remembered(ctx, d, "teams", "workspaces", d.Team, func(ctx context.Context, _ workspaces) (workspaces, error) {
		at := d.Now()
		ids, err := d.API.Workspaces(ctx)
		return workspaces{At: at, IDs: ids}, err
	})
	if err != nil {
		return roster{}, err
	}
	err = slackapi.ErrNoAnswer
	for _, team := range all.IDs {
		var users []string
		if users, err = d.API.Members(ctx, team, group); err == nil {
			return roster{At: at, Users: users, Team: team}, nil
		}
		if !slackapi.HasCode(err, "no_such_subteam") {
			break
		}
	}
	return roster{}, err
}

// workspaces are the workspaces of the organization in which the app is installed.
type workspaces struct {
	At  time.Time `json:"at"`
	IDs []string  `json:"ids"`
}

func (w workspaces) fetched() time.Time { return w.At }
