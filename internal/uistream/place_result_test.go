package uistream

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// In a thread of Slack others see of a result what the card says: a tool can repeat
// arguments that are shown to nobody, in its result, its error or a link.
func TestOthersSeeOfAResultWhatTheCardSays(t *testing.T) {
	asked := &approvals.Approval{Execution: approvals.Execution{Excerpt: "paid with ••••"}}
	secret := json.RawMessage(`"paid with hunter2"`)
	full := &call{asked: asked, result: agentrun.ToolReturn{
		Outcome: agentrun.OutcomeSuccess, Content: secret, Metadata: secret,
		Parts: []agentrun.Part{{Type: agentrun.PartText, Text: "hunter2"}},
	}}
	require.Equal(t, agentrun.ToolReturn{Outcome: agentrun.OutcomeSuccess, Content: json.RawMessage(`"paid with ••••"`)}, full.excerpted().result)
	require.Equal(t, secret, full.result.(agentrun.ToolReturn).Content, "whoever asked sees all of it")

	asked.Execution = approvals.Execution{Words: "the card was declined"}
	retry := &call{asked: asked, result: agentrun.RetryPrompt{Content: "hunter2 was declined"}}
	require.Equal(t, agentrun.RetryPrompt{Content: "the card was declined"}, retry.excerpted().result)
	denied := &call{asked: asked, result: agentrun.ToolReturn{Outcome: agentrun.OutcomeDenied, Content: json.RawMessage(`"Too much."`)}}
	require.Equal(t, denied.result, denied.excerpted().result)
	require.Nil(t, (&call{asked: asked}).excerpted().result)
}
