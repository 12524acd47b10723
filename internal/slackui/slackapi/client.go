package slackapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// CallTimeout bounds one call to Slack. It is shorter than a claim.
const CallTimeout = 5 * time.Second

// Client makes the few Slack calls that we need. It never retries: only the caller
// knows whether a repetition is harmless.
type Client struct {
	client   *slack.Client
	Now      func() time.Time // nil: nothing is throttled
	Throttle throttle
	// Awaits reports whether people wait for what is done in the context: such calls
	// are made before others that Slack limits. It may be nil.
	Awaits func(ctx context.Context) bool
	// Background reports whether nobody waits for an answer in the context: it is that of
	// due work, which is done again later. It may be nil, if somebody always waits.
	Background func(ctx context.Context) bool
	Asks       asks
	Log        *slog.Logger // may be nil
	limits     limits

	mu   sync.Mutex
	self *slack.AuthTestResponse // nil until it was asked for
	dms  map[string]string       // channels of direct messages, by person: they never change
}

// New returns a client of the Web API at the URL. Its requests go through the
// transport; nil is that of net/http.
func New(token func() string, url string, through http.RoundTripper) *Client {
	return &Client{client: slack.New(token(),
		slack.OptionAPIURL(strings.TrimSuffix(url, "/")+"/"),
		slack.OptionHTTPClient(HTTPClient(CallTimeout, through)))}
}

