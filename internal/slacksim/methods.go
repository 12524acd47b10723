package slacksim

import (
	"maps"
	"slices"
)

// method is one Web API method. This table is the only place that says which
// methods exist, what they are granted by and what they must be given.
type method struct {
	name     string
	tier     int      // of the rate limit, 1 to 4; 0: no documented number
	json     bool     // accepts application/json
	bare     bool     // takes credentials of its own instead of a token
	appLevel bool     // takes an app-level token as well
	scopes   []string // any of them is enough; none: no scope is needed
	required []string
	empty    []string           // required arguments that may be empty
	types    map[string]argType // arguments that are not strings
	run      handler
}

type argType int

const (
	isString argType = iota
	isBool
	isNumber
	isJSON // an object or array, or a string that holds one
)

var (
	readChannels = []string{"channels:read", "groups:read", "im:read", "mpim:read"}
	readHistory  = []string{"channels:history", "groups:history", "im:history", "mpim:history"}
	messageTypes = map[string]argType{
		"blocks": isJSON, "attachments": isJSON, "metadata": isJSON, "link_names": isBool, "mrkdwn": isBool,
		"unfurl_links": isBool, "unfurl_media": isBool, "reply_broadcast": isBool, "as_user": isBool,
	}
	scheduleTypes = map[string]argType{"post_at": isNumber}
	streamTypes   = map[string]argType{"chunks": isJSON, "blocks": isJSON, "metadata": isJSON}
	viewTypes     = map[string]argType{"view": isJSON}
)

// handler runs a method on the family that has it.
type handler func(*webAPI, *call) (object, *failure)

func alone(run func(*call) (object, *failure)) handler {
	return func(_ *webAPI, c *call) (object, *failure) { return run(c) }
}

// of makes handlers of the methods of one family.
func of[T any](family func(*webAPI) *T) func(func(*T, *call) (object, *failure)) handler {
	return func(run func(*T, *call) (object, *failure)) handler {
		return func(s *webAPI, c *call) (object, *failure) { return run(family(s), c) }
	}
}

var methods map[string]*method

