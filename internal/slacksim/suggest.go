package slacksim

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// Query is a person typing into a select menu whose options the app loads.
type Query struct {
	User     string `json:"user"`
	Channel  string `json:"channel,omitempty"` // with TS: the message
	TS       string `json:"ts,omitempty"`
	ViewID   string `json:"view_id,omitempty"` // instead: the view
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id,omitempty"` // needed when the action_id is not unique
	Value    string `json:"value"`              // what was typed so far
}

// Suggestions are the options that the person sees. Only those can be chosen
// afterwards.
type Suggestions struct {
	Status       int    `json:"status"` // of the app's answer; 0: none, or nothing was sent
	Options      []any  `json:"options,omitempty"`
	OptionGroups []any  `json:"option_groups,omitempty"`
	VisibleError string `json:"visible_error,omitempty"`
}

const noOptions = "The options could not be loaded."

// Suggest asks the app for the options of an external select menu.
func (s *interactions) Suggest(in Query) (Suggestions, error) {
	s.mu.Lock()
	payload, element, err := s.query(in)
	target := s.socketMode.listens(cmp.Or(s.urls.options, s.urls.interactivity))
	s.mu.Unlock()
	switch {
	case err != nil:
		return Suggestions{}, err
	case target == "":
		return Suggestions{VisibleError: noOptions}, nil
	}
	r := s.interact(target, payload)
	out := Suggestions{Status: r.status}
	v, err := decodeJSON(r.body)
	answer, ok := v.(object)
	if r.status != 200 || err != nil || !ok || len(suggested(answer)) > 0 {
		out.VisibleError = noOptions
		return out, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Options, _ = answer["options"].([]any)
	out.OptionGroups, _ = answer["option_groups"].([]any)
	s.inputs.loaded[element] = append(s.inputs.loaded[element], answer)
	return out, nil
}

// suggested returns what is wrong with an answer to a query.
func suggested(answer object) []string {
	c := blockkit.NewChecker(blockkit.OnModal)
	c.Options(answer)
	return c.Problems()
}

// query prepares the payload and names the element; the caller holds mu.
func (s *interactions) query(in Query) (object, string, error) {
	click := Click{User: in.User, Channel: in.Channel, TS: in.TS, ViewID: in.ViewID, ActionID: in.ActionID, BlockID: in.BlockID}
	at, err := s.place(click)
	if err != nil {
		return nil, "", err
	}
	b, e, err := find(at.blocks, click)
	if err != nil {
		return nil, "", err
	}
	if !strings.HasSuffix(str(e["type"]), "external_select") {
		return nil, "", fmt.Errorf("%w: the options of a %s are not loaded", ErrBadInput, e["type"])
	}
	least, ok := blockkit.Integer(e["min_query_length"])
	if !ok {
		least = 3
	}
	if int64(len([]rune(in.Value))) < least {
		return nil, "", fmt.Errorf("%w: the menu asks from %d characters on", ErrBadInput, least)
	}
	var payload object
	if at.view != nil {
		payload = s.viewInteraction("block_suggestion", at.person, at.view)
	} else {
		payload = s.interaction(at.app, "block_suggestion", at.person, "", at.channel)
		payload["channel"] = object{"id": at.channel.ID, "name": at.channel.payloadName()}
		payload["message"] = s.payloads.messageJSON(at.channel, at.message, true)
	}
	payload["block_id"], payload["action_id"], payload["value"] = b["block_id"], e["action_id"], in.Value
	payload["container"] = at.container(b)
	return payload, loadedKey(b, e), nil
}

func loadedKey(block, element object) string {
	return str(block["block_id"]) + "/" + str(element["action_id"])
}
