package approvals

import "time"

// A LedgerEntry is one call that went ahead for a person: it was about to run,
// unasked or after an approval, here or elsewhere. Policies count them by day.
type LedgerEntry struct {
	Key   string // names the call among all of the person's, see [Proposal].Entry
	Agent string
	Tool  string
	At    time.Time
}
