package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// callTimeout bounds one call to Slack. It is shorter than a claim.
const callTimeout = 5 * time.Second

// api is the few Slack calls that we make. It never retries: who calls knows
// whether a repetition is harmless.
type api struct {
	client *slack.Client
	now    func() time.Time // nil: nothing is paused
	paused pauses
	asks   asks

	mu   sync.Mutex
	self *slack.AuthTestResponse // nil until it was asked for
	dms  map[string]string       // where direct messages go, by person: that never changes
}

func newAPI(token func() string, url string) *api {
	return &api{client: slack.New(token(),
		slack.OptionAPIURL(strings.TrimSuffix(url, "/")+"/"),
		slack.OptionHTTPClient(&http.Client{Timeout: callTimeout}))}
}

// post sends a message into a thread and returns its ts. A doubtful error
// means that the message may be there all the same.
func (a *api) post(ctx context.Context, channel, thread string, m message) (string, error) {
	opts := append(m.options(), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	if m.marker != nil {
		opts = append(opts, slack.MsgOptionMetadata(*m.marker))
	}
	ts := ""
	err := a.unless(postMessage, channel, m.key(thread), m.calm, func() (err error) {
		_, ts, err = a.client.PostMessageContext(ctx, channel, opts...)
		if err == nil && ts == "" {
			err = errNoAnswer
		}
		return err
	})
	return ts, err
}

// unless calls Slack, unless it wants to be left alone by such calls.
func (a *api) unless(method, channel, key string, calm bool, call func() error) error {
	if a.now == nil {
		return classify(method, call())
	}
	if err := a.paused.left(method, channel, key, calm, a.now()); err != nil {
		return err
	}
	err := call()
	a.paused.note(method, channel, key, calm, a.now(), err)
	return classify(method, err)
}

// update replaces a message. Repeating it is harmless.
func (a *api) update(ctx context.Context, channel, ts string, m message) error {
	return a.unless(postUpdate, channel, channel+" "+ts, m.calm, func() error {
		_, at, _, err := a.client.UpdateMessageContext(ctx, channel, ts, m.options()...)
		if err == nil && at == "" {
			err = errNoAnswer
		}
		return err
	})
}

// whisper shows words to one person, in the thread if there is one, and in a
// direct message if they are not in the channel.
func (a *api) whisper(ctx context.Context, channel, thread, user string, m message) error {
	opts := m.options()
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	_, err := a.client.PostEphemeralContext(ctx, channel, user, opts...)
	err = classify("chat.postEphemeral", err)
	if !hasCode(err, "user_not_in_channel", "channel_not_found", "not_in_channel", "is_archived") {
		return err
	}
	return a.direct(ctx, user, m)
}

// direct sends a direct message to one person.
func (a *api) direct(ctx context.Context, user string, m message) error {
	im, err := a.openDirect(ctx, user)
	if err != nil {
		return err
	}
	_, err = a.post(ctx, im, "", m)
	return err
}

// openDirect returns where direct messages to the person go.
func (a *api) openDirect(ctx context.Context, user string) (string, error) {
	a.mu.Lock()
	known := a.dms[user]
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	im, _, _, err := a.client.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
	if err == nil && (im == nil || im.ID == "") {
		err = errNoAnswer
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

func (a *api) openView(ctx context.Context, trigger string, v slack.ModalViewRequest) error {
	_, err := a.client.OpenViewContext(ctx, trigger, v)
	return classify("views.open", err)
}

func (a *api) pushView(ctx context.Context, trigger string, v slack.ModalViewRequest) error {
	_, err := a.client.PushViewContext(ctx, trigger, v)
	return classify("views.push", err)
}

// publishView shows the Home tab of a person and returns the hash of it. With a
// hash it replaces only the one that has it.
func (a *api) publishView(ctx context.Context, user, hash string, v slack.HomeTabViewRequest) (string, error) {
	r := slack.PublishViewContextRequest{UserID: user, View: v}
	if hash != "" {
		r.Hash = &hash
	}
	shown, err := a.client.PublishViewContext(ctx, r)
	if err == nil && (shown == nil || shown.Hash == "") {
		err = errNoAnswer
	}
	if err != nil {
		return "", classify("views.publish", err)
	}
	return shown.Hash, nil
}

func (a *api) updateView(ctx context.Context, id, hash string, v slack.ModalViewRequest) error {
	_, err := a.client.UpdateViewContext(ctx, v, "", hash, id)
	return classify("views.update", err)
}

// members returns who is in the user group now.
func (a *api) members(ctx context.Context, team, group string) ([]string, error) {
	var users []string
	err := a.asked("usergroups.users.list", func() (err error) {
		users, err = a.client.GetUserGroupMembersContext(ctx, group, slack.GetUserGroupMembersOptionTeamID(team))
		if err == nil && users == nil {
			err = errNoAnswer
		}
		return err
	})
	return users, err
}

// maxPages bounds how much of a channel is read: about 20,000 people.
const maxPages = 20

// inChannel returns who is in the channel now, bots too. Part of them is no
// answer.
func (a *api) inChannel(ctx context.Context, channel string) ([]string, error) {
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
				err = errNoAnswer
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

// workspaces returns those of the organisation that the app is in.
func (a *api) workspaces(ctx context.Context) ([]string, error) {
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

func (a *api) user(ctx context.Context, id string) (*slack.User, error) {
	var u *slack.User
	err := a.asked("users.info", func() (err error) {
		u, err = a.client.GetUserInfoContext(ctx, id)
		if err == nil && (u == nil || u.ID != id) {
			err = errNoAnswer
		}
		return err
	})
	return u, err
}

// whoami returns who the token is; it asks until it is told.
func (a *api) whoami(ctx context.Context) (*slack.AuthTestResponse, error) {
	a.mu.Lock()
	self := a.self
	a.mu.Unlock()
	if self != nil {
		return self, nil
	}
	return share(ctx, &a.asks, "auth.test", func(ctx context.Context) (*slack.AuthTestResponse, error) {
		self, err := a.client.AuthTestContext(ctx)
		if err == nil && (self == nil || self.UserID == "") {
			err = errNoAnswer
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

// permalink returns the address of a message, or nothing if it cannot be
// known now.
func (a *api) permalink(ctx context.Context, channel, ts, thread string) string {
	self, err := a.whoami(ctx)
	if err != nil || !strings.HasPrefix(self.URL, "http") || !idForm.MatchString(channel) || !validTS(ts) {
		return ""
	}
	link := strings.TrimSuffix(self.URL, "/") + "/archives/" + channel + "/p" + strings.Replace(ts, ".", "", 1)
	if thread != "" && thread != ts && validTS(thread) {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// validTS reports whether ts looks like Slack's timestamps.
func validTS(ts string) bool {
	return ts != "" && len(ts) <= 32 && strings.Trim(ts, "0123456789.") == ""
}

// A message is what one message shows. text is its sentence for notifications
// and for those who cannot see blocks, and is escaped already.
type message struct {
	text   string
	blocks []slack.Block
	marker *slack.SlackMetadata
	calm   bool // it can wait for what cannot
}

// key tells messages apart that are posted in one channel.
func (m message) key(thread string) string {
	if m.marker == nil {
		return thread
	}
	return fmt.Sprint(thread, m.marker.EventType, m.marker.EventPayload)
}

func (m message) options() []slack.MsgOption {
	opts := []slack.MsgOption{slack.MsgOptionText(m.text, false)}
	if len(m.blocks) > 0 {
		opts = append(opts, slack.MsgOptionBlocks(m.blocks...))
	}
	return opts
}

// errTooMany is more than we read.
var errTooMany = errors.New("too many to read")

// errNoAnswer is Slack answering neither yes nor no.
var errNoAnswer = errors.New("no usable answer")

// A callError is a call to Slack that went wrong.
type callError struct {
	method string
	code   string // Slack's own word, if it said one
	err    error
}

func (e *callError) Error() string {
	if h := hint(e.code); h != "" {
		return fmt.Sprintf("slack: %s: %v: %s", e.method, e.err, h)
	}
	return fmt.Sprintf("slack: %s: %v", e.method, e.err)
}

func (e *callError) Unwrap() error { return e.err }

// hint says what to do about an error that does not go away by itself.
func hint(code string) string {
	switch code {
	case "not_in_channel":
		return "invite the app to the channel"
	case "channel_not_found":
		return "the channel is gone, or the app was never invited"
	case "is_archived":
		return "the channel is archived"
	case "invalid_auth", "not_authed":
		return "the bot token is wrong"
	case "token_revoked", "account_inactive":
		return "the app was uninstalled; install it again"
	case "missing_scope":
		return "add the scope to the app and install it again"
	case "restricted_action":
		return "the workspace does not let the app post there"
	case "invalid_blocks", "invalid_arguments", "msg_blocks_too_long":
		return "this is a defect of Countersign"
	}
	return ""
}

// classify wraps an error of slack-go. Only what Slack refused by a word that
// stays true, or the address refused as wrong, is a plain failure; a limit, an
// outage of Slack and anything between us and it is a [*LaterError].
func classify(method string, err error) error {
	if err == nil {
		return nil
	}
	e := &callError{method: method, err: err}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &LaterError{After: max(limited.RetryAfter, time.Second), Err: e}
	}
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		e.code = refused.Err
		if slices.Contains(passing, refused.Err) {
			return &LaterError{After: waitAfter(0), Err: e, outage: true}
		}
		if len(refused.ResponseMetadata.Messages) > 0 && strings.HasPrefix(refused.Err, "invalid_") {
			e.err = fmt.Errorf("%w: %s", err, strings.Join(refused.ResponseMetadata.Messages, "; "))
		}
		if refused.Needed != "" {
			e.err = fmt.Errorf("%w: needs %s", err, refused.Needed)
		}
		return e
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok && status.Code < http.StatusInternalServerError &&
		status.Code != http.StatusTooManyRequests && status.Code != http.StatusRequestTimeout {
		return e
	}
	return &LaterError{After: waitAfter(0), Err: e, outage: true}
}

// passing are Slack's words for its own troubles.
var passing = []string{
	"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited", "rate_limited",
}

// waitAfter is how long to leave Slack alone after so many attempts before.
func waitAfter(attempts int) time.Duration {
	const first, longest = 2 * time.Second, time.Minute
	return min(first<<min(attempts, 10), longest)
}

// hasCode reports whether Slack refused with one of these words.
func hasCode(err error, codes ...string) bool {
	_, has := codeOf(err, codes...)
	return has
}

// codeOf returns Slack's word, if it is one of these.
func codeOf(err error, codes ...string) (string, bool) {
	e, ok := errors.AsType[*callError](err)
	if !ok || e.code == "" || !slices.Contains(codes, e.code) {
		return "", false
	}
	return e.code, true
}

// A LaterError says when to look again. It is not a failure: whoever counts
// failures does not count it, however often it comes.
type LaterError struct {
	After time.Duration
	Err   error // why

	outage bool // Slack did not say for how long, so After grows
}

// Error is for the log.
func (e *LaterError) Error() string {
	if e.outage {
		return e.Err.Error() // who counts the attempts says when
	}
	return fmt.Sprintf("again in %s: %v", e.After, e.Err)
}

// Unwrap returns the reason.
func (e *LaterError) Unwrap() error { return e.Err }

// RetryAfter tells the due index when.
func (e *LaterError) RetryAfter() time.Duration { return e.After }
