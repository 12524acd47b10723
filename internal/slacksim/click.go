package slacksim

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// interactions is what people do to what the app drew, and the commands and
// shortcuts by which they call it.
type interactions struct {
	*world

	payloads   *payloads
	courier    *courier
	socketMode *socketMode
	messages   *messages
	screens    *screens
	inputs     *inputs
	responder  *responder
}

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
func (s *interactions) Click(in Click) (ClickOutcome, error) {
	s.mu.Lock()
	payload, out, err := s.click(in)
	target := s.socketMode.listens(s.urls.interactivity)
	s.mu.Unlock()
	if err != nil || payload == nil {
		return out, err
	}
	return s.interactOnce(target, payload, out), nil
}

// interact sends an interaction payload to the app, once.
func (s *interactions) interact(target string, payload object) reply {
	kind, body := str(payload["type"]), encodeJSON(payload)
	return s.courier.deliver(delivery{
		kind: kind, url: target, contentType: formType, body: []byte("payload=" + url.QueryEscape(string(body))),
		envelope: envelope{interactiveEnvelope, body, kind == "view_submission" || kind == "block_suggestion"},
	})
}

// click prepares the payload; nil means that nothing is to be sent. The
// caller holds mu.
func (s *interactions) click(in Click) (object, ClickOutcome, error) {
	if in.Value == nil {
		in.Value = in.SelectedOption
	}
	if in.ViewID != "" {
		return s.clickView(in)
	}
	at, err := s.place(in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	m := at.message
	b, e, err := findOnScreen(at.blocks, m.earlier, in)
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
	if state != nil {
		m.enter(at.person.ID, str(b["block_id"]), str(e["action_id"]), state)
	}
	if waits(b) {
		return nil, ClickOutcome{}, nil
	}
	values := blockkit.InitialState(at.blocks)
	blockkit.Keep(at.blocks, values, m.entered[at.person.ID])
	payload := s.interaction(m.app, "block_actions", at.person, "", at.channel)
	payload["container"] = at.container(b)
	payload["channel"] = object{"id": at.channel.ID, "name": at.channel.payloadName()}
	if m.visibleTo == "" { // Slack does not send ephemeral messages back
		payload["message"] = s.payloads.messageJSON(at.channel, m, true)
	}
	payload["state"] = object{"values": values}
	payload["response_url"] = s.responder.newResponseURL(m.app, "actions", at.channel, at.person, m)
	payload["actions"] = []object{action}
	return payload, ClickOutcome{URL: str(e["url"])}, nil
}

func (s *interactions) clickView(in Click) (object, ClickOutcome, error) {
	at, err := s.place(in)
	if err != nil {
		return nil, ClickOutcome{}, err
	}
	v := at.view
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
	if waits(b) {
		return nil, ClickOutcome{}, nil
	}
	payload := s.viewInteraction("block_actions", at.person, v)
	payload["container"] = at.container(b)
	payload["actions"] = []object{action}
	return payload, ClickOutcome{URL: str(e["url"])}, nil
}

// waits reports whether what is entered into a block is not sent by itself: it
// is in the state of the next click, or of the submission.
func waits(b object) bool {
	dispatch, _ := b["dispatch_action"].(bool)
	return b["type"] == "input" && !dispatch
}

// interaction is what every interaction payload starts with. viewID is the
// view that its trigger belongs to, c the channel.
func (s *interactions) interaction(in *installation, kind string, p *Person, viewID string, c *channel) object {
	o := object{
		"type": kind, "team": s.payloads.teamJSON(in, in.team),
		"user":       object{"id": p.ID, "username": p.Name, "name": p.Name, "team_id": p.Team},
		"api_app_id": AppID, "token": verificationToken, "enterprise": s.enterpriseOf(in.team), "is_enterprise_install": in.org(),
	}
	if kind != "view_closed" && kind != "block_suggestion" {
		o["trigger_id"] = s.screens.newTrigger(in, p.ID, viewID, c)
	}
	return o
}

// viewInteraction is the start of payloads about a view. Its team is that of
// the person, who may be met in another company's channel; which workspace
// the app is installed in is said by the view's app_installed_team_id.
func (s *interactions) viewInteraction(kind string, p *Person, v *view) object {
	o := s.interaction(v.in, kind, p, v.id, v.from)
	o["team"], o["view"] = s.payloads.teamJSON(v.in, p.Team), s.payloads.viewJSON(v)
	return o
}

// echoed are the fields of an element that its entry in actions repeats, beside
// what was chosen in it at first.
var echoed = []string{"text", "value", "url", "style", "confirm", "placeholder", "workflow"}

// act returns the entry of the payload's actions, and the new state of
// elements that have one.
func (s *interactions) act(b, e object, in Click) (action, state object, err error) {
	action = object{
		"type": e["type"], "action_id": e["action_id"], "block_id": b["block_id"], "action_ts": s.nextTS(),
	}
	for name, v := range e {
		if v != nil && (slices.Contains(echoed, name) || (strings.HasPrefix(name, "initial_") && name != "initial_value")) {
			action[name] = v
		}
	}
	switch kind := str(e["type"]); {
	case kind == "feedback_buttons":
		for _, name := range []string{"positive_button", "negative_button"} {
			button, _ := e[name].(object)
			if len(blockkit.Texts(in.Value)) > 0 && blockkit.Texts(in.Value)[0] == str(button["value"]) {
				action["value"], action["text"] = button["value"], button["text"]
				return action, nil, nil
			}
		}
		return nil, nil, fmt.Errorf("%w: say the value of one of the feedback buttons", ErrBadInput)
	case blockkit.StateField(kind) == "":
		return action, nil, nil
	}
	state, err = s.inputs.entered(b, e, in.Value)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(action, state)
	return action, state, nil
}
