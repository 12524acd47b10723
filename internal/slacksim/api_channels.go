package slacksim

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// channelTypes are the values of the argument types, with the prefix of the
// scopes for them.
var channelTypes = map[string]string{
	"public_channel": "channels", "private_channel": "groups", "mpim": "mpim", "im": "im",
}

func (c *channel) listedAs() string {
	return map[string]string{"im": "im", "mpim": "mpim", "group": "private_channel", "channel": "public_channel"}[c.kind()]
}

// lacks returns the failure of a call that needs one of these scopes, if none
// of them was granted.
func (s *conversationsAPI) lacks(scopes ...string) *failure {
	if slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(s.cfg.Scopes, scope) }) {
		return nil
	}
	f := fail("missing_scope")
	f.extra = object{"needed": strings.Join(scopes, ","), "provided": strings.Join(s.cfg.Scopes, ",")}
	return f
}

// commas splits a list of arguments.
func commas(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func (s *conversationsAPI) conversationsList(c *call) (object, *failure) {
	return s.listChannels(c, "")
}

func (s *conversationsAPI) usersConversations(c *call) (object, *failure) {
	user := cmp.Or(c.str("user"), c.in.botUser)
	if s.known(c, user) == nil {
		return nil, fail("user_not_found")
	}
	return s.listChannels(c, user)
}

// listChannels lists the channels of the types that the call asks for, and
// that someone is in if a member is named. Only public ones can be seen by a
// bot that is not in them. Archived ones count for the limit of a page also when
// they are excluded, as the reference says.
//
// https://docs.slack.dev/reference/methods/conversations.list
func (s *conversationsAPI) listChannels(c *call, member string) (object, *failure) {
	types := commas(cmp.Or(c.str("types"), "public_channel"))
	for _, t := range types {
		if channelTypes[t] == "" {
			return nil, fail("invalid_types")
		}
		if f := s.lacks(channelTypes[t] + ":read"); f != nil {
			return nil, f
		}
	}
	team, f := s.listed(c)
	if f != nil {
		return nil, f
	}
	var all []any
	for _, ch := range s.channels {
		own := ch.IM || ch.MPIM || ch.Team == team || slices.Contains(ch.Shared, team)
		switch {
		case !own || !s.sees(c.in, ch) || !slices.Contains(types, ch.listedAs()):
		case ch.kind() != "channel" && !ch.has(c.in.botUser):
		case member != "" && !ch.has(member):
		default:
			all = append(all, ch)
		}
	}
	page, next, f := c.pageOf(all, 100, 999)
	if f != nil {
		return nil, f
	}
	shown := []object{}
	for _, listed := range page {
		ch, _ := listed.(*channel)
		if ch.Archived && c.bool("exclude_archived") {
			continue
		}
		o := s.payloads.channelJSON(c.in, ch)
		if member != "" {
			delete(o, "is_member")
		} else if !ch.IM {
			o["num_members"] = len(ch.Members)
		}
		shown = append(shown, o)
	}
	return object{"channels": shown, "response_metadata": object{"next_cursor": next}}, nil
}

func (s *conversationsAPI) conversationsJoin(c *call) (object, *failure) {
	ch := s.identified(c.in, c.str("channel"))
	switch {
	case ch == nil || (ch.Private && !ch.has(c.in.botUser)):
		return nil, fail("channel_not_found")
	case ch.kind() != "channel":
		return nil, fail("method_not_supported_for_channel_type")
	case ch.Archived:
		return nil, fail("is_archived")
	case ch.has(c.in.botUser):
		c.warnings = append(c.warnings, "already_in_channel")
	default:
		s.enter(ch, c.in.botUser, "")
	}
	return object{"channel": s.payloads.channelJSON(c.in, ch)}, nil
}

// enter adds a person to a channel, who may have been invited, and sends the events
// of that.
func (s *conversationsAPI) enter(ch *channel, user, inviter string) {
	ch.Members = append(slices.Clone(ch.Members), user)
	s.changed()
	s.events.membership("member_joined_channel", user, inviter, ch)
}

const maxChannelName = 80

var (
	channelName     = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{Lm}\p{N}_-]+$`)
	onlyPunctuation = regexp.MustCompile(`^[_-]+$`)
)

// conversationsCreate makes a channel and puts the bot into it. The app gets channel_created
// of a public one, and member_joined_channel of its bot.
//
// https://api.slack.com/events/member_joined_channel
func (s *conversationsAPI) conversationsCreate(c *call) (object, *failure) {
	name, private := c.str("name"), c.bool("is_private")
	scopes := []string{"channels:manage", "channels:write"}
	if private {
		scopes = []string{"groups:write"}
	}
	if f := s.lacks(scopes...); f != nil {
		return nil, f
	}
	team, f := s.listed(c)
	switch {
	case f != nil:
		return nil, f
	case name == "":
		return nil, fail("invalid_name_required")
	case len([]rune(name)) > maxChannelName:
		return nil, fail("invalid_name_maxlength")
	case onlyPunctuation.MatchString(name):
		return nil, fail("invalid_name_punctuation")
	case !channelName.MatchString(name):
		return nil, fail("invalid_name_specials")
	case slices.ContainsFunc(s.channels, func(o *channel) bool { return !o.IM && o.Team == team && o.Name == name }):
		return nil, fail("name_taken")
	}
	ch := &channel{Channel: Channel{
		ID: s.nextID("C"), Name: name, Private: private, Team: team,
	}, creator: c.in.botUser, created: s.clock.now().Unix()}
	s.channels = append(s.channels, ch)
	s.enter(ch, c.in.botUser, "")
	answer := s.payloads.channelJSON(c.in, ch)
	if !private {
		created := maps.Clone(answer)
		delete(created, "is_member")
		s.events.emit(c.in, ch, team, object{"type": "channel_created", "channel": created})
	}
	return object{"channel": answer}, nil
}

const maxInvited = 100

// conversationsInvite adds people to a channel. If one of them cannot be
// invited, it adds none, or with force the others.
func (s *conversationsAPI) conversationsInvite(c *call) (object, *failure) {
	ch := s.identified(c.in, c.str("channel"))
	users := commas(c.str("users"))
	switch {
	case len(users) == 0:
		return nil, fail("no_user")
	case len(users) > maxInvited:
		return nil, fail("too_many_users")
	case ch == nil || (ch.Private && !ch.has(c.in.botUser)):
		return nil, fail("channel_not_found")
	case ch.IM || ch.MPIM:
		return nil, fail("method_not_supported_for_channel_type")
	case !ch.has(c.in.botUser):
		return nil, fail("not_in_channel")
	case ch.Archived:
		return nil, fail("is_archived")
	}
	scopes := []string{"channels:manage", "channels:write.invites"}
	if ch.Private {
		scopes = []string{"groups:write", "groups:write.invites"}
	}
	if f := s.lacks(scopes...); f != nil {
		return nil, f
	}
	var refused []object
	var able []string
	for _, u := range users {
		if code := s.uninvitable(c, ch, u); code != "" {
			refused = append(refused, object{"user": u, "ok": false, "error": code})
		} else if !slices.Contains(able, u) {
			able = append(able, u)
		}
	}
	if len(refused) > 0 && (len(able) == 0 || !c.bool("force")) {
		f := fail(str(refused[0]["error"]))
		f.extra = object{"errors": refused}
		return nil, f
	}
	for _, u := range able {
		s.enter(ch, u, c.in.botUser)
	}
	answer := object{"channel": s.payloads.channelJSON(c.in, ch)}
	if len(refused) > 0 {
		answer["errors"] = refused
	}
	return answer, nil
}

// uninvitable returns why someone cannot be invited to a channel.
func (s *conversationsAPI) uninvitable(c *call, ch *channel, user string) string {
	p := s.known(c, user)
	switch {
	case p == nil:
		return "user_not_found"
	case user == c.in.botUser:
		return "cant_invite_self"
	case ch.has(user):
		return "already_in_channel"
	case p.Deleted:
		return "cant_invite"
	case p.Team != ch.Team && !slices.Contains(ch.Shared, p.Team):
		if s.inOrg(p.Team) && s.inOrg(ch.Team) {
			return "org_user_not_in_team"
		}
		return "cant_invite"
	}
	return ""
}
