package card

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// worstFirst are the severities in the order of [approvals.CompareSeverity].
var worstFirst = []approvals.Severity{
	approvals.SeverityIrreversible, approvals.SeverityUnset, approvals.SeverityHigh, approvals.SeverityLow,
}

// risk names the severity, with emphasis on what cannot be undone.
func risk(s approvals.Severity) blockkit.Mrkdwn {
	switch {
	case Irreversible(s):
		return blockkit.Ours("*Irreversible*")
	case s == approvals.SeverityHigh:
		return blockkit.Ours("High risk")
	case s == approvals.SeverityLow:
		return blockkit.Ours("Low risk")
	}
	return blockkit.Ours("Risk not stated")
}

// Irreversible reports whether the severity says that the call cannot be undone.
func Irreversible(s approvals.Severity) bool {
	return approvals.CompareSeverity(s, approvals.SeverityIrreversible) == 0
}
