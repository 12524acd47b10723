package state

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

var _ approvals.SheetStore = (*Store)(nil)

// How long sheets are kept: one that is not submitted, and one that is
// finished. The server removes these; a submitted sheet stays until it is
// finished.
const (
	keepShown    = 24 * time.Hour
	keepFinished = 30 * 24 * time.Hour
)

// Sheet implements [approvals.SheetStore].
func (s *Store) Sheet(ctx context.Context, id approvals.SheetID) (approvals.Sheet, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return approvals.Sheet{}, err
	}
	sheet, version, err := load(ctx, s.conn, p.sheet(string(id)), decodeSheet)
	sheet.Version = version
	return sheet, wrap(err, "load sheet %s", id)
}

// CommitSheet implements [approvals.SheetStore]. From the sheet it derives when
// a worker has to look ([Sheets]) and, once it is finished, that the person is
// to be answered ([Answers]). The seal is stored when a sheet is made and every
// later change is checked against that one.
func (s *Store) CommitSheet(ctx context.Context, c approvals.SheetCommit) error {
	id := string(c.Sheet.ID)
	p, err := s.partitionOf(id)
	if err != nil {
		return err
	}
	if err := c.Sheet.Check(); err != nil {
		return err
	}
	d, err := encodeSheet(c.Sheet)
	if err != nil {
		return fmt.Errorf("encode sheet %s: %w", id, err)
	}
	ch := newChange(p, p.request(id, newRequest(c.Request)), 0)
	k, seal := p.sheet(id), c.Sheet.Seal.String()
	if err := ch.put(k, c.Before.Version, c.Sheet.Version, d, fieldSeal, seal); err != nil {
		return err
	}
	const sealCheck = 2 // put made the first
	if c.Before.Version > 0 {
		ch.wantField(k, fieldSeal, seal)
	}
	w := newDueChanges(s, p, ch)
	putSheet(ch, w, k, c.Before, c.Sheet)
	w.finish()
	failed, err := s.commitBehind(ctx, ch, s.barrier)
	switch {
	case err != nil:
	case failed == sealCheck:
		err = fmt.Errorf("%w: its lines are not those that were shown", approvals.ErrInvalid)
	case failed != 0:
		err = approvals.ErrConflict
	}
	return wrap(err, "commit sheet %s", id)
}

// putSheet adds what a new state of a sheet brings beside its document.
func putSheet(ch *change, w *dueChanges, k hashKey, before, sheet approvals.Sheet) {
	id := string(sheet.ID)
	at, ok := sheet.Due()
	switch {
	case sheet.Status == approvals.SheetShown:
		ch.expire(k, keepShown)
	case ok && before.Status == sheet.Status && before.Summary().Open == sheet.Summary().Open:
		w.later(Sheets, id, at) // a claim is an attempt and not its success
	case ok:
		w.at(Sheets, id, at)
		ch.persist(k)
	default:
		w.done(Sheets, id)
		w.now(Answers, id)
		ch.expire(k, keepFinished)
	}
}

// expire has the server take the key away after d. It is for sheets, ledgers and what stays of removed runs.
func (c *change) expire(k hashKey, d time.Duration) { c.write("PEXPIRE", string(k), d.Milliseconds()) }

func (c *change) persist(k hashKey) { c.write("PERSIST", string(k)) }
