package slacksim

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// payloads writes what there is as the Web API and events show it.
type payloads struct{ *world }

// messageJSON is a message as the Web API and payloads show it.
func (s *payloads) messageJSON(c *channel, m *message, metadata bool) object {
	o := object{"type": "message", "user": m.user, "text": m.text, "ts": m.ts, "team": s.teamOf(c, m.user)}
	if m.app != nil {
		o["bot_id"], o["app_id"], o["team"] = m.app.botID, AppID, s.home(m.app).ID
		o["bot_profile"] = object{
			"id": m.app.botID, "app_id": AppID, "user_id": m.app.botUser, "name": BotName, "deleted": false,
			"updated": 1700000000, "team_id": s.home(m.app).ID, "icons": images(m.app.botID, 36, 48, 72),
		}
	}
	set := func(name, value string) {
		if value != "" {
			o[name] = value
		}
	}
	set("subtype", m.subtype)
	if m.subtype == tombstone {
		o["hidden"] = true
	}
	set("username", m.username)
	set("client_msg_id", m.clientID)
	set("thread_ts", m.threadTS)
	if m.blocks != nil {
		o["blocks"] = m.blocks
	}
	if m.attachments != nil {
		o["attachments"] = m.attachments
	}
	if m.edited != nil {
		o["edited"] = m.edited
	}
	if m.reactions != nil {
		o["reactions"] = slices.Clone(m.reactions)
	}
	if m.metadata != nil {
		if metadata {
			o["metadata"] = m.metadata
		} else {
			o["metadata"] = object{"event_type": m.metadata["event_type"]}
		}
	}
	if m.threadTS != "" && m.threadTS != m.ts {
		root := c.find(m.threadTS)
		if root != nil {
			o["parent_user_id"] = root.user
		}
		if m.broadcast && root != nil {
			o["subtype"], o["root"] = "thread_broadcast", s.messageJSON(c, root, metadata)
		}
	}
	if replies := c.thread(m.ts); len(replies) > 0 {
		var users []string
		for _, r := range replies {
			if !slices.Contains(users, r.user) {
				users = append(users, r.user)
			}
		}
		o["thread_ts"] = m.ts
		o["reply_count"], o["reply_users"], o["reply_users_count"] = len(replies), users, len(users)
		o["latest_reply"] = replies[len(replies)-1].ts
	}
	return o
}

// teamOf is the workspace that a message's author belongs to.
func (s *payloads) teamOf(c *channel, user string) string {
	if p := s.userByID(user); p != nil {
		return p.Team
	}
	return cmp.Or(c.Team, TeamID)
}

// userJSON is a person as an installation sees them.
func (s *payloads) userJSON(in *installation, p *Person) object {
	u := object{
		"id": p.ID, "team_id": p.Team, "name": p.Name, "real_name": p.RealName, "deleted": p.Deleted,
		"color": "9f69e7", "is_bot": p.Bot, "is_app_user": false, "updated": 1700000000,
		"is_restricted": p.Guest, "is_ultra_restricted": false, "is_stranger": s.stranger(in, p),
		"tz": p.TZ, "tz_label": p.TZ, "tz_offset": p.TZOffset,
		"who_can_share_contact_card": "EVERYONE",
	}
	if !p.Deleted && !p.Bot {
		u["is_admin"], u["is_owner"], u["is_primary_owner"], u["is_email_confirmed"] = false, false, false, p.Email != ""
	}
	first, last, _ := strings.Cut(p.RealName, " ")
	profile := images(p.ID, 24, 32, 48, 72, 192, 512)
	u["profile"] = profile
	maps.Copy(profile, object{
		"real_name": p.RealName, "real_name_normalized": p.RealName, "first_name": first, "last_name": last,
		"display_name": p.Name, "display_name_normalized": p.Name, "team": p.Team, "avatar_hash": "g" + strings.ToLower(p.ID),
		"title": "", "phone": "", "skype": "", "status_text": "", "status_text_canonical": "", "status_emoji": "",
		"status_emoji_display_info": []any{}, "status_expiration": 0,
	})
	if p.Email != "" && s.owns(in, p.Team) && slices.Contains(s.cfg.Scopes, "users:read.email") {
		profile["email"] = p.Email
	}
	if bot := s.ofBot(p.ID); bot != nil {
		profile["bot_id"], profile["api_app_id"] = bot.botID, AppID
	}
	if e, ok := s.enterpriseOf(p.Team).(object); ok {
		u["enterprise_user"] = object{
			"id": p.ID, "enterprise_id": e["id"], "enterprise_name": e["name"], "teams": []string{p.Team},
			"is_admin": false, "is_owner": false,
		}
	}
	return u
}

// images names an image for each of the sizes. Nothing is at their addresses.
func images(of string, sizes ...int) object {
	o := object{}
	for _, n := range sizes {
		o["image_"+strconv.Itoa(n)] = "https://avatars.acme.example/" + of + "-" + strconv.Itoa(n) + ".png"
	}
	return o
}

