package slacksim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

const maxViewBytes = 250 * 1024

// view is a modal on a person's screen, or their Home tab.
type view struct {
	id, user, hash string
	in             *installation
	kind           blockkit.Surface
	payload        object // as the app sent it, with ids assigned
	values         map[string]map[string]object
	errors         map[string]string // what the last submission was answered with
	previous, root string
	from           *channel // where the person was when the first modal was opened, if anywhere
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

// triggerLife is how long a trigger_id can be exchanged.
const triggerLife = 3 * time.Second

// trigger is a person's action that an app may answer with a modal, once.
type trigger struct {
	in     *installation
	user   string
	issued time.Time
	used   bool
	view   string   // the modal it happened in
	from   *channel // or the conversation
}

// screens is what apps put on people's screens: modals and Home tabs, and the
// triggers that open them.
type screens struct {
	*engine

	triggers map[string]*trigger
	views    map[string]*view   // every view that is open, by id
	stacks   map[string][]*view // open modals by user, the root first
	homes    map[string]*view
}

// newTrigger issues a trigger_id. The caller holds mu.
func (s *screens) newTrigger(in *installation, user, viewID string, from *channel) string {
	s.lastID++
	id := fmt.Sprintf("%d.%d.%s", s.clock.now().UnixMicro(), 1_000_000_000+s.lastID, randomHex(16))
	s.triggers[id] = &trigger{in: in, user: user, issued: s.clock.now(), view: viewID, from: from}
	return id
}

// exchange looks at a trigger_id without using it up. The caller holds mu.
func (s *screens) exchange(in *installation, id string) (*trigger, string) {
	t := s.triggers[id]
	switch {
	case t == nil || t.in != in:
		return nil, "invalid_trigger_id"
	case t.used:
		return nil, "exchanged_trigger_id"
	case s.clock.now().Sub(t.issued) > triggerLife:
		return nil, "expired_trigger_id"
	}
	return t, ""
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
	blockkit.FillIn(o)
	fresh := &view{
		id: s.nextID("V"), user: user, in: in, kind: on, payload: o,
		hash: newHash(s.clock.now()), values: blockkit.InitialState(list),
	}
	fresh.root = fresh.id
	if replacing != nil {
		fresh.id, fresh.root, fresh.previous = replacing.id, replacing.root, replacing.previous
		fresh.openedIn(replacing.from)
		blockkit.Keep(list, fresh.values, replacing.values)
	}
	return fresh, nil
}

// openedIn says where the person was, which some menus have as their first
// choice.
func (v *view) openedIn(c *channel) {
	v.from = c
	if c == nil {
		return
	}
	blockkit.DefaultTo(v.blocks(), v.values, c.ID, c.filteredAs())
}

func (s *screens) allViews() []*view {
	return append(slices.Collect(maps.Values(s.views)), slices.Collect(maps.Values(s.homes))...)
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

// modal finds a person's modal by its id. A person reaches the one on top only.
func (s *screens) modal(p *Person, id string) (*view, error) {
	v, stack := s.views[id], s.stacks[p.ID]
	switch {
	case v == nil || v.user != p.ID:
		return nil, noSuch("view", id)
	case stack[len(stack)-1].id != id:
		return nil, fmt.Errorf("%w: another modal is on top of %s", ErrForbidden, id)
	}
	return v, nil
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
