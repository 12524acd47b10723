package slacksim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// events tells the app what happens, if it subscribed to it.
type events struct {
	*world

	payloads   *payloads
	courier    *courier
	socketMode *socketMode
}

// retryDelays is how long after a failed attempt the next one follows.
var retryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

// emit sends an event of a workspace to one installation of the app, if it
// subscribed to it. c is the channel it happened in, if any. It returns at
// once. The caller holds mu.
func (s *events) emit(in *installation, c *channel, team string, event object) {
	if in != nil && in.ended == "" {
		s.sendEvent(s.envelope(in, c, team, event))
	}
}

// subscriptions are the names by which apps subscribe to messages.
var subscriptions = map[string]string{
	"im": "message.im", "mpim": "message.mpim", "group": "message.groups", "channel": "message.channels",
}

// eventScopes has every event that is sent, with the scope without which Slack does not
// send it: of people who come and go, with the letter of their channel_type, the one for
// the kind of channel.
//
// https://docs.slack.dev/apis/events-api
var eventScopes = map[string]string{
	"app_mention": "app_mentions:read", "message.im": "im:history", "message.mpim": "mpim:history",
	"message.groups": "groups:history", "message.channels": "channels:history",
	"member_joined_channel/C": "channels:read", "member_joined_channel/G": "groups:read",
	"member_left_channel/C": "channels:read", "member_left_channel/G": "groups:read",
	"channel_left": "channels:read", "channel_archive": "channels:read", "channel_unarchive": "channels:read",
	"channel_created": "channels:read",
	"group_left":      "groups:read", "group_archive": "groups:read", "group_unarchive": "groups:read",
	"reaction_added": "reactions:read", "reaction_removed": "reactions:read", "user_change": "users:read",
	"subteam_members_changed": "usergroups:read", "subteam_updated": "usergroups:read",
	"app_home_opened": "", "app_uninstalled": "", "tokens_revoked": "",
}

