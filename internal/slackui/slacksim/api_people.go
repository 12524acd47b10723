package slacksim

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) authTest(*call) (object, *failure) {
	return object{
		"url": "https://" + TeamDomain + ".slack.com/", "team": TeamName, "user": BotName, "team_id": TeamID,
		"user_id": BotUser, "bot_id": BotID, "app_id": AppID, "app_name": "Countersign",
		"enterprise_id": nil, "is_enterprise_install": false,
	}, nil
}

func (s *Server) teamInfo(*call) (object, *failure) {
	return object{"team": object{
		"id": TeamID, "name": TeamName, "domain": TeamDomain, "email_domain": "",
		"url": "https://" + TeamDomain + ".slack.com/", "icon": object{"image_default": true},
	}}, nil
}

func (s *Server) botsInfo(c *call) (object, *failure) {
	if id := c.str("bot"); id != "" && id != BotID {
		return nil, fail("bot_not_found")
	}
	return object{"bot": object{
		"id": BotID, "app_id": AppID, "user_id": BotUser, "name": BotName, "deleted": false,
		"updated": 1700000000, "icons": object{},
	}}, nil
}

func (s *Server) usersInfo(c *call) (object, *failure) {
	p := s.userByID(c.str("user"))
	if p == nil {
		return nil, fail("user_not_found")
	}
	return object{"user": s.userJSON(p)}, nil
}

func (s *Server) usersList(c *call) (object, *failure) {
	var members []any
	for _, p := range s.people {
		members = append(members, s.userJSON(p))
	}
	page, next, f := c.page(members, 1000)
	if f != nil {
		return nil, f
	}
	return object{
		"members": page, "cache_ts": unix(s.clock.now()),
		"response_metadata": object{"next_cursor": next},
	}, nil
}

// page cuts a list by limit and cursor.
func (c *call) page(all []any, most int) (page []any, next string, f *failure) {
	limit, from := most, 0
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
		next = base64.StdEncoding.EncodeToString([]byte("next:" + itoa(to)))
	}
	return append([]any{}, all[from:to]...), next, nil
}

func (s *Server) groupJSON(g *Group, users bool) object {
	o := object{
		"id": g.ID, "team_id": TeamID, "is_usergroup": true, "name": g.Name, "description": "", "handle": g.Handle,
		"is_external": false, "date_create": 1700000000, "date_update": 1700000000, "date_delete": 0,
		"auto_type": nil, "created_by": "U0ALICE", "updated_by": "U0ALICE", "deleted_by": nil,
		"prefs": object{"channels": []string{}, "groups": []string{}}, "user_count": len(g.Users),
	}
	if g.Disabled {
		o["date_delete"] = 1700000001
	}
	if users {
		o["users"] = slices.Clone(g.Users)
	}
	return o
}

func (s *Server) usergroupsList(c *call) (object, *failure) {
	list := []object{}
	for _, g := range s.groups {
		if !g.Disabled || c.bool("include_disabled") {
			list = append(list, s.groupJSON(g, c.bool("include_users")))
		}
	}
	return object{"usergroups": list}, nil
}

func (s *Server) usergroupsUsersList(c *call) (object, *failure) {
	g := s.group(c.str("usergroup"))
	if g == nil || (g.Disabled && !c.bool("include_disabled")) {
		return nil, fail("no_such_subteam")
	}
	return object{"users": append([]string{}, g.Users...)}, nil
}

// SetGroup replaces the members of a user group and tells the app with
// subteam_members_changed and subteam_updated.
func (s *Server) SetGroup(id string, users []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(id)
	if g == nil {
		return noSuch("user group", id)
	}
	for _, u := range users {
		if s.userByID(u) == nil {
			return noSuch("person", u)
		}
	}
	var added, removed []string
	for _, u := range users {
		if !slices.Contains(g.Users, u) {
			added = append(added, u)
		}
	}
	for _, u := range g.Users {
		if !slices.Contains(users, u) {
			removed = append(removed, u)
		}
	}
	g.Users = append([]string{}, users...)
	s.changed()
	now := unix(s.clock.now())
	s.emit(object{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": TeamID,
		"date_previous_update": now, "date_update": now,
		"added_users": orEmpty(added), "added_users_count": len(added),
		"removed_users": orEmpty(removed), "removed_users_count": len(removed),
	})
	s.emit(object{"type": "subteam_updated", "subteam": s.groupJSON(g, true)})
	return nil
}

func orEmpty(list []string) []string { return append([]string{}, list...) }
