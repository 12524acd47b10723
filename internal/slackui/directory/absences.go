package directory

import (
	"context"
	"errors"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
)

// AbsencesOf is the memo of all absences. They are one document, because who stands
// in for whom depends on all of them.
const AbsencesOf = "absences"

// Absences stores who is away, until when, and who stands in for them.
type Absences struct {
	memos memo.Store
	team  string
}

// Absences returns the absences of the people of the directory.
func (d *Directory) Absences() Absences { return Absences{memos: d.Memos, team: d.Team} }

func (a Absences) key() string {
	return approvals.NewID(AbsencesOf, approvals.PartitionOf(a.team), strings.ToLower(a.team))
}

// Load returns all absences and the version of their memo. If they cannot be read,
// it returns a [*LookupError].
func (a Absences) Load(ctx context.Context) (approvals.Absences, int64, error) {
	raw, version, err := a.memos.Memo(ctx, a.key(), AbsencesOf)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, &LookupError{What: AbsencesOf, Err: err}
	}
	as, err := approvals.DecodeAbsences(raw)
	if err != nil {
		return nil, 0, &LookupError{What: AbsencesOf, Err: err}
	}
	return as, version, nil
}

// Change stores what change makes of the absences, and returns them as they were
// before and are now, once that is durable. change may run more than once.
func (a Absences) Change(ctx context.Context, change func(approvals.Absences) (approvals.Absences, error)) (before, after approvals.Absences, err error) {
	for range memo.Attempts {
		as, version, err := a.Load(ctx)
		if err != nil {
			return nil, nil, err
		}
		next, err := change(as)
		if err != nil {
			return as, as, err
		}
		raw, err := approvals.EncodeAbsences(next)
		if err != nil {
			return nil, nil, err
		}
		err = a.memos.KeepMemo(ctx, a.key(), AbsencesOf, raw, version)
		if err == nil {
			return as, next, nil
		}
		if !errors.Is(err, approvals.ErrConflict) {
			return nil, nil, err
		}
	}
	return nil, nil, approvals.ErrConflict
}

// absentFor returns the people in whose place the person may approve: those who are
// away, have named the person as their delegate, and could approve themselves, by
// name or as full members of the groups in the same rosters.
func (d *Directory) absentFor(ctx context.Context, user approvals.UserID, what Sought, in Rosters) ([]approvals.Absent, error) {
	as, _, err := d.Absences().Load(ctx)
	if err != nil {
		return nil, err
	}
	var all []approvals.Absent
	for _, away := range as.DelegationsTo(user, d.Now()) {
		groups, _ := in.With(string(away.User), d.Now())
		if len(groups) == 0 && !what.names(away.User) {
			continue // the calls do not ask them
		}
		counts, member, err := absentCounts(ctx, d, away)
		if err != nil {
			return nil, err
		}
		if !counts {
			continue
		}
		if !member {
			groups = nil
		}
		all = append(all, approvals.Absent{User: away.User, Groups: groups, Until: away.Until, Via: away.Via})
	}
	return all, nil
}

// absentCounts reports whether the person who is away could take part themselves, and
// everyone who passed the delegation on can still be a delegate. member says whether the
// person is a full member; otherwise they could only approve where a rule names them. It
// returns an error only if that may be known in a moment.
func absentCounts(ctx context.Context, d *Directory, to approvals.Delegation) (counts, member bool, err error) {
	if passed, err := passedOn(ctx, d, to); err != nil || !passed {
		return false, false, err
	}
	member, err = d.Admitted(ctx, string(to.User), "", Sought{Named: []approvals.UserID{to.User}})
	if errors.Is(err, ErrLookup) {
		return false, false, err
	}
	return err == nil, member, nil
}

// passedOn reports whether everyone who passed the delegation on can still be a delegate.
// It returns an error only if that may be known in a moment.
func passedOn(ctx context.Context, d *Directory, to approvals.Delegation) (bool, error) {
	for _, user := range to.Via {
		if err := d.Admit(ctx, string(user), ""); err != nil {
			if !errors.Is(err, ErrLookup) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

// Location is the person's time zone. If its name is not known here, it is a fixed
// offset.
func (a Account) Location() *time.Location {
	if l, err := time.LoadLocation(a.Zone); err == nil && a.Zone != "" {
		return l
	}
	return time.FixedZone("", a.Offset)
}
