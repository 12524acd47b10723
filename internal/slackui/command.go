package slackui

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// A slash is a slash command, as it was sent. The words are still as Slack
// escaped them: a mention is one only where Slack made it.
type slash struct {
	command               string // how ours is called
	user, team, channel   string
	trigger, rest         string
	words                 []string // behind the subcommand
	enterprise, responses string
}

func slashOf(form url.Values) slash {
	_, rest := cutWord(form.Get("text"))
	return slash{
		command: ourName(form.Get("command")), user: form.Get("user_id"), team: form.Get("team_id"),
		channel: form.Get("channel_id"), trigger: form.Get("trigger_id"), rest: rest, words: strings.Fields(rest),
		enterprise: form.Get("enterprise_id"), responses: form.Get("response_url"),
	}
}

// commands answers a slash command, to the person alone.
func (s *Server) commands(ctx context.Context, body []byte) (reply, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("command") == "" || !idForm.MatchString(form.Get("user_id")) {
		return reply{}, fmt.Errorf("%w: not a slash command", errBody)
	}
	c := slashOf(form)
	if !s.cfg.serves(c.team, c.enterprise) {
		words, _ := explain(errOtherTeam, about{})
		return ephemeral(words), nil
	}
	word, _ := cutWord(form.Get("text"))
	switch strings.ToLower(word) {
	case "", "help":
		return c.help(), nil
	case "list":
		return s.list(ctx, c)
	case "approve":
		return s.bulk(ctx, c, approvals.Approve)
	case "deny":
		return s.bulk(ctx, c, approvals.Deny)
	case "status":
		if len(c.words) > 0 {
			return c.extra("status"), nil
		}
		return s.status(ctx, c), nil
	case "away":
		return s.away(ctx, form, c.rest)
	case "back":
		if len(c.words) > 0 {
			return c.extra("back"), nil
		}
		return s.back(ctx, approvals.UserID(c.user))
	}
	odd := slack.NewRichTextBlock("", line(say("There is no command "), styled(brief(unescape(word), 40), code), say(". Nothing was done.")))
	return answered("There is no such command. "+helpWords(c.command),
		odd, slack.NewSectionBlock(ours(helpWords(c.command)), nil, nil)), nil
}

// extra refuses words behind a subcommand that takes none.
func (c slash) extra(sub string) reply {
	return ephemeral("`" + sub + "` takes nothing after it. Nothing was done.\n" + helpWords(c.command))
}

// cutWord returns the first word and what is behind it.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

func ephemeral(mrkdwn string) reply {
	return answered(mrkdwn, slack.NewSectionBlock(ours(mrkdwn), nil, nil))
}

func answered(text string, blocks ...slack.Block) reply {
	return reply{map[string]any{"response_type": "ephemeral", "text": text, "blocks": blocks}}
}

// reply answers with the message, to the person alone.
func (m message) reply() reply { return answered(m.text, m.blocks...) }

// told is a message of our own words.
func told(mrkdwn string) message {
	return message{text: mrkdwn, blocks: []slack.Block{slack.NewSectionBlock(ours(mrkdwn), nil, nil)}}
}

// unticked takes the marks of code out of a sentence for those who hear it read.
var unticked = strings.NewReplacer("`", "")

// toldOf is a message in which a word of theirs stands between words of ours,
// and a hint behind it.
func toldOf(before, word, after, hint string) message {
	spans := []span{styled(brief(word, 60), code), say(after)}
	if before != "" {
		spans = append([]span{say(before)}, spans...)
	}
	return message{
		text:   escape(before + brief(word, 60) + after + " " + unticked.Replace(hint)),
		blocks: []slack.Block{richText(line(spans...)), slack.NewSectionBlock(ours(hint), nil, nil)},
	}
}

// ourName is how the command is called, if that is a name of a command.
func ourName(command string) string {
	if strings.Trim(command, "/abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || command == "" {
		return "/countersign"
	}
	return command
}

func helpWords(command string) string {
	return strings.ReplaceAll("`/c list` shows what waits for you and what is open in this channel.\n"+
		"`/c approve FILTER` and `/c deny FILTER REASON` sign many calls at once, from a list that you read first.\n"+
		"`/c status` says whether all is well and how much waits.\n"+
		"`/c away until friday, ask @ann` says that you are away; `/c back` ends it.\n"+
		"`/c help approve` says more of one of these.\n"+
		"To ask for something, mention me in a message. To sign one call, use the buttons on its card.", "/c ", command+" ")
}

// helpOf says more of one subcommand.
var helpOf = map[string]string{
	"list": "`/c list` shows the open calls that you can see, the oldest first: what waits for you, what you asked for, and what is shown in this channel.\n" +
		"`/c list mine` shows only what your signature would bring further, `/c list channel` only what is shown in this channel.\n" +
		"The six characters before a call are its id: `/c approve a1b2c3` takes it.",
	"approve": "`/c approve FILTER` opens a list of the calls that the filter finds, with what each would do. Nothing is signed before you press the button below it, " +
		"and then exactly what is listed is: a call that came later, or whose arguments changed, is not.\n" +
		"Calls that may do harm, were edited, or cannot be shown whole have a box each: tick those you want.\n" + filterHint + "\n" +
		"For example `/c approve tool:read_* older:2h`, or `/c approve channel from:@ann`.",
	"deny": "`/c deny FILTER REASON` opens a list of the calls that the filter finds, with the reason that the agents and everybody in the threads will read. " +
		"Nothing is denied before you press the button below it.\n" + filterHint + "\n" +
		"For example `/c deny thread:LINK the plan has changed`. If the reason begins like a filter, put it into quotes.",
	"status": "`/c status` says whether the bot reaches its store and Slack, how many calls wait for you and in this channel, and since when.",
	"away": "`/c away until friday, ask @ann` says until when you are away and who is asked in your place; so do `until tomorrow 15:00`, `until 2026-12-24` and `for 3 days`.\n" +
		"`/c away` shows what is set.",
	"back": "`/c back` ends your absence.",
}

// help answers with everything in short, or with one subcommand.
func (c slash) help() reply {
	if len(c.words) == 0 {
		return ephemeral(helpWords(c.command))
	}
	words, ok := helpOf[strings.ToLower(strings.Trim(c.words[0], "`/"))]
	if !ok || len(c.words) > 1 {
		return toldOf("There is no help on ", unescape(c.rest), ".", helpWords(c.command)).reply()
	}
	return ephemeral(strings.ReplaceAll(words, "/c ", c.command+" "))
}
