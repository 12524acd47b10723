package command

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Command answers a slash command, to the person alone.
func (s *Handler) Command(ctx context.Context, c inbound.Command) (inbound.Reply, error) {
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
			return tooMany(c), nil
		}
		return s.status(ctx, c), nil
	case "away":
		return s.away(ctx, c)
	case "back":
		if len(c.Words) > 0 {
			return tooMany(c), nil
		}
		return s.back(ctx, approvals.UserID(c.User))
	}
	odd := slack.NewRichTextBlock("", blockkit.Line(blockkit.Say("There is no command "), blockkit.Styled(blockkit.Brief(blockkit.Unescape(c.Sub), 40), blockkit.Code), blockkit.Say(". Nothing was done.")))
	return inbound.Answered(blockkit.Ours("There is no such command. %s", helpWords(c.Name)).Fallback(),
		odd, blockkit.Section(helpWords(c.Name))), nil
}

// tooMany refuses words behind a subcommand that takes none.
func tooMany(c inbound.Command) inbound.Reply {
	return inbound.Ephemeral(blockkit.Ours("`%s` takes nothing after it. Nothing was done.\n%s", blockkit.CodeWord(c.Sub), helpWords(c.Name)))
}

func helpWords(command string) blockkit.Mrkdwn {
	return blockkit.Ours("`%[1]s list` shows what waits for you and what is open in this channel.\n"+
		"`%[1]s approve FILTER` and `%[1]s deny FILTER REASON` sign many calls at once, from a list that you read first.\n"+
		"`%[1]s status` says whether all is well and how much waits.\n"+
		"`%[1]s away until friday, ask @ann` says that you are away; `%[1]s back` ends it.\n"+
		"`%[1]s help approve` says more of one of these.\n"+
		"To ask for something, mention me in a message. To sign one call, use the buttons on its card.", blockkit.CodeWord(command))
}

// helpOf says more of one subcommand, if there is one of that name.
func helpOf(sub, command string) (words blockkit.Mrkdwn, ok bool) {
	c := blockkit.CodeWord(command)
	switch sub {
	case "list":
		return blockkit.Ours("`%[1]s list` shows the open calls that you can see, the oldest first: what waits for you, what you asked for, and what is shown in this channel.\n"+
			"`%[1]s list mine` shows only what your signature would bring further, `%[1]s list channel` only what is shown in this channel.\n"+
			"The six characters before a call are its id: `%[1]s approve a1b2c3` takes it.", c), true
	case "approve":
		return blockkit.Ours("`%[1]s approve FILTER` opens a list of the calls that the filter finds, with what each would do. Nothing is signed before you press the button below it, "+
			"and then exactly what is listed is: a call that came later, or whose arguments changed, is not.\n"+
			"Calls that may do harm, were edited, or cannot be shown whole have a box each: tick those you want.\n"+filterHint+"\n"+
			"For example `%[1]s approve tool:read_* older:2h`, or `%[1]s approve channel from:@ann`.", c), true
	case "deny":
		return blockkit.Ours("`%[1]s deny FILTER REASON` opens a list of the calls that the filter finds, with the reason that the agents and everybody in the threads will read. "+
			"Nothing is denied before you press the button below it.\n"+filterHint+"\n"+
			"For example `%[1]s deny thread:LINK the plan has changed`. If the reason begins like a filter, put it into quotes.", c), true
	case "status":
		return blockkit.Ours("`%[1]s status` says whether the bot reaches its store and Slack, how many calls wait for you and in this channel, and since when.", c), true
	case "away":
		return blockkit.Ours("`%[1]s away until friday, ask @ann` says until when you are away and who is asked in your place; so do `until tomorrow 15:00`, `until 2026-12-24` and `for 3 days`.\n"+
			"`%[1]s away` shows what is set.", c), true
	case "back":
		return blockkit.Ours("`%[1]s back` ends your absence.", c), true
	}
	return blockkit.Mrkdwn{}, false
}

// help answers with everything in short, or with one subcommand.
func help(c inbound.Command) inbound.Reply {
	if len(c.Words) == 0 {
		return inbound.Ephemeral(helpWords(c.Name))
	}
	words, ok := helpOf(strings.ToLower(strings.Trim(c.Words[0], "`/")), c.Name)
	if !ok || len(c.Words) > 1 {
		return inbound.AnswerWith(blockkit.MessageAbout("There is no help on ", blockkit.Unescape(c.Rest), ".", helpWords(c.Name)))
	}
	return inbound.Ephemeral(words)
}

// A Handler answers slash commands.
type Handler struct {
	Cfg     Config
	Api     *slackapi.Client
	Cards   *delivery.Cards
	People  *directory.Directory
	Linked  func() error // why no socket is open; nil over HTTP
	Respond *respond.Responder
	Sheets  *bulk.Service
}

// A Config is what slash commands are answered with.
type Config struct {
	Team   string
	Lists  directory.Lists
	Health Health
	Now    func() time.Time
	Log    *slog.Logger
}
