package slacksim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// retryDelays is how long after a failed attempt the next one follows.
var retryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

// emit sends an event to the app if it subscribed to it. It returns at once.
// The caller holds mu.
func (s *Server) emit(event object) {
	kind, _ := event["type"].(string)
	subscription := kind
	if kind == "message" {
		subscription = "message.im"
	}
	if s.urls.events == "" || !slices.Contains(s.cfg.Events, subscription) {
		return
	}
	now := s.clock.now()
	if event["event_ts"] == nil {
		event["event_ts"] = fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	}
	body := encodeJSON(object{
		"type": "event_callback", "token": verificationToken, "team_id": TeamID, "api_app_id": AppID,
		"context_team_id": TeamID, "context_enterprise_id": nil, "event": event,
		"event_id": s.nextID("Ev"), "event_time": now.Unix(),
		"authorizations": []object{{
			"enterprise_id": nil, "team_id": TeamID, "user_id": BotUser, "is_bot": true, "is_enterprise_install": false,
		}},
		"is_ext_shared_channel": false, "event_context": "4-" + randomHex(12),
	})
	target := s.urls.events
	s.spawn(func() { s.attempt(kind, target, body, 0, "") })
}

// verificationToken is the deprecated proof of origin that payloads carry.
const verificationToken = "slacksim-verification" //nolint:gosec // simulated, and public

// attempt delivers an event for the n-th time, and plans the next attempt if
// the app did not accept it.
func (s *Server) attempt(kind, target string, body []byte, n int, why string) {
	headers := map[string]string{}
	if n > 0 {
		headers["X-Slack-Retry-Num"] = strconv.Itoa(n)
		headers["X-Slack-Retry-Reason"] = why
	}
	r := s.deliver(delivery{kind: kind, url: target, contentType: jsonType, body: body, headers: headers})

	s.mu.Lock()
	defer s.mu.Unlock()
	if r.problem == "" {
		if s.faults.DuplicateDeliveries > 0 && n < len(retryDelays) {
			s.faults.DuplicateDeliveries--
			s.spawn(func() { s.attempt(kind, target, body, n+1, "http_timeout") })
		}
		return
	}
	if n >= len(retryDelays) || (r.status != 0 && r.header.Get("X-Slack-No-Retry") == "1") {
		return
	}
	again := func() { s.spawn(func() { s.attempt(kind, target, body, n+1, r.problem) }) }
	delay := time.Duration(float64(retryDelays[n]) * s.cfg.RetryScale)
	if delay == 0 {
		again()
		return
	}
	s.clock.after(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		again()
	})
}

// VerifyEventsURL does the url_verification handshake with the events URL.
// It returns an error unless the app answers with the challenge.
func (s *Server) VerifyEventsURL() error {
	s.mu.Lock()
	target := s.urls.events
	s.mu.Unlock()
	if target == "" {
		return fmt.Errorf("%w: no events URL is set", ErrBadInput)
	}
	challenge := randomHex(20)
	body := encodeJSON(object{"type": "url_verification", "token": verificationToken, "challenge": challenge})
	r := s.deliver(delivery{kind: "url_verification", url: target, contentType: jsonType, body: body})
	if r.status != http.StatusOK {
		return fmt.Errorf("%w: the app answered url_verification with status %d (%s)", ErrBadInput, r.status, r.problem)
	}
	var answer struct{ Challenge string }
	if json.Unmarshal(r.body, &answer) == nil && answer.Challenge == challenge {
		return nil
	}
	if form, err := url.ParseQuery(string(r.body)); err == nil && form.Get("challenge") == challenge {
		return nil
	}
	if string(r.body) == challenge {
		return nil
	}
	return fmt.Errorf("%w: the app did not answer with the challenge", ErrBadInput)
}
