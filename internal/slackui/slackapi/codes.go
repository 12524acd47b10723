package slackapi

// Closed are Slack's error codes for a channel in which the app cannot post until
// someone changes that.
var Closed = []string{"not_in_channel", "channel_not_found", "is_archived", restricted}

// restricted stands for all of Slack's codes that begin with it, such as
// restricted_action_read_only_channel.
const restricted = "restricted_action"

// Gone are Slack's error codes for a message that can never be updated again. Slack also says
// channel_not_found where the app was removed from a channel; it may be invited again.
var Gone = []string{"message_not_found", "cant_update_message", "edit_window_closed"}

// Unreachable are Slack's error codes for a person or a channel that takes no message
// from the app.
var Unreachable = []string{
	"user_not_found", "user_disabled", "user_not_visible", "invalid_user_combination", "messages_tab_disabled",
	"channel_not_found", "not_in_channel", "is_archived", restricted, "cannot_reply_to_message",
}

// NoThread are Slack's error codes for a thread whose first message was removed.
var NoThread = []string{"cannot_reply_to_message", "thread_not_found"}
