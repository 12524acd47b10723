package slacksim

import (
	"fmt"
	"maps"
	"net/url"
)

// Click is a person using an interactive element of a message or a view.
type Click struct {
	User     string `json:"user"`
	Channel  string `json:"channel,omitempty"` // with TS: the message
	TS       string `json:"ts,omitempty"`
	ViewID   string `json:"view_id,omitempty"` // instead: the view
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id,omitempty"` // needed when the action_id is not unique
	// What was chosen or entered, for elements other than buttons: the value
	// of an option, an id, a date, a text, or a list of those.
	Value          any  `json:"value,omitempty"`
	SelectedOption any  `json:"selected_option,omitempty"` // the same; a value or an option object
	Confirmed      bool `json:"confirmed,omitempty"`       // the person went through the confirm dialog
}

// ClickOutcome is what the person saw.
type ClickOutcome struct {
	Status       int    `json:"status"`                  // of the app's answer; 0: none, or nothing was sent
	VisibleError string `json:"visible_error,omitempty"` // the warning beside the element
	Confirm      any    `json:"confirm,omitempty"`       // a dialog came first; click again with Confirmed
	URL          string `json:"url,omitempty"`           // what the browser opened
}

const (
	notConfigured = "This app is not configured to handle interactive responses."
	clickTimeout  = "The app did not respond in time."
	clickFailed   = "The app could not be reached or answered with an error."
)

// Click uses an element and waits for the app's answer. Every click is sent
// once, with its own trigger_id and action_ts.
func (s *Server) Click(in Click) (ClickOutcome, error) {
	s.mu.Lock()
	payload, out, err := s.click(in)
	target := s.urls.interactivity
	s.mu.Unlock()
	if err != nil || payload == nil {
		return out, err
	}
	if target == "" {
		out.VisibleError = notConfigured
		return out, nil
	}
	r := s.interact(target, payload)
	out.Status = r.status
	switch {
	case r.timedOut():
		out.VisibleError = clickTimeout
	case r.status != 200:
		out.VisibleError = clickFailed
	}
	return out, nil
}

// interact sends an interaction payload to the app, once.
func (s *Server) interact(target string, payload object) reply {
	return s.deliver(delivery{
		kind: str(payload["type"]), url: target, contentType: formType,
		body: []byte("payload=" + url.QueryEscape(string(encodeJSON(payload)))),
	})
}

