package approvals

import (
	"encoding/json"
	"fmt"
	"time"
)

// absencesVersion is the version of the JSON of absences. Stored ones decode
// for ever.
const absencesVersion = 1

type absencesJSON struct {
	V        int           `json:"v"`
	Absences []absenceJSON `json:"absences"`
}

type absenceJSON struct {
	User     UserID    `json:"user"`
	Delegate UserID    `json:"delegate,omitempty"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
}

// EncodeAbsences returns the JSON in which absences are stored.
func EncodeAbsences(as Absences) ([]byte, error) {
	doc := absencesJSON{V: absencesVersion, Absences: []absenceJSON{}}
	for _, a := range as {
		doc.Absences = append(doc.Absences, absenceJSON(a))
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode absences: %w", err)
	}
	return raw, nil
}

// DecodeAbsences reads what [EncodeAbsences] wrote. No bytes at all are no
// absences; a version that it does not know is an error, and so is one person
// twice.
func DecodeAbsences(raw []byte) (Absences, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var doc absencesJSON
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%w: decode absences: %w", ErrInvalid, err)
	}
	if doc.V != absencesVersion {
		return nil, fmt.Errorf("%w: absences of unknown version %d", ErrInvalid, doc.V)
	}
	var as Absences
	for _, a := range doc.Absences {
		if a.User == "" || as.index(a.User) >= 0 {
			return nil, fmt.Errorf("%w: absences of %q, twice or of nobody", ErrInvalid, string(a.User))
		}
		as = append(as, Absence{a.User, a.Delegate, plain(a.From), plain(a.Until)})
	}
	return as, nil
}
