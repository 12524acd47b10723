package slackui

import (
	"context"
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // people's zones, in images that have none

	"github.com/countersign/countersign/internal/approvals"
)

// absencesOf is the memo of all absences: one document, because who stands in
// for whom is a question to all of them.
const absencesOf = "absences"

func (d *directory) absencesKey() string {
	return approvals.NewID(absencesOf, approvals.PartitionOf(d.team), strings.ToLower(d.team))
}

// absences are all that people have said. That they cannot be read is a
// question not answered, like any other about people.
func (d *directory) absences(ctx context.Context) (approvals.Absences, int64, error) {
	raw, version, err := d.memos.Memo(ctx, d.absencesKey(), absencesOf)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, &lookupError{what: absencesOf, err: err}
	}
	as, err := approvals.DecodeAbsences(raw)
	if err != nil {
		return nil, 0, &lookupError{what: absencesOf, err: err}
	}
	return as, version, nil
}

// changeAbsences stores what change makes of the absences, and returns them as
// they were before and are now. change may run more than once.
func (d *directory) changeAbsences(ctx context.Context, change func(approvals.Absences) (approvals.Absences, error)) (before, after approvals.Absences, err error) {
	for range attempts {
		as, version, err := d.absences(ctx)
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
		err = d.memos.CommitMemo(ctx, d.absencesKey(), absencesOf, raw, version, 0)
		if err == nil {
			return as, next, d.memos.Confirm(ctx, d.absencesKey())
		}
		if !errors.Is(err, approvals.ErrConflict) {
			return nil, nil, err
		}
	}
	return nil, nil, approvals.ErrConflict
}

// absentFor are those in whose place the person may sign: those who are away,
// named them, and could sign themselves, as full members in the groups of the
// same rosters or by name.
func (d *directory) absentFor(ctx context.Context, user approvals.UserID, what sought, in rosters) ([]approvals.Absent, error) {
	as, _, err := d.absences(ctx)
	if err != nil {
		return nil, err
	}
	var all []approvals.Absent
	for _, away := range as.StandsFor(user, d.now()) {
		groups, _ := in.with(string(away.User), d.now())
		if len(groups) == 0 && !what.names(away.User) {
			continue // nobody asks them
		}
		member, err := d.admitted(ctx, string(away.User), "", what)
		if errors.Is(err, errLookup) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if !member {
			groups = nil
		}
		all = append(all, approvals.Absent{User: away.User, Groups: groups, Until: away.Until, Via: away.Via})
	}
	return all, nil
}

// zone is the person's own time zone, as far as it is known.
func (a account) zone() *time.Location {
	if l, err := time.LoadLocation(a.Zone); err == nil && a.Zone != "" {
		return l
	}
	return time.FixedZone("", a.Offset)
}
