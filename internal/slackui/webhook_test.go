package slackui_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

func TestTheChannelOfAnAgentIsToldThatItsWebhookIsDisabled(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	require.NoError(t, o.ui.Notices.WebhookDisabled(t.Context(), "C0OPS", "<!here> *claude*", "ci", "The receiver answered 500."))
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	shown := strings.ReplaceAll(all[0].Shown(), "\n", "")
	require.Contains(t, shown, "The webhook ci of the agent <!here> *claude* no longer gets messages. The receiver answered 500. Its messages wait.")
	require.Contains(t, shown, "bot admin enable '<!here> *claude*' ci")

	require.NoError(t, o.ui.Notices.WebhookDisabled(t.Context(), "C0NONE", "claude", "ci", "Gone."), "nobody is there to be told")
}
