package slacksim

import (
	"slices"
	"strconv"
	"strings"
)

// conversationsAPI is conversations.*, and what lists channels.
type conversationsAPI struct {
	*world

	payloads *payloads
	events   *events
}

func (s *conversationsAPI) conversationsOpen(c *call) (object, *failure) {
	if id := c.str("channel"); id != "" {
		ch := s.identified(c.in, id)
		switch {
		case ch == nil:
			return nil, fail("channel_not_found")
		case !ch.IM && !ch.MPIM:
			return nil, fail("method_not_supported_for_channel_type")
		}
		return object{"channel": s.opened(ch, c), "already_open": true, "no_op": true}, nil
	}
	users := strings.FieldsFunc(c.str("users"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(users) == 0:
		return nil, fail("users_list_not_supplied")
	case len(users) > 8:
		return nil, fail("too_many_users")
	}
	var people []*Person
	for _, u := range users {
		p := s.known(c, u)
		switch {
		case p == nil:
			return nil, fail("user_not_found")
		case p.Deleted:
			return nil, fail("user_disabled")
		case p.Bot && len(users) == 1: // https://github.com/HubSpot/slack-client/pull/90
			return nil, fail("cannot_dm_bot")
		case p.Bot:
			return nil, fail("invalid_user_combination")
		}
		people = append(people, p)
	}
	if len(people) == 1 && c.bool("prevent_creation") && s.directWith(c.in, people[0]) == nil {
		return nil, fail("channel_not_found")
	}
	var ch *channel
	var existed bool
	if len(people) == 1 {
		ch, existed = s.direct(c.in, people[0])
	} else {
		ch, existed = s.several(c.in, people)
	}
	answer := object{"channel": s.opened(ch, c)}
	if existed {
		answer["already_open"], answer["no_op"] = true, true
	}
	s.changed()
	return answer, nil
}

func (s *conversationsAPI) opened(ch *channel, c *call) object {
	if c.bool("return_im") {
		return s.payloads.fullJSON(c.in, ch)
	}
	return object{"id": ch.ID}
}

// readable finds a channel that the bot may look at. Each kind of channel has
// a scope of its own, of those of which any let the method be called.
func (s *conversationsAPI) readable(c *call, right string) (*channel, *failure) {
	for _, ch := range s.channels {
		if ch.ID != c.str("channel") || !s.sees(c.in, ch) || (ch.Private && !ch.has(c.in.botUser)) {
			continue
		}
		scope := map[string]string{"im": "im", "mpim": "mpim", "group": "groups", "channel": "channels"}[ch.kind()] + ":" + right
		if !slices.Contains(s.cfg.Scopes, scope) {
			f := fail("missing_scope")
			f.extra = object{"needed": scope, "provided": strings.Join(s.cfg.Scopes, ",")}
			return nil, f
		}
		return ch, nil
	}
	return nil, fail("channel_not_found")
}

func (s *conversationsAPI) conversationsInfo(c *call) (object, *failure) {
	ch, f := s.readable(c, "read")
	if f != nil {
		return nil, f
	}
	o := s.payloads.fullJSON(c.in, ch)
	if c.bool("include_num_members") {
		o["num_members"] = len(ch.Members)
	}
	c.addLocale(o)
	return object{"channel": o}, nil
}

func (s *conversationsAPI) conversationsMembers(c *call) (object, *failure) {
	ch, f := s.readable(c, "read")
	if f != nil {
		return nil, f
	}
	var all []any
	for _, m := range ch.Members {
		all = append(all, m)
	}
	page, next, f := c.pageOf(all, 100, 999)
	if f != nil {
		return nil, f
	}
	return object{"members": page, "response_metadata": object{"next_cursor": next}}, nil
}

func (s *conversationsAPI) conversationsHistory(c *call) (object, *failure) {
	ch, f := s.readable(c, "history")
	if f != nil {
		return nil, f
	}
	if !ch.has(c.in.botUser) {
		return nil, fail("not_in_channel")
	}
	var found []*message
	for _, m := range slices.Backward(ch.messages) {
		if m.visibleTo == "" && (m.threadTS == "" || m.threadTS == m.ts || m.broadcast) {
			found = append(found, m)
		}
	}
	// The newest come first. But with oldest alone it is the page next to it, as the
	// reference finds a single message: oldest, inclusive and a limit of 1.
	forward := c.str("latest") == "" && within(c.str("oldest"), "0", "", false) // 0 is as good as none
	if forward {
		slices.Reverse(found)
	}
	answer, f := s.history(ch, c, found, 100, 999)
	if f == nil {
		if page, ok := answer["messages"].([]any); ok && forward {
			slices.Reverse(page)
		}
		if latest := c.str("latest"); latest != "" {
			answer["latest"] = latest
		}
		answer["pin_count"], answer["channel_actions_ts"], answer["channel_actions_count"] = 0, nil, 0
	}
	return answer, f
}

// conversationsReplies answers with a message and the replies to it. A reply has none
// and is alone: https://github.com/slackapi/bolt-python/issues/783.
func (s *conversationsAPI) conversationsReplies(c *call) (object, *failure) {
	ch, f := s.readable(c, "history")
	if f != nil {
		return nil, f
	}
	if !ch.has(c.in.botUser) {
		return nil, fail("not_in_channel")
	}
	root := ch.find(c.str("ts"))
	if root == nil || root.visibleTo != "" {
		return nil, fail("thread_not_found")
	}
	return s.history(ch, c, append([]*message{root}, ch.thread(root.ts)...), 1000, 1000)
}

func (s *conversationsAPI) history(ch *channel, c *call, found []*message, usual, most int) (object, *failure) {
	oldest, latest := c.str("oldest"), c.str("latest")
	if !validTS(oldest) {
		return nil, fail("invalid_ts_oldest")
	}
	if !validTS(latest) {
		return nil, fail("invalid_ts_latest")
	}
	var all []any
	for _, m := range found {
		if within(m.ts, oldest, latest, c.bool("inclusive")) {
			all = append(all, s.payloads.messageJSON(ch, m, c.bool("include_all_metadata")))
		}
	}
	page, next, f := c.pageOf(all, usual, most)
	if f != nil {
		return nil, f
	}
	answer := object{"messages": page, "has_more": next != ""}
	if next != "" {
		answer["response_metadata"] = object{"next_cursor": next}
	}
	return answer, nil
}

func validTS(ts string) bool {
	if ts == "" {
		return true
	}
	_, err := strconv.ParseFloat(ts, 64)
	return err == nil
}

func within(ts, oldest, latest string, inclusive bool) bool {
	micros := func(s string) int64 {
		whole, frac, _ := strings.Cut(s, ".")
		n, _ := strconv.ParseInt(whole, 10, 64)
		f, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
		return n*1e6 + f
	}
	at := micros(ts)
	if oldest != "" && (at < micros(oldest) || (at == micros(oldest) && !inclusive)) {
		return false
	}
	return latest == "" || at < micros(latest) || (at == micros(latest) && inclusive)
}
