package blockkit

import (
	"time"
	"unicode/utf8"
)

const unlimited = 1 << 30

// plain is a plain_text object, mrkdwnOrPlain either text object. Both count
// toward the text of the payload.
func plain(most int) rule {
	return typed(map[string]rule{"plain_text": plainShape(most)})
}

func plainShape(most int) rule {
	return also(shape(need("type", anyText), need("text", text(1, most)), may("emoji", boolean)), countText)
}

func mrkdwnOrPlain(most int) rule {
	return typed(map[string]rule{
		"plain_text": plainShape(most),
		"mrkdwn": also(shape(need("type", anyText), need("text", text(1, most)),
			may("verbatim", boolean)), countText),
	})
}

func countText(c *Checker, o object, _ string) {
	if s, ok := o["text"].(string); ok {
		c.text += utf8.RuneCountInString(s)
	}
}

// confirm is the dialog that stands before an action.
var confirm = shape(
	need("title", plain(100)), need("text", mrkdwnOrPlain(300)),
	need("confirm", plain(30)), need("deny", plain(30)),
	may("style", enum("primary", "danger")),
)

// The options of menus: checkboxes and radio buttons also take mrkdwn, only
// overflow menus take a url.
var (
	option      = shape(need("text", plain(75)), need("value", text(1, 150)), may("description", plain(75)))
	richOption  = shape(need("text", mrkdwnOrPlain(75)), need("value", text(1, 150)), may("description", mrkdwnOrPlain(75)))
	overflowed  = shape(need("text", plain(75)), need("value", text(1, 150)), may("description", plain(75)), may("url", text(1, 3000)))
	optionGroup = shape(need("label", plain(75)), need("options", list(1, 100, option)))
)

var conversationFilter = also(shape(
	may("include", list(1, 4, enum("im", "mpim", "private", "public"))),
	may("exclude_external_shared_channels", boolean), may("exclude_bot_users", boolean)),
	func(c *Checker, o object, at string) {
		if len(o) == 0 {
			c.fail(at, "must define at least one of `include`, `exclude_external_shared_channels` or `exclude_bot_users`")
		}
	})

var dispatchAction = shape(may("trigger_actions_on", list(1, 2, enum("on_enter_pressed", "on_character_entered"))))

var slackFile = also(shape(may("id", text(1, 255)), may("url", text(1, 3000))), oneOf("id", "url"))

// identifier is a block_id, callback_id or external_id.
var identifier = text(0, 255)

// actionID must be unique in its block.
func actionID(c *Checker, v any, at string) {
	identifier(c, v, at)
	id, ok := v.(string)
	if !ok || id == "" {
		return
	}
	if c.actions[id] {
		c.fail(at, "`action_id` %q already exists", id)
	}
	c.actions[id] = true
}

func blockID(c *Checker, v any, at string) {
	identifier(c, v, at)
	id, ok := v.(string)
	if !ok || id == "" {
		return
	}
	if c.blockIDs[id] {
		c.fail(at, "`block_id` %q already exists", id)
	}
	c.blockIDs[id] = true
}

// element is an interactive element: its type, an action_id, and fields.
func element(fields ...field) rule {
	return shape(append([]field{need("type", anyText), may("action_id", actionID)}, fields...)...)
}

func image(fields ...field) rule {
	return also(shape(append([]field{
		need("type", anyText), need("alt_text", text(1, 2000)),
		may("image_url", link("http", "https")), may("slack_file", slackFile),
	}, fields...)...), oneOf("image_url", "slack_file"))
}

// menu is a select element; multi says whether several may be chosen.
func menu(fields ...field) rule {
	return element(append([]field{
		may("placeholder", plain(150)), may("confirm", confirm), may("focus_on_load", focus),
	}, fields...)...)
}

func several(fields ...field) rule {
	return menu(append(fields, may("max_selected_items", integer(1, unlimited)))...)
}

func entry(fields ...field) rule {
	return element(append([]field{
		may("placeholder", plain(150)), may("focus_on_load", focus), may("dispatch_action_config", dispatchAction),
	}, fields...)...)
}

