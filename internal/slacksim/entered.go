package slacksim

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields of the state of elements that hold one value.
var stateField = map[string]string{
	"plain_text_input": "value", "email_text_input": "value", "url_text_input": "value", "number_input": "value",
	"static_select": "selected_option", "external_select": "selected_option", "radio_buttons": "selected_option",
	"overflow":   "selected_option",
	"checkboxes": "selected_options", "multi_static_select": "selected_options", "multi_external_select": "selected_options",
	"users_select": "selected_user", "conversations_select": "selected_conversation", "channels_select": "selected_channel",
	"multi_users_select": "selected_users", "multi_conversations_select": "selected_conversations",
	"multi_channels_select": "selected_channels", "datepicker": "selected_date", "timepicker": "selected_time",
	"datetimepicker": "selected_date_time", "rich_text_input": "rich_text_value",
}

var initialField = map[string]string{
	"value": "initial_value", "selected_option": "initial_option", "selected_options": "initial_options",
	"selected_user": "initial_user", "selected_conversation": "initial_conversation", "selected_channel": "initial_channel",
	"selected_users": "initial_users", "selected_conversations": "initial_conversations",
	"selected_channels": "initial_channels", "selected_date": "initial_date", "selected_time": "initial_time",
	"selected_date_time": "initial_date_time", "rich_text_value": "initial_value",
}

// initialValues is the state of blocks that nobody touched: every element
// that holds a value, with what the app preset.
func initialValues(list []any) map[string]map[string]object {
	values := map[string]map[string]object{}
	walkElements(list, func(b, e object) {
		kind := str(e["type"])
		name, holds := stateField[kind]
		if !holds || kind == "overflow" {
			return
		}
		blockID := str(b["block_id"])
		if values[blockID] == nil {
			values[blockID] = map[string]object{}
		}
		state := object{"type": kind, name: e[initialField[name]]}
		if state[name] == nil && strings.HasPrefix(name, "selected_") && strings.HasSuffix(name, "s") {
			state[name] = []any{}
		}
		values[blockID][str(e["action_id"])] = state
	})
	return values
}

// entered is the state of element e of block b after a person entered input: a string,
// a list of strings, a number, an option object, or nil for nothing.
func (s *Server) entered(b, e object, input any) (object, error) {
	kind := str(e["type"])
	name, holds := stateField[kind]
	if !holds {
		return nil, fmt.Errorf("%w: nothing can be entered into a %s", ErrBadInput, kind)
	}
	state := object{"type": kind, name: nil}
	switch {
	case name == "selected_options":
		chosen := []any{}
		for _, v := range texts(input) {
			o, ok := s.optionOf(b, e, v)
			if !ok {
				return nil, fmt.Errorf("%w: %s has no option %q", ErrBadInput, kind, v)
			}
			chosen = append(chosen, o)
		}
		state[name] = chosen
	case strings.HasSuffix(name, "s") && name != "selected_date_times":
		list := []any{}
		for _, v := range texts(input) {
			list = append(list, s.reference(name, v))
		}
		state[name] = list
	case len(texts(input)) == 0:
	case name == "selected_option":
		o, ok := s.optionOf(b, e, texts(input)[0])
		if !ok {
			return nil, fmt.Errorf("%w: %s has no option %q", ErrBadInput, kind, texts(input)[0])
		}
		state[name] = o
	case name == "selected_date_time":
		n, err := strconv.ParseInt(texts(input)[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s takes unix seconds", ErrBadInput, kind)
		}
		state[name] = n
	case name == "rich_text_value":
		state[name] = s.typedBlocks(escapeText(texts(input)[0]))[0]
	default:
		state[name] = s.reference(name, texts(input)[0])
	}
	return state, nil
}

// reference turns names of people and channels into ids.
func (s *Server) reference(name, v string) string {
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

// texts reads an input as a list of strings.
func texts(input any) []string {
	switch v := input.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case bool:
		return []string{strconv.FormatBool(v)}
	case json.Number:
		return []string{v.String()}
	case int:
		return []string{strconv.Itoa(v)}
	case int64:
		return []string{strconv.FormatInt(v, 10)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case object:
		return texts(v["value"])
	case []string:
		return v
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, texts(item)...)
		}
		return all
	}
	return nil
}

// optionOf finds an option of a menu, among those that the app sent with the
// menu or was asked for by [Server.Suggest].
func (s *Server) optionOf(b, e object, value string) (object, bool) {
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

// refusal is what Slack's client says about an input before anything is
// sent, or empty.
func refusal(block, e, state object) string {
	kind := str(e["type"])
	value := state[stateField[kind]]
	list, isList := value.([]any)
	if value == nil || value == "" || (isList && len(list) == 0) {
		if optional, _ := block["optional"].(bool); optional {
			return ""
		}
		return "Please complete this required field."
	}
	text := str(value)
	switch kind {
	case "plain_text_input":
		n := int64(utf8.RuneCountInString(text))
		if least, ok := intOf(e["min_length"]); ok && n < least {
			return fmt.Sprintf("Please enter at least %d characters.", least)
		}
		most, ok := intOf(e["max_length"])
		if !ok {
			most = 3000
		}
		if n > most {
			return fmt.Sprintf("Please enter at most %d characters.", most)
		}
	case "email_text_input":
		if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
			return "Please enter a valid email address."
		}
	case "url_text_input":
		if u, err := url.Parse(text); err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
			return "Please enter a valid URL."
		}
	case "number_input":
		return numberRefusal(e, text)
	}
	if most, ok := intOf(e["max_selected_items"]); ok && int64(len(list)) > most {
		return fmt.Sprintf("Please choose at most %d.", most)
	}
	return ""
}

func numberRefusal(e object, text string) string {
	n, err := strconv.ParseFloat(text, 64)
	decimal, _ := e["is_decimal_allowed"].(bool)
	if err != nil || (!decimal && strings.ContainsAny(text, ".eE")) {
		return "Please enter a valid number."
	}
	if least, err := strconv.ParseFloat(str(e["min_value"]), 64); err == nil && n < least {
		return "Please enter a number of at least " + str(e["min_value"]) + "."
	}
	if most, err := strconv.ParseFloat(str(e["max_value"]), 64); err == nil && n > most {
		return "Please enter a number of at most " + str(e["max_value"]) + "."
	}
	return ""
}

func intOf(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