// click prepares the payload; nil means that nothing is to be sent. The
// caller holds mu.
func (s *Server) click(in Click) (object, ClickOutcome, error) {
	if in.Value == nil {
		in.Value = in.SelectedOption
	}
	if in.ViewID != "" {
		return s.clickView(in)
	}
	p, c, err := s.actor(in.User, in.Channel)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	m := c.find(in.TS)
	if m == nil || (m.visibleTo != "" && m.visibleTo != p.ID) {
		return nil, ClickOutcome{}, noSuch("message", in.TS)
	}
	list := append(append([]any{}, m.blocks...), attachedBlocks(m.attachments)...)
	b, e, err := findOnScreen(list, m.earlier, in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	action, state, err := s.act(b, e, in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	if e["confirm"] != nil && !in.Confirmed {
		return nil, ClickOutcome{Confirm: e["confirm"]}, nil
	}
	values := initialValues(list)
	if state != nil && values[str(b["block_id"])] != nil {
		values[str(b["block_id"])][str(e["action_id"])] = state
	}
	container := object{
		"type": "message", "message_ts": m.ts, "channel_id": c.ID, "is_ephemeral": m.visibleTo != "",
	}
	if m.threadTS != "" {
		container["thread_ts"] = m.threadTS
	} else if len(c.thread(m.ts)) > 0 {
		container["thread_ts"] = m.ts
	}
	payload := s.interaction("block_actions", p, "")
	payload["container"] = container
	payload["channel"] = object{"id": c.ID, "name": c.payloadName()}
	if m.visibleTo == "" { // Slack does not send ephemeral messages back
		payload["message"] = s.messageJSON(c, m, true)
	}
	payload["state"] = object{"values": values}
	payload["response_url"] = s.newResponseURL("actions", c, p, m)
	payload["actions"] = []object{action}
	return payload, ClickOutcome{URL: str(e["url"])}, nil
}

// findOnScreen also looks at what the message was before it was edited, the
// latest first: a person may click before the edit has reached their screen.
func findOnScreen(now []any, earlier [][]any, in Click) (block, element object, err error) {
	block, element, err = find(now, in)
	for i := len(earlier) - 1; i >= 0 && err != nil; i-- {
		if b, e, stale := find(earlier[i], in); stale == nil {
			return b, e, nil
		}
	}
	return block, element, err
}

func (s *Server) clickView(in Click) (object, ClickOutcome, error) {
	p := s.person(in.User)
	if p == nil {
		return nil, ClickOutcome{}, noSuch("person", in.User)
	}
	v := s.views[in.ViewID]
	if home := s.homes[p.ID]; home != nil && home.id == in.ViewID {
		v = home
	}
	if v == nil || v.user != p.ID {
		return nil, ClickOutcome{}, noSuch("view", in.ViewID)
	}
	b, e, err := find(v.blocks(), in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	action, state, err := s.act(b, e, in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	if e["confirm"] != nil && !in.Confirmed {
		return nil, ClickOutcome{Confirm: e["confirm"]}, nil
	}
	if state != nil && v.values[str(b["block_id"])] != nil {
		v.values[str(b["block_id"])][str(e["action_id"])] = state
		s.changed()
	}
	if dispatch, _ := b["dispatch_action"].(bool); b["type"] == "input" && !dispatch {
		return nil, ClickOutcome{}, nil // the value travels with the submission
	}
	payload := s.interaction("block_actions", p, v.id)
	payload["container"] = object{"type": "view", "view_id": v.id}
	payload["view"] = s.viewJSON(v)
	payload["actions"] = []object{action}
	return payload, ClickOutcome{URL: str(e["url"])}, nil
}

// interaction is what every interaction payload starts with. viewID is the
// view that its trigger belongs to.
func (s *Server) interaction(kind string, p *Person, viewID string) object {
	o := object{
		"type": kind, "team": object{"id": TeamID, "domain": TeamDomain},
		"user":       object{"id": p.ID, "username": p.Name, "name": p.Name, "team_id": TeamID},
		"api_app_id": AppID, "token": verificationToken, "enterprise": nil, "is_enterprise_install": false,
	}
	if kind != "view_closed" {
		o["trigger_id"] = s.newTrigger(p.ID, viewID)
	}
	return o
}

// act returns the entry of the payload's actions, and the new state of
// elements that have one.
func (s *Server) act(b, e object, in Click) (action, state object, err error) {
	action = object{
		"type": e["type"], "action_id": e["action_id"], "block_id": b["block_id"], "action_ts": s.nextTS(),
	}
	for _, name := range []string{"text", "value", "style", "confirm", "placeholder", "initial_option", "initial_options", "workflow"} {
		if e[name] != nil {
			action[name] = e[name]
		}
	}
	switch kind := str(e["type"]); {
	case kind == "feedback_buttons":
		for _, name := range []string{"positive_button", "negative_button"} {
			button, _ := e[name].(object)
			if len(texts(in.Value)) > 0 && texts(in.Value)[0] == str(button["value"]) {
				action["value"], action["text"] = button["value"], button["text"]
				return action, nil, nil
			}
		}
		return nil, nil, fmt.Errorf("%w: say the value of one of the feedback buttons", ErrBadInput)
	case stateField[kind] == "":
		return action, nil, nil
	}
	state, err = s.entered(e, in.Value)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(action, state)
	return action, state, nil
}

// find looks up the element that a click names.
func find(list []any, in Click) (block, element object, err error) {
	n := 0
	walkElements(list, func(b, e object) {
		if e["action_id"] == in.ActionID && (in.BlockID == "" || b["block_id"] == in.BlockID) {
			n++
			block, element = b, e
		}
	})
	switch n {
	case 0:
		return nil, nil, noSuch("action_id", in.ActionID)
	case 1:
		return block, element, nil
	}
	return nil, nil, fmt.Errorf("%w: action_id %q is there %d times, say the block_id", ErrBadInput, in.ActionID, n)
}

func attachedBlocks(attachments []any) []any {
	var all []any
	for _, a := range attachments {
		o, _ := a.(object)
		inner, _ := o["blocks"].([]any)
		all = append(all, inner...)
	}
	return all
}
