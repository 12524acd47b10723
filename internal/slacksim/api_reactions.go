package slacksim

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reactionsAPI is reactions.*.
type reactionsAPI struct {
	*world

	payloads *payloads
	events   *events
}

// emoji is how the names of emoji look. Which ones a workspace has is not
// simulated.
var emoji = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

// reactable finds the message that a method of reactions is about.
func (s *reactionsAPI) reactable(c *call) (*channel, *message, *failure) {
	ts := c.str("timestamp")
	switch {
	case c.str("file") != "":
		return nil, nil, fail("file_not_found") // there are no files
	case c.str("file_comment") != "":
		return nil, nil, fail("file_comment_not_found")
	case c.str("channel") == "" || ts == "":
		return nil, nil, fail("no_item_specified")
	case !timestamp.MatchString(ts):
		return nil, nil, fail("bad_timestamp")
	}
	ch := s.joined(c, c.str("channel"))
	if ch == nil {
		return nil, nil, fail("channel_not_found")
	}
	m := ch.find(ts)
	if m == nil || m.visibleTo != "" {
		return nil, nil, fail("message_not_found")
	}
	return ch, m, nil
}

// reacting finds the message and the name of the emoji. The name may stand
// between colons.
func (s *reactionsAPI) reacting(c *call) (*channel, *message, string, *failure) {
	name := strings.Trim(c.str("name"), ":")
	if !emoji.MatchString(name) {
		return nil, nil, "", fail("invalid_name")
	}
	ch, m, f := s.reactable(c)
	if f == nil && ch.Archived {
		f = fail("is_archived")
	}
	return ch, m, name, f
}

// by returns who reacted with this emoji.
func (m *message) by(name string) []string {
	for _, r := range m.reactions {
		if r["name"] == name {
			users, _ := r["users"].([]string)
			return users
		}
	}
	return nil
}

// react says who reacts with this emoji from now on. What answers already
// carry does not change.
func (m *message) react(name string, users []string) {
	after := object{"name": name, "users": users, "count": len(users)}
	reactions := slices.Clone(m.reactions)
	at := slices.IndexFunc(reactions, func(r object) bool { return r["name"] == name })
	switch {
	case at < 0:
		reactions = append(reactions, after)
	case len(users) == 0:
		reactions = slices.Delete(reactions, at, at+1)
	default:
		reactions[at] = after
	}
	if m.reactions = reactions; len(reactions) == 0 {
		m.reactions = nil
	}
}

func (s *reactionsAPI) reactionsAdd(c *call) (object, *failure) {
	ch, m, name, f := s.reacting(c)
	if f != nil {
		return nil, f
	}
	users := m.by(name)
	if slices.Contains(users, c.in.botUser) {
		return nil, fail("already_reacted")
	}
	m.react(name, append(slices.Clone(users), c.in.botUser))
	s.reacted(c, "reaction_added", ch, m, name)
	return object{}, nil
}

func (s *reactionsAPI) reactionsRemove(c *call) (object, *failure) {
	ch, m, name, f := s.reacting(c)
	if f != nil {
		return nil, f
	}
	users := m.by(name)
	at := slices.Index(users, c.in.botUser)
	if at < 0 {
		return nil, fail("no_reaction")
	}
	m.react(name, slices.Delete(slices.Clone(users), at, at+1))
	s.reacted(c, "reaction_removed", ch, m, name)
	return object{}, nil
}

// reacted tells the installations whose bot is in the channel.
func (s *reactionsAPI) reacted(c *call, kind string, ch *channel, m *message, name string) {
	s.changed()
	for _, in := range s.installs {
		if ch.has(in.botUser) {
			s.events.emit(in, ch, s.eventTeam(in, ch), object{
				"type": kind, "user": c.in.botUser, "reaction": name, "item_user": m.user, "event_ts": s.nextTS(),
				"item": object{"type": "message", "channel": ch.ID, "ts": m.ts},
			})
		}
	}
}

// reactedJSON is a message among reactions, which has a permalink there.
func (s *reactionsAPI) reactedJSON(ch *channel, m *message) object {
	o := maps.Clone(s.payloads.messageJSON(ch, m, false))
	o["permalink"] = s.payloads.permalink(ch, m)
	return o
}

func (s *reactionsAPI) reactionsGet(c *call) (object, *failure) {
	ch, m, f := s.reactable(c)
	if f != nil {
		return nil, f
	}
	return object{"type": "message", "channel": ch.ID, "message": s.reactedJSON(ch, m)}, nil
}

// reactionsList lists what someone reacted to, the newest message first.
func (s *reactionsAPI) reactionsList(c *call) (object, *failure) {
	if _, f := s.listed(c); f != nil {
		return nil, f
	}
	user := cmp.Or(c.str("user"), c.in.botUser)
	if s.known(c, user) == nil {
		return nil, fail("user_not_found")
	}
	var found []object
	for _, ch := range s.channels {
		if !ch.has(c.in.botUser) || !s.sees(c.in, ch) {
			continue
		}
		for _, m := range ch.messages {
			if slices.ContainsFunc(m.reactions, func(r object) bool { return slices.Contains(m.by(str(r["name"])), user) }) {
				found = append(found, object{"type": "message", "channel": ch.ID, "message": s.reactedJSON(ch, m)})
			}
		}
	}
	ts := func(o object) string { return str(o["message"].(object)["ts"]) }
	slices.SortFunc(found, func(a, b object) int { return strings.Compare(ts(b), ts(a)) })
	var all []any
	for _, o := range found {
		all = append(all, o)
	}
	if !c.has("limit") && c.has("count") {
		c.values["limit"] = c.values["count"]
	}
	page, next, f := c.pageOf(all, 100, 1000)
	if f != nil {
		return nil, f
	}
	return object{"items": page, "response_metadata": object{"next_cursor": next}}, nil
}