// KnownEvents are the bot events that an app can get here, in order. Slack has more.
func KnownEvents() []string {
	var names []string
	for event := range eventScopes {
		name, _, _ := strings.Cut(event, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// EventScopes are the bot scopes for an event, in order. Without one of them no app gets
// it. There are none for an event that needs no scope, and for one that is not known here.
func EventScopes(event string) []string {
	var scopes []string
	for name, scope := range eventScopes {
		if known, _, _ := strings.Cut(name, "/"); known == event && scope != "" {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}

// subscribed reports whether the app gets an event: it subscribed to it, and was granted
// the scope for it.
func (s *events) subscribed(event object) bool {
	name, kind := str(event["type"]), str(event["channel_type"])
	if name == "message" {
		name, kind = subscriptions[kind], ""
	}
	scope, known := eventScopes[strings.TrimSuffix(name+"/"+kind, "/")]
	return known && slices.Contains(s.cfg.Events, name) && (scope == "" || slices.Contains(s.cfg.Scopes, scope))
}

// envelope is what Slack puts around an event.
func (s *events) envelope(in *installation, c *channel, team string, event object) object {
	now := s.clock.now()
	if event["event_ts"] == nil {
		event["event_ts"] = fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	}
	team = cmp.Or(team, s.home(in).ID)
	authorization := object{
		"enterprise_id": s.enterpriseID(in.team), "team_id": orNil(in.team), "user_id": in.botUser, "is_bot": true,
		"is_enterprise_install": in.org(),
	}
	o := object{
		"type": "event_callback", "token": verificationToken, "team_id": team, "api_app_id": AppID,
		"context_team_id": team, "context_enterprise_id": s.enterpriseID(team), "event": event,
		"event_id": s.nextID("Ev"), "event_time": now.Unix(), "authorizations": []object{authorization},
		"is_ext_shared_channel": c != nil && s.external(c), "event_context": "4-" + randomHex(12),
	}
	if e := s.enterpriseID(team); e != nil {
		o["enterprise_id"] = e
	}
	return o
}

// sendEvent delivers an envelope if the app gets what is in it.
func (s *events) sendEvent(content object) {
	event, _ := content["event"].(object)
	kind := str(event["type"])
	if s.socketMode.listens(s.urls.events) == "" || !s.subscribed(event) {
		return
	}
	body := encodeJSON(content)
	first := func() { s.spawn(func() { s.attempt(kind, body, 0, "") }) }
	if wait := s.faults.holdsBack(s.clock.now()); wait > 0 {
		s.later(wait, first)
		return
	}
	first()
}

// verificationToken is the deprecated proof of origin that payloads carry.
const verificationToken = "slacksim-verification" //nolint:gosec // simulated, and public

// attempt delivers an event for the n-th time, and plans the next attempt if
// the app did not accept it.
func (s *events) attempt(kind string, body []byte, n int, why string) {
	s.mu.Lock()
	target := s.socketMode.listens(s.urls.events)
	s.mu.Unlock()
	if target == "" {
		return // the app stopped listening
	}
	headers := map[string]string{}
	if n > 0 {
		headers["X-Slack-Retry-Num"] = strconv.Itoa(n)
		headers["X-Slack-Retry-Reason"] = why
	}
	r := s.courier.deliver(delivery{
		kind: kind, url: target, contentType: jsonType, body: body, headers: headers,
		envelope: envelope{eventsEnvelope, body, false}, retry: n, why: why,
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	if r.problem == "" {
		if n < len(retryDelays) && s.faults.duplicates() {
			s.spawn(func() { s.attempt(kind, body, n+1, timeout(target)) })
		}
		return
	}
	if n >= len(retryDelays) || (r.status != 0 && r.header.Get("X-Slack-No-Retry") == "1") {
		return
	}
	again := func() { s.spawn(func() { s.attempt(kind, body, n+1, r.problem) }) }
	delay := time.Duration(float64(retryDelays[n]) * s.cfg.RetryScale)
	if delay == 0 {
		again()
		return
	}
	s.later(delay, again)
}

// later calls f with mu held once d has passed on the workspace's clock.
func (s *events) later(d time.Duration, f func()) {
	s.clock.after(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	})
}

// timeout is the retry reason of an answer that came too late.
func timeout(target string) string {
	if target == overSocket {
		return "timeout"
	}
	return "http_timeout"
}

// CheckSSL does what Slack does from time to time with the URL of slash
// commands: an ssl_check that carries no signature and is to be answered
// with 200.
func (s *events) CheckSSL() (SSLChecked, error) {
	s.mu.Lock()
	target := s.socketMode.listens(s.urls.commands)
	s.mu.Unlock()
	if target == "" || target == overSocket {
		return SSLChecked{}, fmt.Errorf("%w: no commands URL is set", ErrBadInput)
	}
	form := url.Values{"ssl_check": {"1"}, "token": {verificationToken}}
	r := s.courier.deliver(delivery{kind: "ssl_check", url: target, contentType: formType, body: []byte(form.Encode()), unsigned: true})
	return SSLChecked{Status: r.status}, nil
}

// VerifyEventsURL does the url_verification handshake with the events URL.
// It returns an error unless the app answers with the challenge.
func (s *events) VerifyEventsURL() error {
	s.mu.Lock()
	target := s.socketMode.listens(s.urls.events)
	s.mu.Unlock()
	if target == "" || target == overSocket {
		return fmt.Errorf("%w: no events URL is set", ErrBadInput)
	}
	challenge := randomHex(20)
	body := encodeJSON(object{"type": "url_verification", "token": verificationToken, "challenge": challenge})
	r := s.courier.deliver(delivery{kind: "url_verification", url: target, contentType: jsonType, body: body})
	switch {
	case r.status == 0:
		return fmt.Errorf("the app did not answer url_verification (%s)", r.problem)
	case r.status != http.StatusOK:
		return fmt.Errorf("the app answered url_verification with status %d", r.status)
	}
	if !r.repeats(challenge) {
		return errNoChallenge
	}
	return nil
}

// repeats reports whether an app answered with the challenge: as text, as JSON or as a
// form, but not as HTML, not without a type, and not as JSON that it is not.
//
// https://docs.slack.dev/reference/events/url_verification
// https://github.com/wagtail/wagtail-live/issues/139
// https://github.com/soxtoby/SlackNet/pull/145
// https://github.com/slackapi/python-slack-events-api/pull/99
func (r reply) repeats(challenge string) bool {
	var answer struct{ Challenge string }
	isJSON := json.Unmarshal(r.body, &answer) == nil && answer.Challenge == challenge
	switch r.mediaType() {
	case "", "text/html":
		return false
	case jsonType:
		return isJSON
	}
	form, err := url.ParseQuery(string(r.body))
	return isJSON || string(r.body) == challenge || (err == nil && form.Get("challenge") == challenge)
}

// tell sends a person's message to the installations whose bot is there:
// as message to those that read along, as app_mention when it names the bot.
func (s *events) tell(c *channel, p *Person, m *message) {
	for _, in := range s.installs {
		if !c.has(in.botUser) {
			continue
		}
		event := object{
			"user": p.ID, "ts": m.ts, "client_msg_id": m.clientID, "text": m.text, "team": p.Team,
			"blocks": m.blocks, "channel": c.ID, "event_ts": m.ts,
		}
		if m.threadTS != "" {
			event["thread_ts"] = m.threadTS
			if first := c.find(m.threadTS); first != nil {
				event["parent_user_id"] = first.user
			}
		}
		if s.stranger(in, p) {
			event["user_team"], event["source_team"] = p.Team, p.Team
		}
		if !c.IM && strings.Contains(m.text, "<@"+in.botUser+">") {
			mentioned := maps.Clone(event)
			mentioned["type"] = "app_mention"
			s.emit(in, c, s.eventTeam(in, c), mentioned)
		}
		event["type"], event["channel_type"] = "message", c.kind()
		s.emit(in, c, s.eventTeam(in, c), event)
	}
}

// tellOfApp sends what an app did to a message to the installations that see
// it, including itself: posted, message_changed or message_deleted. There are
// no events of ephemeral messages.
func (s *events) tellOfApp(c *channel, m *message, subtype string, before object) {
	if m.visibleTo != "" {
		return
	}
	for _, in := range s.installs {
		if !c.has(in.botUser) {
			continue
		}
		event := s.payloads.messageJSON(c, m, true)
		if subtype != "" {
			event = object{
				"type": "message", "subtype": subtype, "hidden": true, "ts": s.nextTS(), "previous_message": before,
			}
			if subtype == "message_deleted" {
				event["deleted_ts"] = before["ts"]
			} else {
				event["message"] = s.payloads.messageJSON(c, m, true)
			}
		}
		event["channel"], event["channel_type"], event["event_ts"] = c.ID, c.kind(), event["ts"]
		s.emit(in, c, s.eventTeam(in, c), event)
	}
}

// membership tells the installations whose bot is in the channel. Only who joins can
// have been invited.
func (s *events) membership(kind, user, inviter string, c *channel) {
	letter := "C"
	if c.Private {
		letter = "G"
	}
	for _, in := range s.installs {
		if c.has(in.botUser) {
			event := object{"type": kind, "user": user, "channel": c.ID, "channel_type": letter, "team": c.Team}
			if inviter != "" {
				event["inviter"] = inviter
			}
			s.emit(in, c, s.eventTeam(in, c), event)
		}
	}
}

// SetInstalled uninstalls the app from a workspace (the first one for an
// empty id) or installs it again, with the same token. Uninstalling tells
// the app with tokens_revoked and app_uninstalled, in no fixed order.
func (s *events) SetInstalled(team string, installed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, in := range s.installs {
		if in.team != team && (team != "" || i != 0) {
			continue
		}
		if installed {
			in.ended = ""
		} else if in.ended == "" {
			first, second := s.envelope(in, nil, in.team, object{
				"type": "tokens_revoked", "tokens": object{"oauth": []string{}, "bot": []string{in.botUser}},
			}), s.envelope(in, nil, in.team, object{"type": "app_uninstalled"})
			if s.lastID%2 == 0 {
				first, second = second, first
			}
			s.sendEvent(first)
			s.sendEvent(second)
			in.ended = "account_inactive"
		}
		s.changed()
		return nil
	}
	return noSuch("installation", team)
}