func pick(names ...string) map[string]rule {
	kinds := map[string]rule{}
	for _, n := range names {
		kinds[n] = elements[n]
	}
	return kinds
}

// elements has every element by type; blocks say which they take.
var elements = map[string]rule{
	"image": image(),
	"button": element(need("text", plain(75)), may("url", link("http", "https", "mailto")), may("value", text(0, 2000)),
		may("style", enum("primary", "danger")), may("confirm", confirm), may("accessibility_label", text(1, 75)),
		may("agent_prompt", anyText), may("agent_prompt_display", anyText)),
	"workflow_button": element(need("text", plain(75)), need("workflow", anything),
		may("style", enum("primary", "danger")), may("accessibility_label", text(1, 75))),
	"icon_button": element(need("icon", enum("trash")), need("text", plain(75)), may("value", text(0, 2000)),
		may("confirm", confirm), may("accessibility_label", text(1, 75)), may("visible_to_user_ids", list(1, 100, text(1, 255)))),
	"feedback_buttons": element(need("positive_button", feedback), need("negative_button", feedback)),
	"overflow":         element(need("options", list(1, 5, overflowed)), may("confirm", confirm)),
	"checkboxes": once(element(need("options", list(1, 10, richOption)), may("initial_options", list(1, 10, richOption)),
		may("confirm", confirm), may("focus_on_load", focus)), offered),
	"radio_buttons": once(element(need("options", list(1, 10, richOption)), may("initial_option", richOption),
		may("confirm", confirm), may("focus_on_load", focus)), offered),

	"static_select": once(also(menu(may("options", list(1, 100, option)), may("option_groups", list(1, 100, optionGroup)),
		may("initial_option", option)), oneOf("options", "option_groups")), offered),
	"external_select": menu(may("min_query_length", integer(0, unlimited)), may("initial_option", option)),
	"users_select":    menu(may("initial_user", text(1, 255))),
	"conversations_select": menu(may("initial_conversation", text(1, 255)), may("default_to_current_conversation", boolean),
		may("response_url_enabled", boolean), may("filter", conversationFilter)),
	"channels_select": menu(may("initial_channel", text(1, 255)), may("response_url_enabled", boolean)),

	"multi_static_select": once(also(several(may("options", list(1, 100, option)), may("option_groups", list(1, 100, optionGroup)),
		may("initial_options", list(1, 100, option))), oneOf("options", "option_groups")), offered),
	"multi_external_select": several(may("min_query_length", integer(0, unlimited)), may("initial_options", list(1, 100, option))),
	"multi_users_select":    several(may("initial_users", list(1, 100, text(1, 255)))),
	"multi_conversations_select": several(may("initial_conversations", list(1, 100, text(1, 255))),
		may("default_to_current_conversation", boolean), may("filter", conversationFilter)),
	"multi_channels_select": several(may("initial_channels", list(1, 100, text(1, 255)))),

	"datepicker":     menu(may("initial_date", written(time.DateOnly, "YYYY-MM-DD"))),
	"timepicker":     menu(may("initial_time", written("15:04", "HH:mm")), may("timezone", text(1, 255))),
	"datetimepicker": element(may("initial_date_time", integer(1_000_000_000, 9_999_999_999)), may("confirm", confirm), may("focus_on_load", focus)),

	"plain_text_input": once(entry(may("initial_value", text(0, 3000)), may("multiline", boolean),
		may("min_length", integer(0, 3000)), may("max_length", integer(1, 3000))), leastBelowMost),
	"email_text_input": entry(may("initial_value", text(0, 3000))),
	"url_text_input":   entry(may("initial_value", text(0, 3000))),
	"number_input": entry(need("is_decimal_allowed", boolean), may("initial_value", text(1, 255)),
		may("min_value", text(1, 255)), may("max_value", text(1, 255))),
	"rich_text_input": entry(may("initial_value", later(func() rule { return richText })),
		may("min_lines", integer(1, unlimited)), may("max_lines", integer(1, unlimited))),
	"file_input": element(may("filetypes", list(1, 100, text(1, 255))), may("max_files", integer(1, 10))),
}

var feedback = shape(need("text", plain(75)), need("value", text(1, 2000)), may("accessibility_label", text(1, 75)))
