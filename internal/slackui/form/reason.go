package form

import (
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

const maxReason = 1000

// TrimReason is a reason as it is stored: without blanks around it, at most
// maxReason runes.
func TrimReason(s string) string {
	s, _ = blockkit.Cut(strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD"), maxReason)
	return s
}

// The block and the input in which a reason is written.
const (
	ReasonBlock = "reason"
	ReasonInput = "text"
)

// ReasonInputBlock is the input in which a reason is written.
func ReasonInputBlock(label, hint string, needed, focus bool) *slack.InputBlock {
	input := slack.NewPlainTextInputBlockElement(blockkit.Literal("For example: use the archive instead"), ReasonInput)
	if label != "Why not?" {
		input.Placeholder = blockkit.Literal("For example: checked against the backup of today")
	}
	input.Multiline, input.MaxLength, input.FocusOnLoad = true, maxReason, focus
	b := slack.NewInputBlock(ReasonBlock, blockkit.Literal(label), blockkit.Literal(hint), input)
	b.Optional = !needed
	return b
}
