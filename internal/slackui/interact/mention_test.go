package interact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// A mention that does not say whom it is for is delivered again while Slack does
// not say who we are.
func TestAMentionWhoseBotIsUnknownIsDeliveredAgain(t *testing.T) {
	s := &listener{api: slackapi.New(func() string { return "xoxb" }, "http://127.0.0.1:1/", nil)}
	_, err := s.botOf(t.Context(), inbound.Event{})
	require.Error(t, err)
}
