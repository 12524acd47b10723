package inbound

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// The refusals of requests of another workspace.
var (
	ErrOtherTeam = errors.New("another workspace")
	ErrNoTeam    = errors.New("no workspace in the payload")
)

// A Kind is what a person did.
type Kind string

// The kinds of interactions, as Slack calls them: https://docs.slack.dev/reference/interaction-payloads.
const (
	KindPressed   Kind = "block_actions"
	KindShortcut  Kind = "message_action"
	KindSubmitted Kind = "view_submission"
	KindClosed    Kind = "view_closed"
)

// An Interaction is what a person did with a button, a form or a shortcut. All
// ids in it are as Slack sent them, and none carries authority.
type Interaction struct {
	Kind        Kind
	User        string
	UserTeam    string // the person's own workspace
	Team        string // where it happened; empty for an installation of a whole organization
	Trigger     Trigger
	ResponseURL string

	Channel   string // of the message, if there is one
	MessageTS string
	Thread    string

	Callback string // of a shortcut
	Message  Marked // the message of a shortcut
	Press    Press  // what was pressed
	View     View
}

// Who is the person who did it.
func (i Interaction) Who() directory.Who { return directory.Who{User: i.User, Team: i.UserTeam} }

// Place is where the person did it.
func (i Interaction) Place() Place {
	return Place{Channel: i.Channel, Thread: i.Thread, User: i.User, ResponseURL: i.ResponseURL}
}

// On is the message on which the person did it, if there is one.
func (i Interaction) On() Marked {
	on := i.Message
	on.Channel, on.TS = i.Channel, i.MessageTS
	return on
}

// IDs are the ids that together distinguish this press, or this submission of a
// form, from every other.
func (i Interaction) IDs() []string {
	return []string{i.Trigger.ID, i.User, i.Channel, i.MessageTS, i.View.ID, i.View.Hash, i.Press.ID, i.Press.TS}
}

// A Trigger allows the app to open one view within 3 s.
type Trigger struct {
	ID   string
	Over string // the id of the modal that the person is in, if any: the view goes over that
}

// A Place is where a message for one person goes. The response URL, if there is one, takes
// it without a token.
type Place struct{ Channel, Thread, User, ResponseURL string }

// A Press is one button or box.
type Press struct {
	ID    string `json:"action_id"`
	Value string `json:"value"`
	TS    string `json:"action_ts"`
}

// A View is the modal or Home in which the person did it.
type View struct {
	ID       string
	Type     string
	Hash     string
	Callback string
	Metadata string
	Values   form.States
}

// Marked is what is read of a message: where it is, and its metadata. Our own
// metadata is a pointer, like the value of a button; another app's can hold
// anything.
type Marked struct {
	Channel  string   `json:"-"`
	TS       string   `json:"ts"`
	Thread   string   `json:"thread_ts"`
	Metadata Metadata `json:"metadata"`
}

// Metadata is what an app attached to a message.
type Metadata struct {
	Type    string          `json:"event_type"`
	Payload json.RawMessage `json:"event_payload"`
}

