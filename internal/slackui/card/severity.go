package card

import "github.com/countersign/countersign/internal/approvals"

// worstFirst are the severities in the order of [approvals.CompareSeverity].
var worstFirst = []approvals.Severity{
	approvals.SeverityIrreversible, approvals.SeverityUnset, approvals.SeverityHigh, approvals.SeverityLow,
}

// Irreversible reports whether the severity says that the call cannot be undone.
func Irreversible(s approvals.Severity) bool {
	return approvals.CompareSeverity(s, approvals.SeverityIrreversible) == 0
}
