package delivery

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// WebhookDisabled says in the channel of an agent that one of its webhooks gets no
// more messages, and why. A channel that takes no messages is not an error: that is
// logged, and nobody is left to say it to.
func (n *Notices) WebhookDisabled(ctx context.Context, channel, agent, webhook, reason string) error {
	command := sayEnableCommand + blockkit.ShellWord(agent) + " " + blockkit.ShellWord(webhook)
	agent, webhook, reason = blockkit.Brief(agent, 64), blockkit.Brief(webhook, 64), blockkit.Brief(reason, 200)
	_, err := n.API.Post(ctx, channel, "", blockkit.ParagraphMessage(
		sayTheWebhook+webhook+sayOfTheAgent+agent+sayNoLongerGets+reason+sayMessagesWait+command+sayEnableFinished,
		blockkit.Say(sayTheWebhook), blockkit.Styled(webhook, blockkit.Code), blockkit.Say(sayOfTheAgent),
		blockkit.Styled(agent, blockkit.Bold), blockkit.Say(sayNoLongerGets), blockkit.Say(reason),
		blockkit.Say(sayMessagesWait), blockkit.Styled(command, blockkit.Code), blockkit.Say(sayEnableFinished),
	))
	if slackapi.HasCode(err, slackapi.Unreachable...) {
		n.Log.WarnContext(ctx, "nobody can be told that a webhook is disabled",
			slog.String("channel", channel), slog.String("agent", agent), slog.String("webhook", webhook), slog.Any("err", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("tell channel %s of a webhook: %w", channel, err)
	}
	return nil
}
