package slacksim

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// forms is what people do with modals: fill them in, submit and close them.
type forms struct {
	*world

	socketMode   *socketMode
	screens      *screens
	inputs       *inputs
	responder    *responder
	interactions *interactions
}

// Submit is a person filling in a modal and pressing its submit button.
type Submit struct {
	User   string `json:"user"`
	ViewID string `json:"view_id"`
	// Values are what was entered, by block_id and action_id, as in
	// [Click.Value]. What is not named keeps what is there.
	Values map[string]map[string]any `json:"values,omitempty"`
}

// SubmitOutcome is what the person saw.
type SubmitOutcome struct {
	Status       int               `json:"status"` // of the app's answer; 0: none, or nothing was sent
	Closed       bool              `json:"closed,omitempty"`
	Errors       map[string]string `json:"errors,omitempty"`        // under the inputs, by block_id
	VisibleError string            `json:"visible_error,omitempty"` // at the top of the modal
	View         *View             `json:"view,omitempty"`          // the modal that is on top now
}

const trouble = "We had some trouble connecting. Try again?"

// SubmitView checks the inputs as Slack's client does, sends the
// view_submission once, and does what the app answers.
func (s *forms) SubmitView(in Submit) (SubmitOutcome, error) {
	s.mu.Lock()
	p, v, errs, err := s.fill(in)
	if err != nil || len(errs) > 0 {
		s.mu.Unlock()
		return SubmitOutcome{Errors: errs}, err
	}
	payload := s.interactions.viewInteraction("view_submission", p, v)
	payload["response_urls"] = s.responseURLs(v, p)
	target := s.socketMode.listens(s.urls.interactivity)
	s.mu.Unlock()
	if target == "" {
		return SubmitOutcome{VisibleError: notConfigured}, nil
	}
	r := s.interactions.interact(target, payload)

	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.submitted(v, r)
	out.Status = r.status
	if stack := s.screens.stacks[p.ID]; len(stack) > 0 {
		top := stack[len(stack)-1].seen()
		out.View = &top
	}
	s.changed()
	return out, nil
}

// fill enters the values and returns what the client refuses.
func (s *forms) fill(in Submit) (*Person, *view, map[string]string, error) {
	p, err := s.active(in.User)
	if err != nil {
		return nil, nil, nil, err
	}
	v, err := s.screens.modal(p, in.ViewID)
	if err != nil {
		return nil, nil, nil, err
	}
	if v.seen().Submit == "" {
		return nil, nil, nil, fmt.Errorf("%w: the modal has no submit button", ErrForbidden)
	}
	for blockID, actions := range in.Values {
		for actionID, input := range actions {
			b, e, err := find(v.blocks(), Click{ActionID: actionID, BlockID: blockID})
			if err != nil {
				return nil, nil, nil, err
			}
			state, err := s.inputs.entered(b, e, input)
			if err != nil {
				return nil, nil, nil, err
			}
			if v.values[blockID] == nil {
				v.values[blockID] = map[string]object{}
			}
			v.values[blockID][actionID] = state
		}
	}
	errs := map[string]string{}
	blockkit.Walk(v.blocks(), func(b, e object) {
		if b["type"] == "input" {
			if why := blockkit.Refusal(b, e, v.values[str(b["block_id"])][str(e["action_id"])]); why != "" {
				errs[str(b["block_id"])] = why
			}
		}
	})
	v.errors = errs
	s.changed()
	return p, v, errs, nil
}

// responseURLs issues one response_url for every input that asks for it.
func (s *forms) responseURLs(v *view, p *Person) []object {
	urls := []object{}
	blockkit.Walk(v.blocks(), func(b, e object) {
		enabled, _ := e["response_url_enabled"].(bool)
		if !enabled || b["type"] != "input" {
			return
		}
		blockID, actionID := str(b["block_id"]), str(e["action_id"])
		state := v.values[blockID][actionID]
		c := s.channel(str(state[blockkit.StateField(str(e["type"]))]))
		if c != nil {
			urls = append(urls, object{
				"block_id": blockID, "action_id": actionID, "channel_id": c.ID,
				"response_url": s.responder.newResponseURL(v.in, "view", c, p, nil),
			})
		}
	})
	return urls
}

// submitted does what the app answered. The caller holds mu.
func (s *forms) submitted(v *view, r reply) SubmitOutcome {
	if r.status != 200 {
		return SubmitOutcome{VisibleError: trouble}
	}
	current := s.screens.views[v.id]
	if len(r.body) == 0 {
		if current != nil {
			s.screens.pop(current)
		}
		return SubmitOutcome{Closed: true}
	}
	parsed, err := decodeJSON(r.body)
	answer, ok := parsed.(object)
	if err != nil || !ok {
		return SubmitOutcome{VisibleError: trouble}
	}
	if len(answer) == 0 {
		if current != nil {
			s.screens.pop(current)
		}
		return SubmitOutcome{Closed: true}
	}
	payload, _ := answer["view"].(object)
	switch answer["response_action"] {
	case "clear":
		s.screens.dropStack(v.user)
		return SubmitOutcome{Closed: true}
	case "errors":
		return s.answeredErrors(current, answer["errors"])
	case "update":
		if current == nil || payload == nil {
			return SubmitOutcome{VisibleError: trouble}
		}
		next, f := s.screens.buildView(v.in, payload, blockkit.OnModal, v.user, current)
		if f != nil {
			return SubmitOutcome{VisibleError: trouble}
		}
		s.screens.replace(next)
		return SubmitOutcome{}
	case "push":
		next, f := s.screens.buildView(v.in, payload, blockkit.OnModal, v.user, nil)
		if current == nil || payload == nil || f != nil || len(s.screens.stacks[v.user]) >= maxStack {
			return SubmitOutcome{VisibleError: trouble}
		}
		next.openedIn(current.from)
		s.screens.push(next)
		return SubmitOutcome{}
	}
	return SubmitOutcome{VisibleError: trouble}
}

// answeredErrors shows the app's errors; one that is not under an input
// block makes Slack show the generic error instead.
func (s *forms) answeredErrors(v *view, given any) SubmitOutcome {
	o, ok := given.(object)
	if !ok || len(o) == 0 || v == nil {
		return SubmitOutcome{VisibleError: trouble}
	}
	var inputs []string
	blockkit.Walk(v.blocks(), func(b, _ object) {
		if b["type"] == "input" {
			inputs = append(inputs, str(b["block_id"]))
		}
	})
	errs := map[string]string{}
	for blockID, why := range o {
		text, isText := why.(string)
		if !isText || !slices.Contains(inputs, blockID) {
			return SubmitOutcome{VisibleError: trouble}
		}
		errs[blockID] = text
	}
	v.errors = errs
	return SubmitOutcome{Errors: errs}
}

// CloseView closes a modal as a person does: with cancel (back to the one below
// it), or with the X in the corner, which clears the whole stack. The app gets
// view_closed only if the view asked for notify_on_close.
func (s *forms) CloseView(user, viewID string, clear bool) error {
	s.mu.Lock()
	p, err := s.active(user)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	v, err := s.screens.modal(p, viewID)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if clear || v.flag("clear_on_close") {
		clear = true
		v = s.screens.stacks[p.ID][0]
	}
	s.screens.pop(v)
	target := s.socketMode.listens(s.urls.interactivity)
	var payload object
	if v.flag("notify_on_close") && target != "" {
		payload = s.interactions.viewInteraction("view_closed", p, v)
		payload["is_cleared"] = clear
	}
	s.mu.Unlock()
	if payload != nil {
		s.interactions.interact(target, payload)
	}
	return nil
}
