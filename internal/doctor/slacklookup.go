package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
)

// SlackLookup asks Slack about groups and people, each once. A check uses it;
// the bot itself caches the answers.
type SlackLookup struct {
	api  *slack.Client
	team string
	org  string // the organization of the workspace, if it has one

	mu     sync.Mutex
	listed map[string]slack.UserGroup
	people map[approvals.UserID]*slack.User
}

// NewSlackLookup asks with the client, in the workspace of this bot.
func NewSlackLookup(api *slack.Client, who *slack.AuthTestResponse) *SlackLookup {
	return &SlackLookup{api: api, team: who.TeamID, org: who.EnterpriseID, people: map[approvals.UserID]*slack.User{}}
}

// groups returns all user groups by their ids, disabled ones too.
func (l *SlackLookup) groups(ctx context.Context) (map[string]slack.UserGroup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed != nil {
		return l.listed, nil
	}
	list, err := l.api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeDisabled(true),
		slack.GetUserGroupsOptionIncludeUsers(true), slack.GetUserGroupsOptionTeamID(l.team))
	if err != nil {
		return nil, err
	}
	l.listed = map[string]slack.UserGroup{}
	for _, g := range list {
		l.listed[g.ID] = g
	}
	return l.listed, nil
}

// Members returns who is in the user group or channel. Nobody is in a group
// that is disabled or not there.
func (l *SlackLookup) Members(ctx context.Context, g approvals.GroupID) ([]approvals.UserID, time.Time, error) {
	var ids []string
	if config.IsChannel(string(g)) {
		in := slack.GetUsersInConversationParameters{ChannelID: string(g), Limit: 200}
		for more := true; more; more = in.Cursor != "" {
			page, cursor, err := l.api.GetUsersInConversationContext(ctx, &in)
			if err != nil {
				return nil, time.Time{}, err
			}
			ids, in.Cursor = append(ids, page...), cursor
		}
	} else {
		all, err := l.groups(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		group, there := all[string(g)]
		if !there || group.DateDelete != 0 {
			return nil, time.Time{}, slack.SlackErrorResponse{Err: "no_such_subteam"}
		}
		ids = group.Users
	}
	users := make([]approvals.UserID, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		users = append(users, approvals.UserID(id))
	}
	return users, time.Time{}, nil
}

func (l *SlackLookup) person(ctx context.Context, id approvals.UserID) (*slack.User, error) {
	l.mu.Lock()
	known := l.people[id]
	l.mu.Unlock()
	if known != nil {
		return known, nil
	}
	u, err := l.api.GetUserInfoContext(ctx, string(id))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.people[id] = u
	return u, nil
}

// Able reports whether the person counts as a member of groups.
func (l *SlackLookup) Able(ctx context.Context, id approvals.UserID) (bool, error) {
	u, err := l.person(ctx, id)
	return err == nil && l.unable(u) == "", err
}

// AbleByName reports whether the person may approve where a rule names them.
func (l *SlackLookup) AbleByName(ctx context.Context, id approvals.UserID) (bool, error) {
	u, err := l.person(ctx, id)
	if err != nil {
		return false, err
	}
	return !u.Deleted && !isBot(u), nil
}
