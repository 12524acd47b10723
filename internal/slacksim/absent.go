package slacksim

import (
	"slices"
	"strings"
)

// absent are the methods that Slack has and that are not simulated, beside all of
// admin.*. An app that calls one has not misspelled it, and is told so.
//
// https://docs.slack.dev/reference/methods
var absent = strings.Fields(`
agents.conversations.archive agents.conversations.create agents.conversations.getCanvas
agents.conversations.listViews agents.conversations.removeView agents.conversations.setCanvasContent
agents.conversations.setCommands agents.conversations.setProperties agents.conversations.setView
agents.sessions.rename agents.sessions.setStatus apps.activities.list apps.auth.external.delete
apps.auth.external.get apps.datastore.bulkDelete apps.datastore.bulkGet apps.datastore.bulkPut
apps.datastore.count apps.datastore.delete apps.datastore.get apps.datastore.put apps.datastore.query
apps.datastore.update apps.event.authorizations.list apps.icon.set apps.managed.permissions.set
apps.manifest.create apps.manifest.delete apps.manifest.export apps.manifest.update apps.manifest.validate
apps.uninstall apps.user.connection.bulkUpdate apps.user.connection.requestAuth apps.user.connection.update
assistant.search.context assistant.search.info bookmarks.add bookmarks.edit bookmarks.list bookmarks.remove
calls.add calls.end calls.info calls.participants.add calls.participants.remove calls.update
canvases.access.delete canvases.access.set canvases.create canvases.delete canvases.edit canvases.getContent
canvases.sections.lookup chat.meMessage chat.unfurl conversations.acceptSharedInvite
conversations.approveSharedInvite conversations.archive conversations.canvases.create conversations.close
conversations.declineSharedInvite conversations.externalInvitePermissions.set conversations.inviteShared
conversations.kick conversations.leave conversations.listConnectInvites conversations.mark conversations.rename
conversations.requestSharedInvite.approve conversations.requestSharedInvite.deny
conversations.requestSharedInvite.list conversations.setPurpose conversations.setTopic conversations.unarchive
dialog.open dnd.endDnd dnd.endSnooze dnd.info dnd.setSnooze dnd.teamInfo emoji.list
entity.acknowledgeCommentAction entity.presentComments entity.presentDetails files.comments.delete
files.completeUploadExternal files.delete files.getUploadURLExternal files.info files.list files.remote.add
files.remote.info files.remote.list files.remote.remove files.remote.share files.remote.update
files.revokePublicURL files.sharedPublicURL functions.completeError functions.completeSuccess
functions.distributions.permissions.add functions.distributions.permissions.list
functions.distributions.permissions.remove functions.distributions.permissions.set
functions.workflows.steps.list functions.workflows.steps.responses.export migration.exchange oauth.access
oauth.v2.user.access openid.connect.token openid.connect.userInfo pins.add pins.list pins.remove reminders.add
reminders.complete reminders.delete reminders.info reminders.list search.all search.files search.messages
slackLists.access.delete slackLists.access.set slackLists.create slackLists.download.get
slackLists.download.start slackLists.items.create slackLists.items.delete slackLists.items.deleteMultiple
slackLists.items.info slackLists.items.list slackLists.items.update slackLists.update stars.add stars.list
stars.remove team.accessLogs team.billableInfo team.billing.info team.externalTeams.disconnect
team.externalTeams.list team.integrationLogs team.preferences.list team.profile.get tooling.tokens.rotate
usergroups.create usergroups.disable usergroups.enable usergroups.update usergroups.users.update
users.deletePhoto users.discoverableContacts.lookup users.getPresence users.identity users.profile.set
users.setActive users.setPhoto users.setPresence workflows.featured.add workflows.featured.list
workflows.featured.remove workflows.featured.set workflows.triggers.permissions.add
workflows.triggers.permissions.list workflows.triggers.permissions.remove workflows.triggers.permissions.set
`)

// retired are methods that Slack refuses by now, and whole families of them: what ends
// with a point is a prefix.
var retired = []string{
	"channels.", "groups.", "im.", "mpim.", "files.upload", "workflows.stepCompleted", "workflows.stepFailed", "workflows.updateStep",
}

// unknown answers a call of a method that is not in the table.
func unknown(name string) object {
	problem := func(code, why string) object {
		return object{
			"ok": false, "error": code, "req_method": name,
			"response_metadata": object{"messages": []string{"[ERROR] " + why}},
		}
	}
	switch {
	case slices.ContainsFunc(retired, func(r string) bool { return name == r || (strings.HasSuffix(r, ".") && strings.HasPrefix(name, r)) }):
		return problem("method_deprecated", "Slack has retired "+name)
	case name == "rtm.connect" || name == "rtm.start":
		return problem("not_allowed_token_type", name+" takes tokens of classic apps only; use the Events API or Socket Mode")
	case strings.HasPrefix(name, "admin.") || slices.Contains(absent, name):
		return problem("not_simulated", "Slack has "+name+", but slacksim does not")
	}
	return object{"ok": false, "error": "unknown_method", "req_method": name}
}
