package slacksim

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Command is a slash command that a person sends.
type Command struct {
	User     string `json:"user"`
	Channel  string `json:"channel"`
	Command  string `json:"command"` // with its slash
	Text     string `json:"text"`
	ThreadTS string `json:"thread_ts,omitempty"` // the person is in a thread, where Slack refuses
}

// CommandOutcome is what the person saw.
type CommandOutcome struct {
	Status       int      `json:"status"`                  // of the app's answer; 0: none
	VisibleError string   `json:"visible_error,omitempty"` // what Slackbot says to the person
	Message      *Message `json:"message,omitempty"`       // what the app answered with
}

// grantedCommands reports whether the app may have slash commands and shortcuts.
//
// https://docs.slack.dev/reference/scopes/commands
func (s *interactions) grantedCommands() bool { return slices.Contains(s.cfg.Scopes, "commands") }

// Command sends a slash command to the app, once, and waits for its answer.
func (s *interactions) Command(in Command) (CommandOutcome, error) {
	s.mu.Lock()
	p, c, err := s.actor(in.User, in.Channel)
	if err == nil && !strings.HasPrefix(in.Command, "/") {
		err = fmt.Errorf("%w: a command starts with a slash", ErrBadInput)
	}
	if err != nil {
		s.mu.Unlock()
		return CommandOutcome{}, err
	}
	target, app := s.socketMode.listens(s.urls.commands), s.installed(p.Team)
	switch {
	case app == nil || target == "" || !s.grantedCommands() || (s.cfg.Commands != nil && !slices.Contains(s.cfg.Commands, in.Command)):
		s.mu.Unlock()
		return CommandOutcome{VisibleError: in.Command + " is not a valid command."}, nil
	case in.ThreadTS != "":
		s.mu.Unlock()
		return CommandOutcome{VisibleError: in.Command + " is not supported in threads. Sorry!"}, nil
	}
	text := in.Text
	if s.cfg.EscapeCommands {
		text = s.inputs.escapeCommand(text)
	}
	response := s.responder.newResponseURL(app, "commands", c, p, nil)
	w := s.workspace(p.Team)
	form := url.Values{
		"token": {verificationToken}, "team_id": {w.ID}, "team_domain": {w.Domain},
		"channel_id": {c.ID}, "channel_name": {c.payloadName()}, "user_id": {p.ID}, "user_name": {p.Name},
		"command": {in.Command}, "text": {text}, "response_url": {response},
		"trigger_id": {s.screens.newTrigger(app, p.ID, "", c)}, "api_app_id": {AppID}, "is_enterprise_install": {strconv.FormatBool(app.org())},
	}
	if e, ok := s.enterpriseOf(w.ID).(object); ok {
		form.Set("enterprise_id", str(e["id"]))
		form.Set("enterprise_name", str(e["name"]))
	}
	s.mu.Unlock()

	r := s.courier.deliver(delivery{
		kind: "slash_command", url: target, contentType: formType, body: []byte(form.Encode()),
		envelope: envelope{commandsEnvelope, formPayload(form), true},
	})
	out := CommandOutcome{Status: r.status}
	if code := commandError(r); code != "" {
		out.VisibleError = fmt.Sprintf("%s failed with the error %q", in.Command, code)
		return out, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, problem := s.commandAnswer(app, in, r, c, p)
	if problem != "" {
		out.VisibleError = fmt.Sprintf("%s failed with the error %q", in.Command, problem)
	}
	if m != nil {
		seen := c.seen(m)
		out.Message = &seen
	}
	return out, nil
}

func commandError(r reply) string {
	switch {
	case r.timedOut():
		return "operation_timeout"
	case r.status == 0:
		return "dispatch_failed"
	case r.status >= 500:
		return "http_service_error"
	case r.status != 200:
		return "http_client_error"
	}
	return ""
}

// commandAnswer shows what the app put into its answer: nothing, a JSON message,
// or text, as which Slack shows JSON of any other type. The caller holds mu.
//
// https://github.com/slack-php/slack-php-app-framework/issues/6
func (s *interactions) commandAnswer(app *installation, in Command, r reply, c *channel, p *Person) (*message, string) {
	body := strings.TrimSpace(string(r.body))
	if body == "" {
		return nil, ""
	}
	post := object{"text": body}
	if r.mediaType() == jsonType {
		v, err := decodeJSON(r.body)
		o, ok := v.(object)
		if err != nil || !ok {
			return nil, "invalid_command_response"
		}
		if len(o) == 0 {
			return nil, ""
		}
		post = o
	}
	k, f := answerOf(post).contentOf()
	if f != nil {
		return nil, "invalid_command_response"
	}
	if k.empty() {
		if post["response_type"] == "in_channel" {
			s.messages.store(c, &message{user: p.ID, text: typed2text(in)})
			return nil, ""
		}
		return nil, "invalid_command_response"
	}
	m := &message{
		user: app.botUser, app: app, text: k.text,
		blocks: storedBlocks(k.blocks), attachments: k.attachments, metadata: k.metadata, visibleTo: p.ID,
	}
	if post["response_type"] == "in_channel" {
		m.visibleTo = ""
		s.messages.store(c, &message{user: p.ID, text: typed2text(in)}) // the channel also sees what was typed
	}
	return s.messages.store(c, m), ""
}

func typed2text(in Command) string {
	return escapeText(strings.TrimSpace(in.Command + " " + in.Text))
}
