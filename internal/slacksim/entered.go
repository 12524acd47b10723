package slacksim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// inputs reads what people type and choose.
type inputs struct {
	*world

	loaded map[string][]object // what the app answered to queries, by element
}

// entered is the state of element e of block b after a person entered input: a string,
// a list of strings, a number, an option object, or nil for nothing.
func (s *inputs) entered(b, e object, input any) (object, error) {
	kind := str(e["type"])
	name := blockkit.StateField(kind)
	if name == "" {
		return nil, fmt.Errorf("%w: nothing can be entered into a %s", ErrBadInput, kind)
	}
	state := object{"type": kind, name: nil}
	switch {
	case name == "selected_options":
		chosen := []any{}
		for _, v := range blockkit.Texts(input) {
			o, ok := s.optionOf(b, e, v)
			if !ok {
				return nil, fmt.Errorf("%w: %s has no option %q", ErrBadInput, kind, v)
			}
			chosen = append(chosen, o)
		}
		state[name] = chosen
	case strings.HasSuffix(name, "s") && name != "selected_date_times":
		list := []any{}
		for _, v := range blockkit.Texts(input) {
			list = append(list, s.reference(name, v))
		}
		state[name] = list
	case len(blockkit.Texts(input)) == 0:
	case name == "selected_option":
		o, ok := s.optionOf(b, e, blockkit.Texts(input)[0])
		if !ok {
			return nil, fmt.Errorf("%w: %s has no option %q", ErrBadInput, kind, blockkit.Texts(input)[0])
		}
		state[name] = o
	case name == "selected_date_time":
		n, err := strconv.ParseInt(blockkit.Texts(input)[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s takes unix seconds", ErrBadInput, kind)
		}
		state[name] = n
	case name == "rich_text_value":
		state[name] = s.typedBlocks(escapeText(blockkit.Texts(input)[0]))[0]
	default:
		state[name] = s.reference(name, blockkit.Texts(input)[0])
	}
	return state, nil
}

// reference turns names of people and channels into ids.
func (s *inputs) reference(name, v string) string {
	if strings.HasPrefix(name, "selected_user") {
		if p := s.person(v); p != nil {
			return p.ID
		}
	}
	if strings.HasPrefix(name, "selected_c") {
		if c := s.channel(v); c != nil {
			return c.ID
		}
	}
	return v
}

// optionOf finds an option of a menu, among those that the app sent with the
// menu or was asked for by [Server.Suggest].
func (s *inputs) optionOf(b, e object, value string) (object, bool) {
	lists := []any{[]any{e["initial_option"]}, e["initial_options"]}
	for _, from := range append(s.loaded[loadedKey(b, e)], e) {
		lists = append(lists, from["options"])
		groups, _ := from["option_groups"].([]any)
		for _, g := range groups {
			if o, ok := g.(object); ok {
				lists = append(lists, o["options"])
			}
		}
	}
	for _, l := range lists {
		list, _ := l.([]any)
		for _, item := range list {
			if o, ok := item.(object); ok && o["value"] == value {
				return o, true
			}
		}
	}
	return nil, false
}