// A payload is what is read of the payload of an interaction. It is not slack-go's
// type, which rejects a whole payload for one block that it does not know.
type payload struct {
	Type string `json:"type"`
	Team *struct {
		ID         string `json:"id"`
		Enterprise string `json:"enterprise_id"`
	} `json:"team"` // null where a whole organization installed the app
	Enterprise struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	User struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Trigger   string `json:"trigger_id"`
	Callback  string `json:"callback_id"`
	Container struct {
		Message string `json:"message_ts"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Response string  `json:"response_url"`
	Actions  []Press `json:"actions"`
	Message  Marked  `json:"message"`
	View     struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Hash      string `json:"hash"`
		Callback  string `json:"callback_id"`
		Metadata  string `json:"private_metadata"`
		Installed string `json:"app_installed_team_id"` // the team of a form is the person's own
		State     struct {
			Values form.States `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// payloadOf returns the payload of the form in which an interaction comes. It may
// overwrite the form, and what it returns may be a part of it.
func payloadOf(body []byte) ([]byte, error) {
	if raw, ok := payloadIn(body); ok && len(raw) > 0 {
		return raw, nil
	}
	return nil, fmt.Errorf("%w: no payload", errBody)
}

func payloadIn(body []byte) (_ []byte, ok bool) {
	value, found := bytes.CutPrefix(body, []byte("payload="))
	if found && bytes.IndexByte(value, '&') < 0 && bytes.IndexByte(value, ';') < 0 { // as Slack sends it
		return unescape(value)
	}
	form, err := url.ParseQuery(string(body))
	return []byte(form.Get("payload")), err == nil
}

// unescape decodes a value of a form in place. ok is false if it is malformed.
func unescape(value []byte) (_ []byte, ok bool) {
	n := 0
	for at := 0; at < len(value); at++ {
		c := value[at]
		switch c {
		case '%':
			if at+2 >= len(value) {
				return nil, false
			}
			high, low := hexDigits[value[at+1]], hexDigits[value[at+2]]
			if high|low >= noDigit {
				return nil, false
			}
			c = high<<4 | low
			at += 2
		case '+':
			c = ' '
		}
		value[n] = c
		n++
	}
	return value[:n], true
}

const noDigit = 0x10

// hexDigits has the value of each hex digit, and noDigit for any other byte.
var hexDigits = func() (values [256]byte) {
	for c := range values {
		values[c] = noDigit
	}
	for n := range byte(10) {
		values['0'+n] = n
	}
	for n := range byte(6) {
		values['a'+n], values['A'+n] = 10+n, 10+n
	}
	return values
}()

// readPayload reads the payload of an interaction.
func readPayload(raw []byte) (payload, error) {
	scratch := buffers.Get().(*bytes.Buffer)
	defer recycle(scratch)
	scratch.Grow(4096) // more than most payloads have left
	var p payload
	if err := jsonv1.Unmarshal(slackapi.Skim(scratch.AvailableBuffer(), raw), &p); err != nil {
		return p, fmt.Errorf("%w: payload: %w", errBody, err)
	}
	switch {
	case p.Type == "":
		return p, fmt.Errorf("%w: a payload without a type", errBody)
	case Kind(p.Type) == KindPressed && len(p.Actions) == 0:
		return p, fmt.Errorf("%w: an action without an action", errBody)
	}
	return p, nil
}

func (p payload) interaction() Interaction {
	i := Interaction{
		Kind: Kind(p.Type), User: p.User.ID, UserTeam: p.User.Team, ResponseURL: p.Response,
		Channel: cmp.Or(p.Container.Channel, p.Channel.ID), MessageTS: p.Container.Message, Thread: p.Container.Thread,
		Callback: p.Callback, Message: p.Message, Trigger: Trigger{ID: p.Trigger},
		View: View{ID: p.View.ID, Type: p.View.Type, Hash: p.View.Hash, Callback: p.View.Callback, Metadata: p.View.Metadata, Values: p.View.State.Values},
	}
	if p.View.Type == string(slack.VTModal) {
		i.Trigger.Over = p.View.ID
	}
	if p.Team != nil {
		i.Team = p.Team.ID
	}
	if len(p.Actions) > 0 {
		i.Press = p.Actions[0]
	}
	return i
}

// A Workspace is the installation that is served: one workspace, or with the
// organization's id as Team a whole organization.
type Workspace struct {
	Team       string
	Enterprise string // the organization, if there is one
}

// serves reports whether a request that names this workspace and organization is
// for our installation.
func (w Workspace) serves(team, enterprise string) bool {
	if team != "" && team == w.Team {
		return true
	}
	return w.Enterprise != "" && enterprise == w.Enterprise
}

// admits refuses payloads of other installations: neither of our workspace nor of
// the organization that it belongs to. The team never decides which request is
// meant.
func (w Workspace) admits(p payload) error {
	team, enterprise := "", p.Enterprise.ID
	if p.Team != nil {
		team = p.Team.ID
		enterprise = cmp.Or(enterprise, p.Team.Enterprise)
	}
	switch {
	case w.serves(team, enterprise), p.View.Installed == w.Team:
		return nil
	case team == "":
		return ErrNoTeam
	}
	return ErrOtherTeam
}
