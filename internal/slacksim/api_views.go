package slacksim

import (
	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// viewsAPI is views.*.
type viewsAPI struct {
	*world

	payloads *payloads
	screens  *screens
}

// opening checks the view first, so that a bad one does not use up the
// trigger, and then looks at the trigger.
func (s *viewsAPI) opening(c *call) (*view, *trigger, *failure) {
	v, f := s.screens.newView(c, blockkit.OnModal, "", nil)
	if f != nil {
		return nil, nil, f
	}
	t, problem := s.screens.exchange(c.in, c.str("trigger_id"))
	if problem != "" {
		return nil, nil, fail(problem)
	}
	v.user = t.user
	v.openedIn(t.from)
	return v, t, nil
}

func (s *viewsAPI) viewsOpen(c *call) (object, *failure) {
	v, t, f := s.opening(c)
	if f != nil {
		return nil, f
	}
	t.used = true
	s.screens.dropStack(t.user)
	s.screens.push(v)
	return object{"view": s.payloads.viewJSON(v)}, nil
}

const maxStack = 3

func (s *viewsAPI) viewsPush(c *call) (object, *failure) {
	v, t, f := s.opening(c)
	if f != nil {
		return nil, f
	}
	switch stack := s.screens.stacks[t.user]; {
	case t.view == "" || len(stack) == 0:
		return nil, fail("not_found")
	case len(stack) >= maxStack:
		return nil, fail("push_limit_reached")
	}
	t.used = true
	s.screens.push(v)
	return object{"view": s.payloads.viewJSON(v)}, nil
}

func (s *viewsAPI) viewsUpdate(c *call) (object, *failure) {
	id, external := c.str("view_id"), c.str("external_id")
	if id == "" && external == "" {
		return nil, &failure{code: "invalid_arguments", problems: []string{"missing required field: view_id"}}
	}
	var old *view
	for _, v := range s.screens.allViews() {
		if v.in == c.in && ((id != "" && v.id == id) || (id == "" && v.str("external_id") == external)) {
			old = v
		}
	}
	if old == nil {
		return nil, fail("not_found")
	}
	v, f := s.screens.newView(c, old.kind, old.user, old)
	if f != nil {
		return nil, f
	}
	if hash := c.str("hash"); hash != "" && hash != old.hash {
		return nil, fail("hash_conflict")
	}
	s.screens.replace(v)
	return object{"view": s.payloads.viewJSON(v)}, nil
}

func (s *viewsAPI) viewsPublish(c *call) (object, *failure) {
	if s.cfg.NoHome {
		return nil, fail("not_enabled")
	}
	p := s.known(c, c.str("user_id"))
	if p == nil {
		return nil, &failure{code: "invalid_arguments", problems: []string{"invalid `user_id` [json-pointer:/user_id]"}}
	}
	old := s.screens.homes[p.ID]
	v, f := s.screens.newView(c, blockkit.OnHome, p.ID, old)
	if f != nil {
		return nil, f
	}
	if hash := c.str("hash"); hash != "" && old != nil && hash != old.hash {
		return nil, fail("hash_conflict")
	}
	s.screens.replace(v)
	return object{"view": s.payloads.viewJSON(v)}, nil
}
