package inbound

import (
	"net/url"
	"strings"
	"unicode"
)

// A Command is a slash command as it was sent. Its words keep Slack's escapes, so
// that only Slack can have made a mention in them.
type Command struct {
	Name    string   // the name of our command
	Sub     string   // the first word
	Words   []string // the words after it
	Rest    string   // the text after it, as it was written
	User    string
	Team    string // the person's own workspace
	Channel string
	Trigger string // opens one view, for 3 s
}

func commandOf(form url.Values) Command {
	sub, rest := cutWord(form.Get("text"))
	return Command{
		Name: ourName(form.Get("command")), Sub: strings.ToLower(sub), Words: strings.Fields(rest), Rest: rest,
		User: form.Get("user_id"), Team: form.Get("team_id"), Channel: form.Get("channel_id"), Trigger: form.Get("trigger_id"),
	}
}

// cutWord returns the first word and the text after it.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// ourName returns the name of the command, if it has the form of one.
func ourName(command string) string {
	if strings.Trim(command, "/abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || command == "" {
		return "/countersign"
	}
	return command
}
