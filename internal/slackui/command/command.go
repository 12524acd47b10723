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
	odd := slack.NewRichTextBlock("", blockkit.Line(blockkit.Say(noCommand), blockkit.Styled(blockkit.Brief(blockkit.Unescape(c.Sub), 40), blockkit.Code), blockkit.Say(nothingChanged)))
	return inbound.Answered(blockkit.Ours(noCommandHelp, helpWords(c.Name)).Fallback(),
		odd, blockkit.Section(helpWords(c.Name))), nil
}

// tooMany refuses words after a subcommand that takes none.
func tooMany(c inbound.Command) inbound.Reply {
	return inbound.Ephemeral(blockkit.Ours(takesNothing, blockkit.CodeWord(c.Sub), helpWords(c.Name)))
}

func helpWords(command string) blockkit.Mrkdwn {
	return blockkit.Ours(helpAll, blockkit.CodeWord(command))
}

// helpOf explains one subcommand, if there is one of that name.
func helpOf(sub, command string) (words blockkit.Mrkdwn, ok bool) {
	c := blockkit.CodeWord(command)
	switch sub {
	case "list":
		return blockkit.Ours(helpList, c), true
	case "approve":
		return blockkit.Ours(helpApprove+filterHint+"\n"+
			helpApproveExample, c), true
	case "deny":
		return blockkit.Ours(helpDeny+filterHint+"\n"+
			helpDenyExample, c), true
	case "status":
		return blockkit.Ours(helpStatus, c), true
	case "away":
		return blockkit.Ours(helpAway, c), true
	case "back":
		return blockkit.Ours(helpBack, c), true
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
		return inbound.AnswerWith(blockkit.MessageAbout(noHelpFor, blockkit.Unescape(c.Rest), ".", helpWords(c.Name)))
	}
	return inbound.Ephemeral(words)
}

// A Handler answers slash commands.
type Handler struct {
	Cfg        Config
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
