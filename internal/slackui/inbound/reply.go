package inbound

import (
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Ephemeral answers a command with a sentence, to the person alone.
func Ephemeral(m blockkit.Mrkdwn) Reply { return AnswerWith(blockkit.MessageOf(m)) }

// Answered answers a command with blocks, to the person alone.
func Answered(text blockkit.Fallback, blocks ...slack.Block) Reply {
	return Reply{map[string]any{"response_type": "ephemeral", "text": text.String(), "blocks": blocks}}
}

// AnswerWith answers with the message, to the person alone.
func AnswerWith(m blockkit.Message) Reply { return Answered(m.Text, m.Blocks...) }

// Under refuses a form with words under its inputs, by block id.
func Under(problems map[string]string) Reply {
	return Reply{map[string]any{"response_action": "errors", "errors": problems}}
}

// Replace answers a submission with another view.
func Replace(v slack.ModalViewRequest) Reply {
	return Reply{map[string]any{"response_action": "update", "view": v}}
}

// A Reply is the answer to Slack's request: nothing, or JSON that one of the
// functions of this package made.
type Reply struct{ body any }

// IsZero reports whether the answer is nothing.
func (r Reply) IsZero() bool { return r.body == nil }
