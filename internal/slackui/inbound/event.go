package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// An Event is something that happened in the workspace. One of its pointers is set.
type Event struct {
	Team    string // where it happened
	Bot     string // the user id of our bot there, if Slack said it
	Message *Message
	Home    *HomeOpened
	Change  *Change
}

// A Message is what a person wrote: a mention, or a message where the bot listens.
type Message struct {
	Mention     bool   `json:"-"` // Slack delivered it as a mention of us
	Subtype     string `json:"subtype"`
	User        string `json:"user"`
	Bot         string `json:"bot_id"`
	UserTeam    string `json:"user_team"`
	Text        string `json:"text"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"` // of a message event
	TS          string `json:"ts"`
	Thread      string `json:"thread_ts"`
}

// HomeOpened says that a person opened their Home.
type HomeOpened struct {
	User string `json:"user"`
	Tab  string `json:"tab"`
}

// A Change says that an account or the members of a group have changed. Its content
// is not trusted: it only makes the directory ask Slack again.
type Change struct {
	Group string // a user group or a channel
	User  string
}

// envelope is what is read of a delivery of the Events API. It is not slack-go's
// type, which rejects a whole event for one block that it does not know.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	Team           string `json:"team_id"`
	ID             string `json:"event_id"`
	Authorizations []struct {
		Enterprise string `json:"enterprise_id"`
		User       string `json:"user_id"`
		Bot        bool   `json:"is_bot"`
	} `json:"authorizations"`
	Event json.RawMessage `json:"event"`
}

// enterprise returns the organization that the event is for, if Slack said it.
func (e envelope) enterprise() string {
	if len(e.Authorizations) == 0 {
		return ""
	}
	return e.Authorizations[0].Enterprise
}

// bot returns the user id of the bot that the delivery is for, if Slack said it.
func (e envelope) bot() string {
	for _, a := range e.Authorizations {
		if a.Bot && a.User != "" {
			return a.User
		}
	}
	return ""
}

// subtypes are those of messages that people write; messages of other subtypes are
// written by Slack.
var subtypes = []string{"", "thread_broadcast", "file_share"}

// events takes a delivery of the Events API. A repeated delivery of a message
// is recognized by the message when it is committed, not by Slack's retry headers.
func (s *HTTP) events(ctx context.Context, body []byte) (Reply, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Reply{}, fmt.Errorf("%w: event: %w", errBody, err)
	}
	switch e.Type {
	case "url_verification":
		return Reply{map[string]string{"challenge": e.Challenge}}, nil
	case "event_callback":
	default:
		s.cfg.Log.WarnContext(ctx, "delivery of an unknown type", slog.String("type", blockkit.Brief(e.Type, 64)))
		return Reply{}, nil
	}
	var inner struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(e.Event, &inner); err != nil {
		return Reply{}, fmt.Errorf("%w: inner event: %w", errBody, err)
	}
	read, ours := eventTypes[inner.Type]
	switch {
	case !ours:
		s.cfg.Log.DebugContext(ctx, "event not for us", slog.String("type", blockkit.Brief(inner.Type, 64)))
		return Reply{}, nil
	case !s.workspace.serves(e.Team, e.enterprise()):
		s.cfg.Log.WarnContext(ctx, "event of another workspace", slog.String("team", blockkit.Brief(e.Team, 64)))
		return Reply{}, nil
	}
	event, err := read(e)
	if err != nil {
		return Reply{}, fmt.Errorf("%w: %s: %w", errBody, inner.Type, err)
	}
	if event == (Event{}) {
		return Reply{}, nil
	}
	event.Team, event.Bot = e.Team, e.bot()
	return Reply{}, s.handler.Event(ctx, event)
}

// eventTypes are the events that the app handles, and how each is read. For a zero
// Event nothing has to be done.
var eventTypes = map[string]func(envelope) (Event, error){
	"app_mention":             func(e envelope) (Event, error) { return e.message(true) },
	"message":                 func(e envelope) (Event, error) { return e.message(false) },
	"app_home_opened":         envelope.home,
	"subteam_members_changed": envelope.change,
	"subteam_updated":         envelope.change,
	"member_joined_channel":   envelope.change,
	"member_left_channel":     envelope.change,
	"user_change":             envelope.change,
}

// change reads the object that has changed, or its id.
func (e envelope) change() (Event, error) {
	var c struct {
		Type    string          `json:"type"`
		Subteam json.RawMessage `json:"subteam"`
		Group   string          `json:"subteam_id"`
		Channel string          `json:"channel"`
		User    json.RawMessage `json:"user"`
	}
	if err := json.Unmarshal(e.Event, &c); err != nil {
		return Event{}, err
	}
	switch c.Type {
	case "subteam_updated":
		c.Group = idOf(c.Subteam)
	case "member_joined_channel", "member_left_channel":
		c.Group = c.Channel
	case "user_change":
		return Event{Change: &Change{User: idOf(c.User)}}, nil
	}
	return Event{Change: &Change{Group: c.Group}}, nil
}

func (e envelope) home() (Event, error) {
	var h HomeOpened
	if err := json.Unmarshal(e.Event, &h); err != nil {
		return Event{}, err
	}
	if h.Tab != "home" {
		return Event{}, nil
	}
	if !blockkit.IDForm.MatchString(h.User) {
		return Event{}, errors.New("a Home without a person")
	}
	return Event{Home: &h}, nil
}

// message reads what a person wrote. A message of a bot, which may be our own, is
// never a request.
func (e envelope) message(mention bool) (Event, error) {
	m := Message{Mention: mention}
	if err := json.Unmarshal(e.Event, &m); err != nil {
		return Event{}, err
	}
	if m.Bot != "" || m.User == "" || !slices.Contains(subtypes, m.Subtype) {
		return Event{}, nil
	}
	if e.ID == "" || !blockkit.IDForm.MatchString(m.User) || !blockkit.IDForm.MatchString(m.Channel) || !blockkit.ValidTS(m.TS) || (m.Thread != "" && !blockkit.ValidTS(m.Thread)) {
		return Event{}, errors.New("a mention without id, user, channel or ts")
	}
	return Event{Message: &m}, nil
}

// idOf reads the id of an object.
func idOf(raw json.RawMessage) string {
	var o struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.ID
}
