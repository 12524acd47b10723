package blockkit

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

// stateFields are the fields of the state of elements that hold a value.
var stateFields = map[string]string{
	"plain_text_input": "value", "email_text_input": "value", "url_text_input": "value", "number_input": "value",
	"static_select": "selected_option", "external_select": "selected_option", "radio_buttons": "selected_option",
	"overflow":   "selected_option",
	"checkboxes": "selected_options", "multi_static_select": "selected_options", "multi_external_select": "selected_options",
	"users_select": "selected_user", "conversations_select": "selected_conversation", "channels_select": "selected_channel",
	"multi_users_select": "selected_users", "multi_conversations_select": "selected_conversations",
	"multi_channels_select": "selected_channels", "datepicker": "selected_date", "timepicker": "selected_time",
	"datetimepicker": "selected_date_time", "rich_text_input": "rich_text_value",
	"file_input": "files",
}

// StateField is the field that holds the value of an element of this type, or
// empty if it holds none.
func StateField(kind string) string { return stateFields[kind] }

var initialField = map[string]string{
	"value": "initial_value", "selected_option": "initial_option", "selected_options": "initial_options",
	"selected_user": "initial_user", "selected_conversation": "initial_conversation", "selected_channel": "initial_channel",
	"selected_users": "initial_users", "selected_conversations": "initial_conversations",
	"selected_channels": "initial_channels", "selected_date": "initial_date", "selected_time": "initial_time",
	"selected_date_time": "initial_date_time", "rich_text_value": "initial_value",
}

// InitialState is the state of blocks before any input: every element that
// holds a value, with the app's initial one.
func InitialState(list []any) map[string]map[string]object {
	values := map[string]map[string]object{}
	Walk(list, func(b, e object) {
		kind := str(e["type"])
		name := StateField(kind)
		if name == "" || kind == "overflow" {
			return
		}
		blockID := str(b["block_id"])
		if values[blockID] == nil {
			values[blockID] = map[string]object{}
		}
		state := EmptyState(e)
		if initial := e[initialField[name]]; initial != nil {
			state[name] = initial
		}
		values[blockID][str(e["action_id"])] = state
	})
	return values
}

// EmptyState is the state of an element that holds a value, while it holds none.
func EmptyState(e object) object {
	kind := str(e["type"])
	name := StateField(kind)
	state := object{"type": kind, name: nil}
	if name == "files" || (strings.HasPrefix(name, "selected_") && strings.HasSuffix(name, "s")) {
		state[name] = []any{}
	}
	if zone := e["timezone"]; zone != nil { // of a timepicker
		state["timezone"] = zone
	}
	return state
}

// DefaultTo chooses a conversation in every menu that defaults to the current
// one, names no other, and does not filter out its kind.
func DefaultTo(list []any, values map[string]map[string]object, conversation, kind string) {
	Walk(list, func(b, e object) {
		filter, _ := e["filter"].(object)
		include, filtered := filter["include"].([]any)
		if e["default_to_current_conversation"] != true || (filtered && !slices.Contains(include, any(kind))) {
			return
		}
		state := values[str(b["block_id"])][str(e["action_id"])]
		switch name := StateField(str(e["type"])); {
		case e[initialField[name]] != nil:
		case name == "selected_conversation":
			state[name] = conversation
		case name == "selected_conversations":
			state[name] = []any{conversation}
		}
	})
}

// Keep puts into values, the initial state of list, what was entered into elements that are still there:
// same block_id, same action_id, same type.
func Keep(list []any, values, entered map[string]map[string]object) {
	Walk(list, func(b, e object) {
		blockID, actionID := str(b["block_id"]), str(e["action_id"])
		state, was := entered[blockID][actionID]
		if _, holds := values[blockID][actionID]; was && holds && state["type"] == e["type"] {
			values[blockID][actionID] = state
		}
	})
}

// Texts reads an input as a list of strings.
func Texts(input any) []string {
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
		return Texts(v["value"])
	case []string:
		return v
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, Texts(item)...)
		}
		return all
	}
	return nil
}

// Refusal is what Slack's client says about an input before anything is
// sent, or empty.
func Refusal(block, e, state object) string {
	kind := str(e["type"])
	value := state[StateField(kind)]
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
		if least, ok := Integer(e["min_length"]); ok && n < least {
			return fmt.Sprintf("Please enter at least %d characters.", least)
		}
		most, ok := Integer(e["max_length"])
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
	if most, ok := Integer(e["max_selected_items"]); ok && int64(len(list)) > most {
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

// Integer reads a whole number.
func Integer(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

func str(v any) string {
	s, _ := v.(string)
	return s
}