// HTTPClient returns a client for requests to Slack, which reads no more than an answer
// can be. It follows no redirect: Slack sends none, and most requests hold the token in
// their body, which would go with them. The transport may be nil.
func HTTPClient(timeout time.Duration, through http.RoundTripper) *http.Client {
	if through == nil {
		through = http.DefaultTransport
	}
	return &http.Client{Timeout: timeout, Transport: answers{through}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// Post sends a message to a channel, into the thread if there is one, and returns
// its ts. After an error the message may still have been posted.
func (a *Client) Post(ctx context.Context, channel, thread string, m blockkit.Message) (string, error) {
	opts := append(m.Options(), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	if m.Marker != nil {
		opts = append(opts, slack.MsgOptionMetadata(*m.Marker))
	}
	ts := ""
	err := a.throttled(ctx, postMessage, channel, m.Key(thread), a.rank(ctx, m.LowPriority), func() (err error) {
		_, ts, err = a.client.PostMessageContext(ctx, channel, opts...)
		if err == nil && ts == "" {
			err = ErrNoAnswer
		}
		return err
	})
	return ts, err
}

// throttled makes the call if its turn has come, and returns a [*LaterError] while
// Slack limits such calls or is away.
func (a *Client) throttled(ctx context.Context, method, channel, key string, r rank, call func() error) error {
	if a.Now != nil {
		if err := a.Throttle.wait(method, channel, key, r, a.Now()); err != nil {
			return err
		}
	}
	if err := permitted(ctx); err != nil {
		return err
	}
	if a.Now == nil {
		return classify(method, call())
	}
	err := classify(method, call())
	what, _ := limitOf(method, channel)
	hear(ctx, a, what, err)
	a.Throttle.record(method, channel, key, r, a.Now(), err)
	later := a.Throttle.heard(method, channel, key, r, a.Now(), err)
	switch away, isNew := a.Throttle.news(); {
	case !isNew || a.Log == nil:
	case away:
		a.Log.WarnContext(ctx, "no call to Slack succeeds; they are tried again until one does", slog.Any("err", err))
	default:
		a.Log.InfoContext(ctx, "calls to Slack succeed again")
	}
	return later
}

// MayUpdate returns nil if a message may be updated now, and otherwise a [*LaterError]
// that says when it has its turn, which is kept for [Client.Update].
func (a *Client) MayUpdate(ctx context.Context, channel, ts string, lowPriority bool) error {
	if a.Now == nil {
		return nil
	}
	return a.Throttle.may(PostUpdate, channel, updateKey(channel, ts), a.rank(ctx, lowPriority), a.Now())
}

func (a *Client) rank(ctx context.Context, lowPriority bool) rank {
	switch {
	case lowPriority:
		return low
	case a.Awaits != nil && a.Awaits(ctx):
		return awaited
	default:
		return usual
	}
}

func updateKey(channel, ts string) string { return channel + " " + ts }

// Update replaces a message. Repeating it is harmless.
func (a *Client) Update(ctx context.Context, channel, ts string, m blockkit.Message) error {
	return a.throttled(ctx, PostUpdate, channel, updateKey(channel, ts), a.rank(ctx, m.LowPriority), func() error {
		_, at, _, err := a.client.UpdateMessageContext(ctx, channel, ts, m.Options()...)
		if err == nil && at == "" {
			err = ErrNoAnswer
		}
		return err
	})
}

// Ephemeral shows words to one person, in the thread if there is one, and in a
// direct message if Slack does not show them there.
func (a *Client) Ephemeral(ctx context.Context, channel, thread, user string, m blockkit.Message) error {
	opts := m.Options()
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	_, err := a.client.PostEphemeralContext(ctx, channel, user, opts...)
	err = classify("chat.postEphemeral", err)
	if !HasCode(err, slices.Concat(Closed, NoThread, []string{"user_not_in_channel"})...) {
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

// OpenDirect returns the channel of direct messages to the person.
func (a *Client) OpenDirect(ctx context.Context, user string) (string, error) {
	a.mu.Lock()
	known := a.dms[user]
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	const method = "conversations.open"
	return Share(ctx, a, method+" "+user, func(ctx context.Context) (string, error) {
		var im *slack.Channel
		err := a.ask(ctx, method, func() (err error) {
			im, _, _, err = a.client.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
			if err == nil && (im == nil || im.ID == "") {
				err = ErrNoAnswer
			}
			return err
		})
		if err != nil {
			return "", err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.dms == nil {
			a.dms = map[string]string{}
		}
		a.dms[user] = im.ID
		return im.ID, nil
	})
}

// SetStatus shows the words after the name of the app under the thread, until its
// next message, for at most two minutes.
func (a *Client) SetStatus(ctx context.Context, channel, thread, words string) error {
	const method = "assistant.threads.setStatus"
	return a.ask(ctx, method, func() error {
		return a.client.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: thread, Status: words})
	})
}

// MayPublish returns nil if the Home tab of a person who does not wait for it may be
// shown now, and otherwise a [*LaterError] that says when it has its turn.
func (a *Client) MayPublish(user string) error {
	if a.Now == nil {
		return nil
	}
	return a.Throttle.may(publishView, user, user, low, a.Now())
}

// PublishView shows the Home tab of a person and returns the hash of it. With a
// hash it replaces only the one that has it. Without waits, the person does not wait for
// it: it has a low priority.
func (a *Client) PublishView(ctx context.Context, user, hash string, waits bool, v slack.HomeTabViewRequest) (string, error) {
	r := low
	if waits {
		r = awaited
	}
	request := slack.PublishViewContextRequest{UserID: user, View: v}
	if hash != "" {
		request.Hash = &hash
	}
	err := a.throttled(ctx, publishView, user, user, r, func() error {
		shown, err := a.client.PublishViewContext(ctx, request)
		if err == nil && (shown == nil || shown.Hash == "") {
			return ErrNoAnswer
		}
		if err == nil {
			hash = shown.Hash
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return hash, nil
}

// UpdateView replaces a view, if it still has the hash; an empty hash replaces any.
func (a *Client) UpdateView(ctx context.Context, id, hash string, v slack.ModalViewRequest) error {
	_, err := a.client.UpdateViewContext(ctx, v, "", hash, id)
	return classify("views.update", err)
}

// Turned is the error of [Client.UpdateView] that was to turn a page. A view that shows
// something else since then, as after a second press on the same button, or that the
// person has closed, stays as it is: that is no error.
func Turned(err error) error {
	if HasCode(err, "hash_conflict", "not_found", "view_not_found") {
		return nil
	}
	return err
}

// Members returns the members of the user group.
func (a *Client) Members(ctx context.Context, team, group string) ([]string, error) {
	var users []string
	err := a.ask(ctx, "usergroups.users.list", func() (err error) {
		users, err = a.client.GetUserGroupMembersContext(ctx, group, slack.GetUserGroupMembersOptionTeamID(team))
		if err == nil && users == nil {
			err = ErrNoAnswer
		}
		return err
	})
	return users, err
}

// maxPages is how many pages of a list are read: about 20,000 people.
const maxPages = 20

// ChannelMembers returns the members of the channel, bots too. It never returns a
// part of them.
func (a *Client) ChannelMembers(ctx context.Context, channel string) ([]string, error) {
	const method = "conversations.members"
	var all []string
	cursor := ""
	for range maxPages {
		var page []string
		next := ""
		err := a.ask(ctx, method, func() (err error) {
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
	return nil, &callError{method: method, err: ErrTooMany}
}

// Workspaces returns the workspaces of the organization in which the app is
// installed.
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
	return nil, &callError{method: method, err: ErrTooMany}
}

// User returns the account of a person: users.info.
func (a *Client) User(ctx context.Context, id string) (*slack.User, error) {
	var u *slack.User
	err := a.ask(ctx, "users.info", func() (err error) {
		u, err = a.client.GetUserInfoContext(ctx, id)
		if err == nil && (u == nil || u.ID != id) {
			err = ErrNoAnswer
		}
		return err
	})
	return u, err
}

// UserByEmail returns the account with an address, which is unique in a workspace.
func (a *Client) UserByEmail(ctx context.Context, email string) (*slack.User, error) {
	var u *slack.User
	err := a.ask(ctx, "users.lookupByEmail", func() (err error) {
		u, err = a.client.GetUserByEmailContext(ctx, email)
		if err == nil && (u == nil || u.ID == "") {
			err = ErrNoAnswer
		}
		return err
	})
	return u, err
}

// Whoami returns whose token it is. It asks Slack until the first answer, which it
// keeps.
func (a *Client) Whoami(ctx context.Context) (*slack.AuthTestResponse, error) {
	a.mu.Lock()
	self := a.self
	a.mu.Unlock()
	if self != nil {
		return self, nil
	}
	return Share(ctx, a, "auth.test", func(ctx context.Context) (*slack.AuthTestResponse, error) {
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

// Permalink returns the address of a message. It is empty while the address of the
// workspace is not known.
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
