package ref

import (
	"github.com/countersign/countersign/internal/approvals"
)

// idRunes is how much of a call's digest is its short id.
const idRunes = 6

// ShortID is the id of a call that people read, and that the commands approve
// and deny take.
func ShortID(d approvals.Digest) string { return d.String()[:idRunes] }
