package form

import (
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

const maxReason = 1000

// TrimReason returns a reason as it is stored: without white space around it,
// and of at most maxReason runes.
func TrimReason(s string) string {
	s, _ = blockkit.Cut(strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD"), maxReason)
	return s
}

// The ids of the block and the input of a reason.
const (
	ReasonBlock = "reason"
	ReasonInput = "text"
)

// ReasonInputBlock is the input for a reason.
func ReasonInputBlock(label, hint string, needed, focus bool) *slack.InputBlock {
	input := slack.NewPlainTextInputBlockElement(blockkit.Literal(whyNotExample), ReasonInput)
	if label != whyNot {
		input.Placeholder = blockkit.Literal(whyApproveExample)
	}
	input.Multiline, input.MaxLength, input.FocusOnLoad = true, maxReason, focus
	b := slack.NewInputBlock(ReasonBlock, blockkit.Literal(label), blockkit.Literal(hint), input)
	b.Optional = !needed
	return b
}
