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

// roster is what is remembered of a group: of a user group, or of a channel.
type roster struct {
	At    time.Time `json:"at"`
	Users []string  `json:"users"`
	Team  string    `json:"team,omitempty"` // of the organization's workspaces, the one that has it
}

func (r roster) fetched() time.Time { return r.At }

// Rosters are the members of groups.
type Rosters map[approvals.GroupID]roster

// With returns those of the groups that the person is in, and when the oldest
// of all the rosters was asked for, at the latest.
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

// rosters looks all the groups up. One that cannot be is an error: it is not
// known who is in it, or who would be needed.
func (d *Directory) rosters(ctx context.Context, groups []approvals.GroupID) (Rosters, error) {
	found := make([]roster, len(groups))
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { found[i], errs[i] = d.Roster(ctx, string(g)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := make(Rosters, len(groups))
	for i, g := range groups {
		all[g] = found[i]
	}
	return all, nil
}

// Roster returns who is in a group, as young as the directory demands.
func (d *Directory) Roster(ctx context.Context, group string) (roster, error) {
	if !blockkit.IDForm.MatchString(group) {
		return roster{}, &LookupError{What: "group", Id: blockkit.Brief(group, 32), Err: errors.New("not the id of a group")}
	}
	return remembered(ctx, d, "group", "group", group, func(ctx context.Context, old roster) (roster, error) {
		if blockkit.IsChannel(group) {
			at := d.Now()
			users, err := d.Api.ChannelMembers(ctx, group)
			return roster{At: at, Users: users}, err
		}
		return d.userGroup(ctx, group, old.Team)
	})
}

// userGroup asks who is in a user group. An installation of an organization
// has to say in which workspace: the one that had it before is asked first.
func (d *Directory) userGroup(ctx context.Context, group, before string) (roster, error) {
	at := d.Now()
	if !strings.HasPrefix(d.Team, "E") {
		users, err := d.Api.Members(ctx, d.Team, group)
		return roster{At: at, Users: users}, err
	}
	if before != "" {
		users, err := d.Api.Members(ctx, before, group)
		if !slackapi.HasCode(err, "no_such_subteam", "invalid_team") {
			return roster{At: at, Users: users, Team: before}, err
		}
	}
	all, err := remembered(ctx, d, "teams", "workspaces", d.Team, func(ctx context.Context, _ workspaces) (workspaces, error) {
		at := d.Now()
		ids, err := d.Api.Workspaces(ctx)
		return workspaces{At: at, IDs: ids}, err
	})
	if err != nil {
		return roster{}, err
	}
	err = slackapi.ErrNoAnswer
	for _, team := range all.IDs {
		var users []string
		if users, err = d.Api.Members(ctx, team, group); err == nil {
			return roster{At: at, Users: users, Team: team}, nil
		}
		if !slackapi.HasCode(err, "no_such_subteam") {
			break
		}
	}
	return roster{}, err
}

// workspaces are those of the organization in which the app is.
type workspaces struct {
	At  time.Time `json:"at"`
	IDs []string  `json:"ids"`
}

func (w workspaces) fetched() time.Time { return w.At }
