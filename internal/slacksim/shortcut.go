package slacksim

import "fmt"

// Shortcut is a person using one of the app's shortcuts: from the menu of a
// message, which Channel and TS name, or from the search bar.
type Shortcut struct {
	User       string `json:"user"`
	CallbackID string `json:"callback_id"`
	Channel    string `json:"channel,omitempty"`
	TS         string `json:"ts,omitempty"`
}

// Shortcut sends a shortcut to the app, once, and waits for its answer.
func (s *interactions) Shortcut(in Shortcut) (ClickOutcome, error) {
	s.mu.Lock()
	payload, err := s.shortcut(in)
	target := s.socketMode.listens(s.urls.interactivity)
	s.mu.Unlock()
	if err != nil {
		return ClickOutcome{}, err
	}
	return s.interactOnce(target, payload, ClickOutcome{}), nil
}

// interactOnce sends an interaction and says what the person saw of it.
func (s *interactions) interactOnce(target string, payload object, out ClickOutcome) ClickOutcome {
	if target == "" {
		out.VisibleError = notConfigured
		return out
	}
	r := s.interact(target, payload)
	out.Status = r.status
	switch {
	case r.timedOut():
		out.VisibleError = clickTimeout
	case r.status != 200:
		out.VisibleError = clickFailed
	}
	return out
}

func (s *interactions) shortcut(in Shortcut) (object, error) {
	if in.CallbackID == "" {
		return nil, fmt.Errorf("%w: a shortcut has a callback_id", ErrBadInput)
	}
	p, err := s.active(in.User)
	if err != nil {
		return nil, err
	}
	app := s.installed(p.Team)
	if app == nil {
		return nil, fmt.Errorf("%w: the app is not installed in the workspace of %s", ErrForbidden, p.Name)
	}
	if !s.grantedCommands() {
		return nil, fmt.Errorf("%w: the app was not granted the scope commands, without which it has no shortcuts", ErrForbidden)
	}
	if in.TS == "" {
		payload := s.interaction(app, "shortcut", p, "", nil)
		payload["callback_id"], payload["action_ts"] = in.CallbackID, s.nextTS()
		return payload, nil
	}
	p, c, err := s.actor(in.User, in.Channel)
	if err != nil {
		return nil, err
	}
	m := c.find(in.TS)
	if m == nil || m.visibleTo != "" {
		return nil, noSuch("message", in.TS)
	}
	payload := s.interaction(app, "message_action", p, "", c)
	payload["callback_id"], payload["action_ts"] = in.CallbackID, s.nextTS()
	payload["message_ts"], payload["message"] = m.ts, s.payloads.messageJSON(c, m, true)
	payload["channel"] = object{"id": c.ID, "name": c.payloadName()}
	payload["response_url"] = s.responder.newResponseURL(app, "app", c, p, nil)
	return payload, nil
}
