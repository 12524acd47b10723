package approvals

import "time"

// An Absence is that a person is away, and who is to be asked in their place.
// It ends by itself.
type Absence struct {
	User     UserID
	Delegate UserID // empty: nobody
	From     time.Time
	Until    time.Time
}

// Absences are all that are known, at most one a person. It is a value.
type Absences []Absence

// The bounds of absences.
const (
	MaxAbsence = 60 * 24 * time.Hour // how long one may last
	MaxHops    = 3                   // how far a delegate who is away too may pass it on
)
