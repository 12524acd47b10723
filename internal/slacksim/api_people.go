package slacksim

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
)

// peopleAPI is users.*, usergroups.*, and who the app is: auth.*, team.*
// and bots.*.
type peopleAPI struct {
	*world

	payloads *payloads
	events   *events
}

// authTest says whose token it is. The app is named to an app-level token only.
//
// https://docs.slack.dev/reference/methods/auth.test
func (s *peopleAPI) authTest(c *call) (object, *failure) {
	if c.in == nil {
		return object{"app_id": AppID, "app_name": "Countersign"}, nil
	}
	w := s.home(c.in)
	answer := object{
		"url": "https://" + w.Domain + ".slack.com/", "team": w.Name, "user": BotName, "team_id": w.ID,
		"user_id": c.in.botUser, "bot_id": c.in.botID, "is_enterprise_install": c.in.org(),
	}
	if e := s.enterpriseID(w.ID); e != nil {
		answer["enterprise_id"] = e
	}
	if e := s.cfg.Enterprise; c.in.org() {
		answer["url"], answer["team"], answer["team_id"] = "https://"+w.Domain+".enterprise.slack.com/", e.Name, e.ID
	}
	return answer, nil
}

// authRevoke ends the token, and with it the installation's calls.
func (s *peopleAPI) authRevoke(c *call) (object, *failure) {
	if c.bool("test") {
		return object{"revoked": false}, nil
	}
	c.in.ended = "token_revoked"
	event := object{"type": "tokens_revoked", "tokens": object{"oauth": []string{}, "bot": []string{c.in.botUser}}}
	s.events.sendEvent(s.events.envelope(c.in, nil, c.in.team, event))
	s.changed()
	return object{"revoked": true}, nil
}

func (s *peopleAPI) teamInfo(c *call) (object, *failure) {
	w := s.home(c.in)
	if id := c.str("team"); id != "" {
		if !s.owns(c.in, id) {
			return nil, fail("team_not_found")
		}
		w = s.workspace(id)
	}
	team := object{
		"id": w.ID, "name": w.Name, "domain": w.Domain, "email_domain": "",
		"url": "https://" + w.Domain + ".slack.com/", "icon": object{"image_default": true},
	}
	if e, ok := s.enterpriseOf(w.ID).(object); ok {
		team["enterprise_id"], team["enterprise_name"] = e["id"], e["name"]
	}
	return object{"team": team}, nil
}

// authTeamsList lists the workspaces that the token is good for.
func (s *peopleAPI) authTeamsList(c *call) (object, *failure) {
	var all []any
	for _, w := range s.teams {
		if s.owns(c.in, w.ID) {
			all = append(all, object{"id": w.ID, "name": w.Name})
		}
	}
	page, next, f := c.page(all, 1000)
	if f != nil {
		return nil, f
	}
	return object{"teams": page, "response_metadata": object{"next_cursor": next}}, nil
}

func (s *peopleAPI) botsInfo(c *call) (object, *failure) {
	if id := c.str("bot"); id != "" && id != c.in.botID {
		return nil, fail("bot_not_found")
	}
	return object{"bot": object{
		"id": c.in.botID, "app_id": AppID, "user_id": c.in.botUser, "name": BotName, "deleted": false,
		"updated": 1700000000, "icons": images(c.in.botID, 36, 48, 72),
	}}, nil
}

func (s *peopleAPI) usersInfo(c *call) (object, *failure) {
	p := s.known(c, c.str("user"))
	if p == nil {
		return nil, fail("user_not_found")
	}
	o := s.payloads.userJSON(c.in, p)
	c.addLocale(o)
	return object{"user": o}, nil
}

const locale = "en-US" // of everyone

// addLocale adds the language of a person or channel, if the call asks for it.
func (c *call) addLocale(o object) {
	if c.bool("include_locale") {
		o["locale"] = locale
	}
}

// usersLookupByEmail finds active people of the app's own workspaces.
func (s *peopleAPI) usersLookupByEmail(c *call) (object, *failure) {
	for _, p := range s.people {
		if strings.EqualFold(p.Email, c.str("email")) && s.owns(c.in, p.Team) && !p.Deleted {
			return object{"user": s.payloads.userJSON(c.in, p)}, nil
		}
	}
	return nil, fail("users_not_found")
}

func (s *peopleAPI) usersList(c *call) (object, *failure) {
	team, f := s.listed(c)
	if f != nil {
		return nil, f
	}
	var members []any
	for _, p := range s.people {
		if p.Team == team {
			o := s.payloads.userJSON(c.in, p)
			c.addLocale(o)
			members = append(members, o)
		}
	}
	page, next, f := c.page(members, 1000)
	if f != nil {
		return nil, f
	}
	return object{
		"members": page, "cache_ts": s.clock.now().Unix(),
		"response_metadata": object{"next_cursor": next},
	}, nil
}

// usersProfileGet answers with a person's profile; without a user, with that of
// the bot itself.
func (s *peopleAPI) usersProfileGet(c *call) (object, *failure) {
	p := s.known(c, cmp.Or(c.str("user"), c.in.botUser))
	if p == nil {
		return nil, fail("user_not_found")
	}
	return object{"profile": s.payloads.userJSON(c.in, p)["profile"]}, nil
}

// page cuts a list by limit and cursor; without a limit it holds the most.
func (c *call) page(all []any, most int) (page []any, next string, f *failure) {
	return c.pageOf(all, most, most)
}

// pageOf cuts a list by limit and cursor; usual is the limit of calls that name
// none.
func (c *call) pageOf(all []any, usual, most int) (page []any, next string, f *failure) {
	limit, from := usual, 0
	if text := c.str("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, "", fail("invalid_limit")
		}
		if n > 0 {
			limit = min(n, most)
		}
	}
	if cursor := c.str("cursor"); cursor != "" {
		raw, err := base64.StdEncoding.DecodeString(cursor)
		n, err2 := strconv.Atoi(strings.TrimPrefix(string(raw), "next:"))
		if err != nil || err2 != nil || n < 0 || n > len(all) {
			return nil, "", fail("invalid_cursor")
		}
		from = n
	}
	to := min(from+limit, len(all))
	if to < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte("next:" + strconv.Itoa(to)))
	}
	return append([]any{}, all[from:to]...), next, nil
}

func (s *peopleAPI) usergroupsList(c *call) (object, *failure) {
	team, f := s.listed(c)
	if f != nil {
		return nil, f
	}
	list := []object{}
	for _, g := range s.groups {
		if g.Team != team {
			continue
		}
		if !g.Disabled || c.bool("include_disabled") {
			list = append(list, s.payloads.groupJSON(g, c.bool("include_users"), c.bool("include_count")))
		}
	}
	return object{"usergroups": list}, nil
}

func (s *peopleAPI) usergroupsUsersList(c *call) (object, *failure) {
	team, f := s.listed(c)
	if f != nil {
		return nil, f
	}
	g := s.group(c.str("usergroup"))
	if g == nil || g.Team != team || (g.Disabled && !c.bool("include_disabled")) {
		return nil, fail("no_such_subteam")
	}
	return object{"users": append([]string{}, g.Users...)}, nil
}