// channelJSON is a channel as an installation sees it.
func (s *payloads) channelJSON(in *installation, c *channel) object {
	o := object{
		"id": c.ID, "created": max(c.created, 1700000000), "is_archived": c.Archived, "is_im": c.IM, "is_mpim": c.MPIM,
		"context_team_id": s.home(in).ID, "updated": 1700000000000, "is_org_shared": false,
	}
	if c.IM {
		p := s.userByID(c.Members[0])
		o["user"], o["is_user_deleted"], o["priority"] = c.Members[0], p != nil && p.Deleted, 0
		return o
	}
	o["is_frozen"] = false
	o["name"], o["name_normalized"] = c.Name, c.Name
	o["is_channel"], o["is_group"], o["is_private"] = !c.Private, c.Private, c.Private
	o["is_general"], o["is_shared"], o["is_ext_shared"] = c.ID == "C0GENERAL", len(c.Shared) > 0, s.external(c)
	o["is_org_shared"] = len(c.Shared) > 0 && !s.external(c)
	o["is_pending_ext_shared"], o["pending_shared"], o["pending_connected_team_ids"] = false, []any{}, []any{}
	o["shared_team_ids"], o["parent_conversation"] = append([]string{c.Team}, c.Shared...), nil
	o["previous_names"], o["unlinked"] = []any{}, 0
	if len(c.Shared) > 0 {
		o["conversation_host_id"] = c.Team
	}
	o["is_member"], o["creator"] = c.has(in.botUser), cmp.Or(c.creator, "U0ALICE")
	o["topic"] = object{"value": "", "creator": "", "last_set": 0}
	o["purpose"] = object{"value": "", "creator": "", "last_set": 0}
	return o
}

// fullJSON is a channel by itself, not in a list. The bot has read everything.
func (s *payloads) fullJSON(in *installation, c *channel) object {
	o := s.channelJSON(in, c)
	if !c.IM {
		return o
	}
	o["is_open"], o["last_read"], o["latest"], o["unread_count"], o["unread_count_display"] = true, "0000000000.000000", nil, 0, 0
	for _, m := range slices.Backward(c.messages) {
		if m.visibleTo == "" && (m.threadTS == "" || m.threadTS == m.ts || m.broadcast) {
			o["last_read"], o["latest"] = m.ts, s.messageJSON(c, m, false)
			break
		}
	}
	return o
}

func (s *payloads) groupJSON(g *Group, users, count bool) object {
	o := object{
		"id": g.ID, "team_id": g.Team, "is_usergroup": true, "name": g.Name, "description": "", "handle": g.Handle,
		"is_external": false, "date_create": 1700000000, "date_update": 1700000000, "date_delete": 0,
		"auto_type": nil, "created_by": "U0ALICE", "updated_by": "U0ALICE", "deleted_by": nil,
		"prefs": object{"channels": []string{}, "groups": []string{}},
	}
	if g.Disabled {
		o["date_delete"] = 1700000001
	}
	if users {
		o["users"] = slices.Clone(g.Users)
	}
	if count {
		o["user_count"] = len(g.Users)
	}
	return o
}

// teamJSON is a workspace as interactions name it: nothing, when the app is
// installed in an organization.
func (s *payloads) teamJSON(in *installation, team string) any {
	if in.org() {
		return nil
	}
	w := s.workspace(team)
	o := object{"id": w.ID, "domain": w.Domain}
	if e, ok := s.enterpriseOf(w.ID).(object); ok {
		o["enterprise_id"], o["enterprise_name"] = e["id"], e["name"]
	}
	return o
}

// viewJSON is a view as the Web API and payloads show it.
func (s *payloads) viewJSON(v *view) object {
	values := object{}
	for blockID, actions := range v.values {
		inner := object{}
		for id, state := range actions {
			inner[id] = state
		}
		values[blockID] = inner
	}
	o := object{
		"id": v.id, "team_id": s.teamOfUser(v.user), "type": v.payload["type"], "blocks": v.blocks(),
		"private_metadata": v.str("private_metadata"), "callback_id": v.str("callback_id"),
		"state": object{"values": values}, "hash": v.hash, "title": v.payload["title"],
		"clear_on_close": v.flag("clear_on_close"), "notify_on_close": v.flag("notify_on_close"),
		"close": v.payload["close"], "submit": v.payload["submit"],
		"previous_view_id": orNil(v.previous), "root_view_id": v.root, "app_id": AppID,
		"external_id": v.str("external_id"), "app_installed_team_id": s.installedTeam(v.in), "bot_id": v.in.botID,
	}
	if v.kind == blockkit.OnHome {
		o["title"] = object{"type": "plain_text", "text": "View Title", "emoji": true}
	}
	return o
}

func (s *payloads) teamOfUser(id string) string {
	if p := s.userByID(id); p != nil {
		return p.Team
	}
	return TeamID
}

// installedTeam is the workspace of an installation, or its organization.
func (s *payloads) installedTeam(in *installation) string {
	if in.org() {
		return s.cfg.Enterprise.ID
	}
	return in.team
}

func (s *payloads) permalink(ch *channel, m *message) string {
	link := "https://" + s.workspace(ch.Team).Domain + ".slack.com/archives/" + ch.ID + "/p" + strings.ReplaceAll(m.ts, ".", "")
	if m.threadTS != "" && m.threadTS != m.ts {
		link += "?thread_ts=" + m.threadTS + "&cid=" + ch.ID
	}
	return link
}
