package ref

import (
	"github.com/countersign/countersign/internal/approvals"
)

// idRunes is how much of a call's digest names it, until two are alike.
const idRunes = 6

// ShortID names a call to people: approve and deny take it.
func ShortID(d approvals.Digest) string { return d.String()[:idRunes] }
