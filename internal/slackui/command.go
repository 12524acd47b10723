package slackui

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// Command answers a slash command, to the person alone.
func (s *commander) Command(ctx context.Context, c Command) (reply, error) {
	switch c.Sub {
	case "", "help":
		return help(c), nil
	case "list":
		return s.list(ctx, c)
	case "approve":
		return s.bulk(ctx, c, approvals.Approve)
	case "deny":
		return s.bulk(ctx, c, approvals.Deny)
	case "status":
		if len(c.Words) > 0 {
			return tooMany(c, "status"), nil
		}
		return s.status(ctx, c), nil
	case "away":
		return s.away(ctx, c)
	case "back":
		if len(c.Words) > 0 {
			return tooMany(c, "back"), nil
		}
		return s.back(ctx, approvals.UserID(c.User))
	}
	odd := slack.NewRichTextBlock("", line(say("There is no command "), styled(brief(unescape(c.Sub), 40), code), say(". Nothing was done.")))
	return answered("There is no such command. "+helpWords(c.Name),
		odd, slack.NewSectionBlock(ours(helpWords(c.Name)), nil, nil)), nil
}

// tooMany refuses words behind a subcommand that takes none.
func tooMany(c Command, sub string) reply {
	return ephemeral("`" + sub + "` takes nothing after it. Nothing was done.\n" + helpWords(c.Name))
}

func ephemeral(mrkdwn string) reply {
	return answered(mrkdwn, slack.NewSectionBlock(ours(mrkdwn), nil, nil))
}

func answered(text string, blocks ...slack.Block) reply {
	return reply{map[string]any{"response_type": "ephemeral", "text": text, "blocks": blocks}}
}

// answerWith answers with the message, to the person alone.
func answerWith(m message) reply { return answered(m.text, m.blocks...) }

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
func help(c Command) reply {
	if len(c.Words) == 0 {
		return ephemeral(helpWords(c.Name))
	}
	words, ok := helpOf[strings.ToLower(strings.Trim(c.Words[0], "`/"))]
	if !ok || len(c.Words) > 1 {
		return answerWith(toldOf("There is no help on ", unescape(c.Rest), ".", helpWords(c.Name)))
	}
	return ephemeral(strings.ReplaceAll(words, "/c ", c.Name+" "))
}

// A commander answers slash commands.
type commander struct {
	cfg     commandConfig
	api     *api
	cards   *Cards
	people  *directory
	linked  func() error // why no socket is open; nil over HTTP
	respond *responder
	sheets  *Sheets
}

// A commandConfig is what slash commands are answered with.
type commandConfig struct {
	Team   string
	Lists  lists
	Health Health
	Now    func() time.Time
	Log    *slog.Logger
}
