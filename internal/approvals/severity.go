package approvals

import (
	"cmp"
	"fmt"
)

// Severity says how bad it is if a call that should not have run does run. It
// is stored; see [CompareSeverity] for the order.
type Severity string

// The severities. Unset means that none is stated, which promises nothing: see
// [Severity.MayBeIrreversible].
const (
	SeverityUnset        Severity = ""
	SeverityLow          Severity = "low"          // it only reads, or is trivial to undo
	SeverityHigh         Severity = "high"         // it can be undone, with effort
	SeverityIrreversible Severity = "irreversible" // it cannot be undone
)

// ParseSeverity reads one of the stated severities, as a policy or a tool
// writes it.
func ParseSeverity(s string) (Severity, error) {
	switch v := Severity(s); v {
	case SeverityLow, SeverityHigh, SeverityIrreversible:
		return v, nil
	case SeverityUnset:
	}
	return SeverityUnset, fmt.Errorf("%w: severity %.100q is not low, high or irreversible", ErrInvalid, s)
}

// MayBeIrreversible reports whether the call has to be treated as one that
// cannot be undone. It is true unless someone has stated that it can.
func (s Severity) MayBeIrreversible() bool { return s != SeverityLow && s != SeverityHigh }

// Worse returns the worse of two statements. Unset is no statement, so the
// other one counts. A value that is none of the constants counts as
// [SeverityIrreversible].
func (s Severity) Worse(o Severity) Severity {
	switch {
	case s == SeverityUnset:
		return o.known()
	case o == SeverityUnset:
		return s.known()
	case CompareSeverity(o, s) < 0:
		return o.known()
	}
	return s.known()
}

// known returns s, or the worst for a value that is none of the constants.
func (s Severity) known() Severity {
	switch s {
	case SeverityUnset, SeverityLow, SeverityHigh, SeverityIrreversible:
		return s
	}
	return SeverityIrreversible
}

// CompareSeverity orders severities, the worst first: irreversible, unset,
// high, low. Unset comes before high because such a call may be irreversible.
func CompareSeverity(a, b Severity) int { return cmp.Compare(a.rank(), b.rank()) }

func (s Severity) rank() int {
	switch s.known() {
	case SeverityIrreversible:
		return 0
	case SeverityUnset:
		return 1
	case SeverityHigh:
		return 2
	case SeverityLow:
		return 3
	}
	return 0 // unreachable
}
