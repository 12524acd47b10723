package slackapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// CallTimeout bounds one call to Slack. It is shorter than a claim.
const CallTimeout = 5 * time.Second

// Client is the few Slack calls that we make. It never retries: who calls knows
// whether a repetition is harmless.
type Client struct {
	client *slack.Client
	Now    func() time.Time // nil: nothing is paused
	Paused throttle
	Asks   asks

	mu   sync.Mutex
	self *slack.AuthTestResponse // nil until it was asked for
	dms  map[string]string       // where direct messages go, by person: that never changes
}

// New returns a client of the Web API at the URL.
func New(token func() string, url string) *Client {
	return &Client{client: slack.New(token(),
		slack.OptionAPIURL(strings.TrimSuffix(url, "/")+"/"),
		slack.OptionHTTPClient(&http.Client{Timeout: CallTimeout}))}
}

// Post sends a message into a thread and returns its ts. A doubtful error
// means that the message may be there all the same.
func (a *Client) Post(ctx context.Context, channel, thread string, m blockkit.Message) (string, error) {
	opts := append(m.Options(), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	if m.Marker != nil {
		opts = append(opts, slack.MsgOptionMetadata(*m.Marker))
	}
	ts := ""
	err := a.unless(postMessage, channel, m.Key(thread), m.LowPriority, func() (err error) {
		_, ts, err = a.client.PostMessageContext(ctx, channel, opts...)
		if err == nil && ts == "" {
			err = ErrNoAnswer
		}
		return err
	})
	return ts, err
}

// unless calls Slack, unless it wants to be left alone by such calls.
func (a *Client) unless(method, channel, key string, calm bool, call func() error) error {
	if a.Now == nil {
		return classify(method, call())
	}
	if err := a.Paused.left(method, channel, key, calm, a.Now()); err != nil {
		return err
	}
	err := call()
	a.Paused.note(method, channel, key, calm, a.Now(), err)
	return classify(method, err)
}

// Update replaces a message. Repeating it is harmless.
func (a *Client) Update(ctx context.Context, channel, ts string, m blockkit.Message) error {
	return a.unless(PostUpdate, channel, channel+" "+ts, m.LowPriority, func() error {
		_, at, _, err := a.client.UpdateMessageContext(ctx, channel, ts, m.Options()...)
		if err == nil && at == "" {
			err = ErrNoAnswer
		}
		return err
	})
}

// Ephemeral shows words to one person, in the thread if there is one, and in a
// direct message if they are not in the channel.
func (a *Client) Ephemeral(ctx context.Context, channel, thread, user string, m blockkit.Message) error {
	opts := m.Options()
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	_, err := a.client.PostEphemeralContext(ctx, channel, user, opts...)
	err = classify("chat.postEphemeral", err)
	if !HasCode(err, "user_not_in_channel", "channel_not_found", "not_in_channel", "is_archived") {
		return err
	}
	return a.Direct(ctx, user, m)
}

// Direct sends a direct message to one person.
func (a *Client) Direct(ctx context.Context, user string, m blockkit.Message) error {
	im, err := a.OpenDirect(ctx, user)
	if err != nil {
		return err
	}
	_, err = a.Post(ctx, im, "", m)
	return err
}

// OpenDirect returns where direct messages to the person go.
func (a *Client) OpenDirect(ctx context.Context, user string) (string, error) {
	a.mu.Lock()
	known := a.dms[user]
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	im, _, _, err := a.client.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
	if err == nil && (im == nil || im.ID == "") {
		err = ErrNoAnswer
	}
	if err != nil {
		return "", classify("conversations.open", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dms == nil {
		a.dms = map[string]string{}
	}
	a.dms[user] = im.ID
	return im.ID, nil
}

// OpenView opens a view. A trigger works once, for 3 s.
func (a *Client) OpenView(ctx context.Context, trigger string, v slack.ModalViewRequest) error {
	_, err := a.client.OpenViewContext(ctx, trigger, v)
	return classify("views.open", err)
}

// PushView opens a view over the modal that is open.
func (a *Client) PushView(ctx context.Context, trigger string, v slack.ModalViewRequest) error {
	_, err := a.client.PushViewContext(ctx, trigger, v)
	return classify("views.push", err)
}

// PublishView shows the Home tab of a person and returns the hash of it. With a
// hash it replaces only the one that has it.
func (a *Client) PublishView(ctx context.Context, user, hash string, v slack.HomeTabViewRequest) (string, error) {
	r := slack.PublishViewContextRequest{UserID: user, View: v}
	if hash != "" {
		r.Hash = &hash
	}
	shown, err := a.client.PublishViewContext(ctx, r)
	if err == nil && (shown == nil || shown.Hash == "") {
		err = ErrNoAnswer
	}
	if err != nil {
		return "", classify("views.publish", err)
	}
	return shown.Hash, nil
}

// UpdateView replaces a view, if it still has the hash; an empty hash replaces any.
func (a *Client) UpdateView(ctx context.Context, id, hash string, v slack.ModalViewRequest) error {
	_, err := a.client.UpdateViewContext(ctx, v, "", hash, id)
	return classify("views.update", err)
}

// Members returns who is in the user group now.
func (a *Client) Members(ctx context.Context, team, group string) ([]string, error) {
	var users []string
	err := a.asked("usergroups.users.list", func() (err error) {
		users, err = a.client.GetUserGroupMembersContext(ctx, group, slack.GetUserGroupMembersOptionTeamID(team))
		if err == nil && users == nil {
			err = ErrNoAnswer
		}
		return err
	})
	return users, err
}

// maxPages bounds how much of a channel is read: about 20,000 people.
const maxPages = 20

// ChannelMembers returns who is in the channel now, bots too. Part of them is no
// answer.
func (a *Client) ChannelMembers(ctx context.Context, channel string) ([]string, error) {
	const method = "conversations.members"
	var all []string
	cursor := ""
	for range maxPages {
		var page []string
		next := ""
		err := a.asked(method, func() (err error) {
			page, next, err = a.client.GetUsersInConversationContext(ctx, &slack.GetUsersInConversationParameters{
				ChannelID: channel, Cursor: cursor, Limit: 999,
			})
			if err == nil && page == nil {
				err = ErrNoAnswer
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == "" {
			return all, nil
		}
		cursor = next
	}
	return nil, &callError{method: method, err: errTooMany}
}

// Workspaces returns those of the organization that the app is in.
func (a *Client) Workspaces(ctx context.Context) ([]string, error) {
	const method = "auth.teams.list"
	var all []string
	cursor := ""
	for range maxPages {
		page, next, err := a.client.ListTeamsContext(ctx, slack.ListTeamsParameters{Limit: 999, Cursor: cursor})
		if err != nil {
			return nil, classify("auth.teams.list", err)
		}
		for _, t := range page {
			all = append(all, t.ID)
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
	return nil, &callError{method: method, err: errTooMany}
}

// User returns the account of a person: users.info.
func (a *Client) User(ctx context.Context, id string) (*slack.User, error) {
	var u *slack.User
	err := a.asked("users.info", func() (err error) {
		u, err = a.client.GetUserInfoContext(ctx, id)
		if err == nil && (u == nil || u.ID != id) {
			err = ErrNoAnswer
		}
		return err
	})
	return u, err
}

// Whoami returns who the token is; it asks until it is told.
func (a *Client) Whoami(ctx context.Context) (*slack.AuthTestResponse, error) {
	a.mu.Lock()
	self := a.self
	a.mu.Unlock()
	if self != nil {
		return self, nil
	}
	return Share(ctx, &a.Asks, "auth.test", func(ctx context.Context) (*slack.AuthTestResponse, error) {
		self, err := a.client.AuthTestContext(ctx)
		if err == nil && (self == nil || self.UserID == "") {
			err = ErrNoAnswer
		}
		if err != nil {
			return nil, classify("auth.test", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.self = self
		return self, nil
	})
}

// Permalink returns the address of a message, or nothing if it cannot be
// known now.
func (a *Client) Permalink(ctx context.Context, channel, ts, thread string) string {
	self, err := a.Whoami(ctx)
	if err != nil || !strings.HasPrefix(self.URL, "http") || !blockkit.IDForm.MatchString(channel) || !blockkit.ValidTS(ts) {
		return ""
	}
	link := strings.TrimSuffix(self.URL, "/") + "/archives/" + channel + "/p" + strings.Replace(ts, ".", "", 1)
	if thread != "" && thread != ts && blockkit.ValidTS(thread) {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}
