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
	odd := slack.NewRichTextBlock("", blockkit.Line(blockkit.Say("There is no command "), blockkit.Styled(blockkit.Brief(blockkit.Unescape(c.Sub), 40), blockkit.Code), blockkit.Say(". Nothing was done.")))
	return inbound.Answered("There is no such command. "+helpWords(c.Name),
		odd, slack.NewSectionBlock(blockkit.Ours(helpWords(c.Name)), nil, nil)), nil
}

// tooMany refuses words behind a subcommand that takes none.
func tooMany(c inbound.Command, sub string) inbound.Reply {
	return inbound.Ephemeral("`" + sub + "` takes nothing after it. Nothing was done.\n" + helpWords(c.Name))
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
func help(c inbound.Command) inbound.Reply {
	if len(c.Words) == 0 {
		return inbound.Ephemeral(helpWords(c.Name))
	}
	words, ok := helpOf[strings.ToLower(strings.Trim(c.Words[0], "`/"))]
	if !ok || len(c.Words) > 1 {
		return inbound.AnswerWith(blockkit.ToldOf("There is no help on ", blockkit.Unescape(c.Rest), ".", helpWords(c.Name)))
	}
	return inbound.Ephemeral(strings.ReplaceAll(words, "/c ", c.Name+" "))
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