func init() { // breaks the cycle between the table and the handlers
	maps.Copy(scheduleTypes, messageTypes)
	chat := of(func(s *webAPI) *chatAPI { return s.chat })
	schedule := of(func(s *webAPI) *scheduleAPI { return s.schedule })
	assistant := of(func(s *webAPI) *assistantAPI { return s.assistant })
	conversations := of(func(s *webAPI) *conversationsAPI { return s.conversations })
	views := of(func(s *webAPI) *viewsAPI { return s.views })
	people := of(func(s *webAPI) *peopleAPI { return s.people })
	reactions := of(func(s *webAPI) *reactionsAPI { return s.reactions })
	oauth := of(func(s *webAPI) *oauthAPI { return s.oauth })
	sockets := of(func(s *webAPI) *socketMode { return s.socketMode })
	table := []*method{
		{name: "api.test", tier: 4, json: true, bare: true, run: alone(apiTest)},
		{name: "blocks.validate", json: true, bare: true, run: alone(blocksValidate)},
		{name: "apps.connections.open", tier: 3, json: true, bare: true, run: sockets((*socketMode).appsConnectionsOpen)},
		{name: "auth.revoke", tier: 3, types: map[string]argType{"test": isBool}, run: people((*peopleAPI).authRevoke)},
		{name: "auth.teams.list", tier: 2, run: people((*peopleAPI).authTeamsList)},
		{name: "oauth.v2.access", bare: true, run: oauth((*oauthAPI).oauthAccess)},
		{name: "oauth.v2.exchange", tier: 3, bare: true, required: []string{"client_id", "client_secret"}, run: oauth((*oauthAPI).oauthExchange)},
		{name: "auth.test", json: true, appLevel: true, run: people((*peopleAPI).authTest)},
		{
			name: "chat.postMessage", json: true, scopes: []string{"chat:write"}, required: []string{"channel"},
			types: messageTypes, run: chat((*chatAPI).chatPostMessage),
		},
		{
			name: "chat.update", tier: 3, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "ts"},
			types: messageTypes, run: chat((*chatAPI).chatUpdate),
		},
		{
			name: "chat.delete", tier: 3, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "ts"},
			types: map[string]argType{"as_user": isBool}, run: chat((*chatAPI).chatDelete),
		},
		{
			name: "chat.postEphemeral", tier: 4, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "user"},
			types: messageTypes, run: chat((*chatAPI).chatPostEphemeral),
		},
		{
			name: "chat.startStream", tier: 2, json: true, scopes: []string{"chat:write"}, required: []string{"channel"},
			types: streamTypes, run: chat((*chatAPI).chatStartStream),
		},
		{
			name: "chat.appendStream", tier: 4, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "ts"},
			types: streamTypes, run: chat((*chatAPI).chatAppendStream),
		},
		{
			name: "chat.stopStream", tier: 2, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "ts"},
			types: streamTypes, run: chat((*chatAPI).chatStopStream),
		},
		{
			name: "assistant.threads.setStatus", json: true, scopes: []string{"chat:write"},
			required: []string{"channel_id", "thread_ts", "status"}, empty: []string{"status"},
			types: map[string]argType{"loading_messages": isJSON}, run: assistant((*assistantAPI).assistantSetStatus),
		},
		{
			name: "assistant.threads.setTitle", tier: 4, json: true, scopes: []string{"assistant:write"},
			required: []string{"channel_id", "thread_ts", "title"}, run: assistant((*assistantAPI).assistantSetTitle),
		},
		{
			name: "assistant.threads.setSuggestedPrompts", tier: 4, json: true, scopes: []string{"assistant:write"},
			required: []string{"channel_id", "prompts"}, types: map[string]argType{"prompts": isJSON},
			run: assistant((*assistantAPI).assistantSetPrompts),
		},
		{
			name: "chat.scheduleMessage", tier: 3, json: true, scopes: []string{"chat:write"}, required: []string{"channel", "post_at"},
			types: scheduleTypes, run: schedule((*scheduleAPI).chatScheduleMessage),
		},
		{
			name: "chat.deleteScheduledMessage", tier: 3, json: true, scopes: []string{"chat:write"},
			required: []string{"channel", "scheduled_message_id"}, types: map[string]argType{"as_user": isBool},
			run: schedule((*scheduleAPI).chatDeleteScheduledMessage),
		},
		{
			name: "chat.scheduledMessages.list", tier: 3, json: true, types: map[string]argType{"limit": isNumber},
			run: schedule((*scheduleAPI).chatScheduledMessagesList),
		},
		{name: "chat.getPermalink", required: []string{"channel", "message_ts"}, run: chat((*chatAPI).chatGetPermalink)},
		{name: "views.open", tier: 4, json: true, required: []string{"trigger_id", "view"}, types: viewTypes, run: views((*viewsAPI).viewsOpen)},
		{name: "views.push", tier: 4, json: true, required: []string{"trigger_id", "view"}, types: viewTypes, run: views((*viewsAPI).viewsPush)},
		{name: "views.update", tier: 4, json: true, required: []string{"view"}, types: viewTypes, run: views((*viewsAPI).viewsUpdate)},
		{name: "views.publish", tier: 4, json: true, required: []string{"user_id", "view"}, types: viewTypes, run: views((*viewsAPI).viewsPublish)},
		{
			name: "conversations.open", tier: 3, json: true, scopes: []string{"im:write", "mpim:write", "channels:manage", "groups:write"},
			types: map[string]argType{"return_im": isBool, "prevent_creation": isBool}, run: conversations((*conversationsAPI).conversationsOpen),
		},
		{name: "conversations.list", tier: 2, scopes: readChannels, run: conversations((*conversationsAPI).conversationsList)},
		{
			name: "conversations.join", tier: 3, json: true, scopes: []string{"channels:join"}, required: []string{"channel"},
			run: conversations((*conversationsAPI).conversationsJoin),
		},
		{
			name: "conversations.create", tier: 2, json: true, required: []string{"name"}, empty: []string{"name"},
			scopes: []string{"channels:manage", "channels:write", "groups:write", "im:write", "mpim:write"},
			types:  map[string]argType{"is_private": isBool}, run: conversations((*conversationsAPI).conversationsCreate),
		},
		{
			name: "conversations.invite", tier: 3, json: true, required: []string{"channel", "users"}, empty: []string{"users"},
			scopes: []string{"channels:manage", "channels:write.invites", "groups:write", "groups:write.invites", "im:write", "mpim:write"},
			types:  map[string]argType{"force": isBool}, run: conversations((*conversationsAPI).conversationsInvite),
		},
		{name: "conversations.info", tier: 3, scopes: readChannels, required: []string{"channel"}, run: conversations((*conversationsAPI).conversationsInfo)},
		{name: "conversations.members", tier: 4, scopes: readChannels, required: []string{"channel"}, run: conversations((*conversationsAPI).conversationsMembers)},
		{
			name: "conversations.replies", tier: 3, scopes: readHistory, required: []string{"channel", "ts"},
			run: conversations((*conversationsAPI).conversationsReplies),
		},
		{
			name: "conversations.history", tier: 3, json: true, scopes: readHistory, required: []string{"channel"},
			types: map[string]argType{"limit": isNumber, "inclusive": isBool, "include_all_metadata": isBool},
			run:   conversations((*conversationsAPI).conversationsHistory),
		},
		{name: "users.conversations", tier: 3, scopes: readChannels, run: conversations((*conversationsAPI).usersConversations)},
		{name: "users.profile.get", tier: 4, scopes: []string{"users.profile:read"}, run: people((*peopleAPI).usersProfileGet)},
		{name: "users.info", tier: 4, scopes: []string{"users:read"}, required: []string{"user"}, run: people((*peopleAPI).usersInfo)},
		{
			name: "users.lookupByEmail", tier: 3, scopes: []string{"users:read.email"}, required: []string{"email"},
			run: people((*peopleAPI).usersLookupByEmail),
		},
		{name: "users.list", tier: 2, scopes: []string{"users:read"}, run: people((*peopleAPI).usersList)},
		{name: "usergroups.list", tier: 2, scopes: []string{"usergroups:read"}, run: people((*peopleAPI).usergroupsList)},
		{
			name: "usergroups.users.list", tier: 2, scopes: []string{"usergroups:read"}, required: []string{"usergroup"},
			run: people((*peopleAPI).usergroupsUsersList),
		},
		{name: "team.info", tier: 3, json: true, scopes: []string{"team:read"}, run: people((*peopleAPI).teamInfo)},
		{name: "bots.info", tier: 3, scopes: []string{"users:read"}, run: people((*peopleAPI).botsInfo)},
		{
			name: "reactions.add", tier: 3, json: true, scopes: []string{"reactions:write"},
			required: []string{"channel", "name", "timestamp"}, run: reactions((*reactionsAPI).reactionsAdd),
		},
		{
			name: "reactions.remove", tier: 2, json: true, scopes: []string{"reactions:write"}, required: []string{"name"},
			run: reactions((*reactionsAPI).reactionsRemove),
		},
		{name: "reactions.get", tier: 3, scopes: []string{"reactions:read"}, run: reactions((*reactionsAPI).reactionsGet)},
		{name: "reactions.list", tier: 2, scopes: []string{"reactions:read"}, run: reactions((*reactionsAPI).reactionsList)},
	}
	methods = map[string]*method{}
	for _, m := range table {
		methods[m.name] = m
	}
}

// customize is the scope by which an app's messages carry a name of its choice.
//
// https://docs.slack.dev/reference/scopes/chat.write.customize
const customize = "chat:write.customize"

// anywhere is the scope by which an app writes to public channels without its bot there.
//
// https://docs.slack.dev/reference/scopes/chat.write.public
const anywhere = "chat:write.public"

// KnownScopes are the bot scopes that something here needs, in order. Slack has more.
func KnownScopes() []string {
	all := append(everyScope(), anywhere)
	slices.Sort(all)
	return all
}

// everyScope is every scope that the table names, and those that no method needs, in order.
func everyScope() []string {
	all := []string{"app_mentions:read", "commands", customize}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		all = append(all, methods[name].scopes...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
