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
	odd := slack.NewRichTextBlock("", blockkit.Line(blockkit.Say("There is no command "), blockkit.Styled(blockkit.Brief(blockkit.Unescape(c.Sub), 40), blockkit.Code), blockkit.Say(". Nothing changed.")))
	return inbound.Answered(blockkit.Ours("There is no such command. %s", helpWords(c.Name)).Fallback(),
		odd, blockkit.Section(helpWords(c.Name))), nil
}

// tooMany refuses words after a subcommand that takes none.
func tooMany(c inbound.Command) inbound.Reply {
	return inbound.Ephemeral(blockkit.Ours("`%s` takes nothing after it. Nothing changed.\n%s", blockkit.CodeWord(c.Sub), helpWords(c.Name)))
}

func helpWords(command string) blockkit.Mrkdwn {
	return blockkit.Ours("`%[1]s list` shows what waits for you and what is open in this channel.\n"+
		"`%[1]s approve FILTER` and `%[1]s deny FILTER REASON` decide many calls at once, from a list that you read first.\n"+
		"`%[1]s status` shows whether Countersign is working and how much waits.\n"+
		"`%[1]s away until friday, ask @ann` says that you are away and names a delegate; `%[1]s back` ends it.\n"+
		"`%[1]s help approve` explains one of these.\n"+
		"To ask an agent for something, mention me in a message. To decide one call, use the buttons on its card.", blockkit.CodeWord(command))
}

// helpOf explains one subcommand, if there is one of that name.
func helpOf(sub, command string) (words blockkit.Mrkdwn, ok bool) {
	c := blockkit.CodeWord(command)
	switch sub {
	case "list":
		return blockkit.Ours("`%[1]s list` shows the open calls that you can see, the oldest first: what waits for you, what you asked for, and what is shown in this channel.\n"+
			"`%[1]s list mine` shows only the calls that need your approval, `%[1]s list channel` only those shown in this channel.\n"+
			"The six characters before a call are its id: `%[1]s approve a1b2c3` selects it.", c), true
	case "approve":
		return blockkit.Ours("`%[1]s approve FILTER` opens a list of the calls that match, with what each would do. Nothing is approved until you press the button below it, "+
			"and then only what is listed: calls that came later, or whose arguments changed, aren't included.\n"+
			"Calls that can do harm, were edited, or can't be shown whole have a checkbox each: select those you want.\n"+filterHint+"\n"+
			"For example: `%[1]s approve tool:read_* older:2h`, or `%[1]s approve channel from:@ann`.", c), true
	case "deny":
		return blockkit.Ours("`%[1]s deny FILTER REASON` opens a list of the calls that match, with the reason, which the agents and everyone in the threads will read. "+
			"Nothing is denied until you press the button below it.\n"+filterHint+"\n"+
			"For example: `%[1]s deny thread:LINK the plan has changed`. If the reason starts like a filter, put it in quotes.", c), true
	case "status":
		return blockkit.Ours("`%[1]s status` shows whether Countersign reaches its store and Slack, how many calls wait for you and in this channel, and since when.", c), true
	case "away":
		return blockkit.Ours("`%[1]s away until friday, ask @ann` says until when you are away and who your delegate is. You can also write `until tomorrow 15:00`, `until 2026-12-24` or `for 3 days`.\n"+
			"`%[1]s away` alone shows your absence.", c), true
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
		return inbound.AnswerWith(blockkit.MessageAbout("There is no help for ", blockkit.Unescape(c.Rest), ".", helpWords(c.Name)))
	}
	return inbound.Ephemeral(words)
}

// A Handler answers slash commands.
type Handler struct {
	Cfg        Config
	API        *slackapi.Client
	Placements *delivery.Placements
	People     *directory.Directory
	Linked     func() error // why no socket is open; nil over HTTP
	Respond    *respond.Responder
	Sheets     *bulk.Service
}

// A Config is what slash commands are answered with.
type Config struct {
	Team   string
	Lists  directory.Lists
	Health Health
	Now    func() time.Time
	Log    *slog.Logger
}
