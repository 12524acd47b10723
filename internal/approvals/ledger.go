package approvals

import "time"

// A LedgerEntry is one call of a person that was allowed to run, without being
// asked about or after an approval, here or elsewhere. Policies count them by
// day.
type LedgerEntry struct {
	Key   string // unique among the calls of the person, see [Proposal].Entry
	Agent string
	Tool  string
	At    time.Time
}
