package slacksim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	if name == "" || kind == "file_input" {
		return nil, fmt.Errorf("%w: nothing can be entered into a %s", ErrBadInput, kind)
	}
	state := blockkit.EmptyState(e)
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
			item, err := s.chosen(name, v)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
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
		one, err := s.chosen(name, blockkit.Texts(input)[0])
		if err != nil {
			return nil, err
		}
		state[name] = one
	}
	return state, nil
}

// chosen is what a person chose or typed, as the app gets it: people and channels by
// their ids. It refuses what nobody can choose.
func (s *inputs) chosen(name, v string) (string, error) {
	switch strings.TrimSuffix(name, "s") {
	case "selected_user":
		if p := s.person(v); p != nil {
			return p.ID, nil
		}
		return "", noSuch("person", v)
	case "selected_channel", "selected_conversation":
		if c := s.channel(v); c != nil {
			return c.ID, nil
		}
		if p := s.person(v); p != nil && strings.HasPrefix(name, "selected_conversation") {
			return p.ID, nil // with whom nobody has spoken yet
		}
		return "", noSuch("channel", v)
	case "selected_date":
		return v, written(time.DateOnly, v)
	case "selected_time":
		return v, written("15:04", v)
	}
	return v, nil
}

// written refuses a text that is not in a layout of package time, with every digit.
func written(layout, v string) error {
	if _, err := time.Parse(layout, v); err != nil || len(v) != len(layout) {
		return fmt.Errorf("%w: %q is not written as in %s", ErrBadInput, v, layout)
	}
	return nil
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

var mention = regexp.MustCompile(`<@[UW][A-Z0-9]+>|<!subteam\^S[A-Z0-9]+>|<#C[A-Z0-9]+>|@[a-zA-Z0-9_.-]+`)

// fromComposer turns what was typed into message text: mentions of what
// exists become entities, the rest is escaped. The caller holds mu.
func (s *inputs) fromComposer(team, typed string) string {
	var out strings.Builder
	for typed != "" {
		at := mention.FindStringIndex(typed)
		if at == nil {
			break
		}
		out.WriteString(escapeText(typed[:at[0]]))
		out.WriteString(s.entity(team, typed[at[0]:at[1]]))
		typed = typed[at[1]:]
	}
	return out.String() + escapeText(typed)
}

func (s *inputs) entity(team, token string) string {
	if name, ok := strings.CutPrefix(token, "@"); ok {
		trimmed := strings.TrimRight(name, ".-")
		rest := name[len(trimmed):]
		if p := s.personNear(team, trimmed); p != nil && p.Name == trimmed {
			return "<@" + p.ID + ">" + rest
		}
		for _, g := range s.groups {
			if g.Handle == trimmed {
				return "<!subteam^" + g.ID + ">" + rest
			}
		}
		if slices.Contains([]string{"here", "channel", "everyone"}, trimmed) {
			return "<!" + trimmed + ">" + rest
		}
		return token
	}
	id := strings.Trim(token, "<>@#!")
	id = strings.TrimPrefix(id, "subteam^")
	if s.userByID(id) != nil || s.group(id) != nil || s.channel(id) != nil {
		return token
	}
	return escapeText(token)
}

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

var entityInText = regexp.MustCompile(`<(@[UW][A-Z0-9]+|!subteam\^S[A-Z0-9]+|#C[A-Z0-9]+|!here|!channel|!everyone)>`)

// typedBlocks is the rich_text block that Slack's client sends with a text.
func (s *inputs) typedBlocks(text string) []any {
	var parts []any
	plain := func(t string) {
		if t != "" {
			parts = append(parts, object{"type": "text", "text": unescaper.Replace(t)})
		}
	}
	for {
		at := entityInText.FindStringIndex(text)
		if at == nil {
			break
		}
		plain(text[:at[0]])
		parts = append(parts, inlineEntity(text[at[0]+1:at[1]-1]))
		text = text[at[1]:]
	}
	plain(text)
	section := object{"type": "rich_text_section", "elements": parts}
	return []any{object{"type": "rich_text", "block_id": shortID(), "elements": []any{section}}}
}

func inlineEntity(token string) object {
	switch token[0] {
	case '@':
		return object{"type": "user", "user_id": token[1:]}
	case '#':
		return object{"type": "channel", "channel_id": token[1:]}
	}
	if id, ok := strings.CutPrefix(token, "!subteam^"); ok {
		return object{"type": "usergroup", "usergroup_id": id}
	}
	return object{"type": "broadcast", "range": token[1:]}
}

// escapeCommand replaces @name and #channel by their escaped forms.
func (s *inputs) escapeCommand(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if name, ok := strings.CutPrefix(w, "@"); ok {
			if p := s.person(name); p != nil {
				words[i] = "<@" + p.ID + "|" + p.Name + ">"
			}
		}
		if name, ok := strings.CutPrefix(w, "#"); ok {
			if c := s.channel(name); c != nil && !c.IM {
				shown := c.Name
				if c.Private {
					shown = ""
				}
				words[i] = "<#" + c.ID + "|" + shown + ">"
			}
		}
	}
	return strings.Join(words, " ")
}
