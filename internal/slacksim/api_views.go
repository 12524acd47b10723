package slacksim

import (
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// screens is what apps put on people's screens: modals and Home tabs, and the
// triggers that open them.
type screens struct {
	*engine

	triggers map[string]*trigger
	views    map[string]*view   // every view that is open, by id
	stacks   map[string][]*view // open modals by user, the root first
	homes    map[string]*view
}

// viewsAPI is views.*.
type viewsAPI struct {
	*world

	payloads *payloads
	screens  *screens
}

const maxViewBytes = 250 * 1024

// view is a modal on somebody's screen, or their Home tab.
type view struct {
	id, user, hash string
	in             *installation
	kind           blockkit.Surface
	payload        object // as the app sent it, with ids assigned
	values         map[string]map[string]object
	errors         map[string]string // what the last submission was answered with
	previous, root string
}

func (v *view) str(name string) string {
	s, _ := v.payload[name].(string)
	return s
}

func (v *view) flag(name string) bool {
	b, _ := v.payload[name].(bool)
	return b
}

func (v *view) blocks() []any {
	list, _ := v.payload["blocks"].([]any)
	return list
}

// viewJSON is a view as the Web API and payloads show it.
func (s *payloads) viewJSON(v *view) object {
	values := object{}
	for blockID, actions := range v.values {
		inner := object{}
		for id, state := range actions {
			inner[id] = state
		}
		values[blockID] = inner
	}
	o := object{
		"id": v.id, "team_id": s.teamOfUser(v.user), "type": v.payload["type"], "blocks": v.blocks(),
		"private_metadata": v.str("private_metadata"), "callback_id": v.str("callback_id"),
		"state": object{"values": values}, "hash": v.hash, "title": v.payload["title"],
		"clear_on_close": v.flag("clear_on_close"), "notify_on_close": v.flag("notify_on_close"),
		"close": v.payload["close"], "submit": v.payload["submit"],
		"previous_view_id": orNil(v.previous), "root_view_id": v.root, "app_id": AppID,
		"external_id": v.str("external_id"), "app_installed_team_id": s.installedTeam(v.in), "bot_id": v.in.botID,
	}
	if v.kind == blockkit.OnHome {
		o["title"] = object{"type": "plain_text", "text": "View Title", "emoji": true}
	}
	return o
}

func (s *payloads) teamOfUser(id string) string {
	if p := s.userByID(id); p != nil {
		return p.Team
	}
	return TeamID
}

// installedTeam is the workspace of an installation, or its organization.
func (s *payloads) installedTeam(in *installation) string {
	if in.org() {
		return s.cfg.Enterprise.ID
	}
	return in.team
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// newView checks a payload and returns the view, not yet on any screen.
// replacing is the view it takes the place of, if any.
func (s *screens) newView(c *call, on blockkit.Surface, user string, replacing *view) (*view, *failure) {
	v, ok := c.value("view")
	o, isObject := v.(object)
	if !ok || !isObject {
		return nil, &failure{code: "invalid_arguments", problems: []string{"must provide an object [json-pointer:/view]"}}
	}
	return s.buildView(c.in, o, on, user, replacing)
}

func (s *screens) buildView(in *installation, o object, on blockkit.Surface, user string, replacing *view) (*view, *failure) {
	if replacing != nil && (o["type"] == "modal" || o["type"] == "home") && o["type"] != string(replacing.kind) {
		return nil, &failure{code: "invalid_arguments", problems: []string{"must match the `type` of the root view [json-pointer:/view/type]"}}
	}
	if problems := blockkit.CheckView(on, o); len(problems) > 0 {
		return nil, &failure{code: "invalid_arguments", problems: problems}
	}
	if len(encodeJSON(o)) > maxViewBytes {
		return nil, fail("view_too_large")
	}
	if id, _ := o["external_id"].(string); id != "" {
		for _, other := range s.allViews() {
			if other != replacing && other.in == in && other.str("external_id") == id {
				return nil, fail("duplicate_external_id")
			}
		}
	}
	o = maps.Clone(o)
	list, _ := o["blocks"].([]any)
	blockkit.AssignIDs(list, shortID)
	fresh := &view{
		id: s.nextID("V"), user: user, in: in, kind: on, payload: o,
		hash: newHash(s.clock.now()), values: blockkit.InitialState(list),
	}
	fresh.root = fresh.id
	if replacing != nil {
		fresh.id, fresh.root, fresh.previous = replacing.id, replacing.root, replacing.previous
		fresh.keepInputs(replacing)
	}
	return fresh, nil
}

func (s *screens) allViews() []*view {
	return append(slices.Collect(maps.Values(s.views)), slices.Collect(maps.Values(s.homes))...)
}

// keepInputs carries over what was entered into elements that are still
// there: same block_id, same action_id, same type.
func (v *view) keepInputs(old *view) {
	blockkit.Walk(v.blocks(), func(b, e object) {
		blockID, _ := b["block_id"].(string)
		actionID, _ := e["action_id"].(string)
		state, ok := old.values[blockID][actionID]
		if !ok || state["type"] != e["type"] {
			return
		}
		if v.values[blockID] == nil {
			v.values[blockID] = map[string]object{}
		}
		v.values[blockID][actionID] = state
	})
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

// push puts a new view on top of its user's stack. The caller holds mu.
func (s *screens) push(v *view) {
	if stack := s.stacks[v.user]; len(stack) > 0 {
		v.root, v.previous = stack[0].id, stack[len(stack)-1].id
	}
	s.stacks[v.user] = append(s.stacks[v.user], v)
	s.views[v.id] = v
	s.changed()
}

// pop takes the view, and what is above it, off the screen.
func (s *screens) pop(v *view) {
	stack := s.stacks[v.user]
	at := slices.IndexFunc(stack, func(o *view) bool { return o.id == v.id })
	if at < 0 {
		return
	}
	for _, gone := range stack[at:] {
		delete(s.views, gone.id)
	}
	s.stacks[v.user] = slices.Clone(stack[:at])
	s.changed()
}

func (s *screens) dropStack(user string) {
	if stack := s.stacks[user]; len(stack) > 0 {
		s.pop(stack[0])
	}
}

// replace puts v where the view with the same id is. The caller holds mu.
func (s *screens) replace(v *view) {
	if v.kind == blockkit.OnHome {
		s.homes[v.user] = v
	} else {
		s.views[v.id] = v
		for i, old := range s.stacks[v.user] {
			if old.id == v.id {
				s.stacks[v.user][i] = v
			}
		}
	}
	s.changed()
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
