package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// SheetStore is what a [Bulk] needs besides its desk. The `state` package has
// the one implementation.
type SheetStore interface {
	// Sheet returns the sheet as stored, or [ErrNotFound].
	Sheet(ctx context.Context, id SheetID) (Sheet, error)
	// CommitSheet stores the sheet if the stored version is still that of
	// Before, the zero Sheet for a new one; otherwise [ErrConflict]. A sheet
	// whose seal is not the stored one is [ErrInvalid]. A repeated Request is
	// answered like the first and changes nothing.
	CommitSheet(ctx context.Context, c SheetCommit) error
	// Confirm is that of [Store].
	Confirm(ctx context.Context, id string) error
}

// A SheetCommit is one change of one sheet.
type SheetCommit struct {
	Request RequestID
	Before  Sheet
	Sheet   Sheet
}

// Bulk is the service at which sheets are shown, submitted and decided. It
// holds no state of its own; any number of them may work on one store.
//
// Every decision of a submitted sheet carries the time SubmittedAt and the
// groups of that moment, however much later it is written, and deadlines are
// compared with that time. A call whose expiry was committed in between is
// skipped: a settled call never changes.
type Bulk struct {
	desk  *Desk
	store SheetStore
	owner string
	now   func() time.Time
}

// NewBulk returns a Bulk. The owner is a random name of this process, under
// which it claims the sheets it works on.
func NewBulk(desk *Desk, store SheetStore, owner string, now func() time.Time) *Bulk {
	return &Bulk{desk: desk, store: store, owner: owner, now: now}
}

const (
	bulkWorkers = 8                // batches that one sheet decides at the same time
	bulkChunk   = 64               // batches between two commits of a sheet
	bulkLease   = 15 * time.Second // for one chunk

	// bulkEnds is how long after its submission a sheet still decides: as long
	// as the requests of its decisions are known, see bulkKept.
	bulkEnds = bulkKept - time.Hour
)

// Show stores the sheet as it is shown now and returns it: see [NewSheet]. A
// sheet that is already there under its id is [ErrConflict].
func (k *Bulk) Show(ctx context.Context, s Sheet) (Sheet, error) {
	s, err := NewSheet(s, k.now())
	if err != nil {
		return Sheet{}, err
	}
	err = k.store.CommitSheet(ctx, SheetCommit{Request: RequestID("show-" + s.Seal.String()), Sheet: s})
	if err != nil {
		return Sheet{}, err
	}
	return s, nil
}

// Sheet returns the sheet as it stands, if it is the one that was shown.
func (k *Bulk) Sheet(ctx context.Context, id SheetID) (Sheet, error) {
	s, err := k.store.Sheet(ctx, id)
	if err != nil {
		return Sheet{}, err
	}
	return s, s.Check()
}

// Submit commits the submission in one commit and returns the sheet after it;
// the caller may acknowledge the submission then. See [Sheet.Submit] for what
// is refused. What it decides is done by [Bulk.Work].
func (k *Bulk) Submit(ctx context.Context, id SheetID, r RequestID, who Principal, ticked []int, reason string) (Sheet, error) {
	c := Submission{Request: r, By: who, Ticked: ticked, Reason: reason, At: k.now()}
	confirmed := false
	for range maxTries {
		s, err := k.Sheet(ctx, id)
		if err != nil {
			return Sheet{}, err
		}
		next, err := s.Submit(c)
		switch {
		case err == nil && next.Version != s.Version:
			err = k.commit(ctx, c.request(), s, next)
			if err == nil {
				return next, nil
			}
			if !errors.Is(err, ErrConflict) {
				return Sheet{}, err
			}
		case confirmed:
			return next, err
		default:
			// It was submitted before, or it is refused because of that. The server that
			// confirms may lack what was read, so it is read again.
			if err := k.store.Confirm(ctx, string(id)); err != nil {
				return next, err
			}
			confirmed = true
		}
	}
	return Sheet{}, fmt.Errorf("submit sheet %s: %w", id, ErrConflict)
}

// Work decides what is chosen on a submitted sheet: one commit a batch, several
// batches at a time, and the outcomes on the sheet in a few more. It is what
// the due index calls. It may be ended and called again at any line, here or
// elsewhere: nothing is decided twice, and nothing that is not chosen.
//
// A batch that is gone or unreadable is skipped. Any other error of the store
// leaves its lines open and is returned, once the other outcomes are recorded.
// A sheet that another worker holds, or that is not to be worked on, is left
// alone, without an error.
func (k *Bulk) Work(ctx context.Context, id SheetID) error {
	s, err := k.Sheet(ctx, id)
	if err != nil {
		return err
	}
	now := k.now()
	next, err := s.Claim(k.owner, now, now.Add(bulkLease))
	if errors.Is(err, ErrSettled) || errors.Is(err, ErrConflict) {
		return nil
	}
	if err == nil {
		err = k.commit(ctx, k.request("claim", s), s, next)
	}
	if err != nil {
		return quiet(err)
	}
	s = next
	var first error
	for chunk := range slices.Chunk(s.todo(), bulkChunk) {
		results, failed := k.decide(ctx, s, chunk)
		if first == nil {
			first = failed
		}
		if len(results) == 0 {
			break // the store does not work at all
		}
		next, err := s.Record(k.owner, k.now().Add(bulkLease), results)
		if err == nil {
			err = k.commit(ctx, k.request("record", s), s, next)
		}
		if err != nil {
			return errors.Join(quiet(err), first)
		}
		s = next
	}
	return first
}

// quiet returns nil for the error of having lost the sheet to another worker.
func quiet(err error) error {
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// request names a change of a sheet: each worker makes at most one per version.
func (k *Bulk) request(what string, s Sheet) RequestID {
	return RequestID(fmt.Sprintf("%s-%s-%d", what, k.owner, s.Version))
}

func (k *Bulk) commit(ctx context.Context, r RequestID, before, after Sheet) error {
	return k.store.CommitSheet(ctx, SheetCommit{Request: r, Before: before, Sheet: after})
}

// A portion is what a sheet decides in one batch: the places of all its chosen
// lines there, so that the request is the same whenever it is made.
type portion struct {
	batch BatchID
	lines []int
}

// todo returns the portions that have no outcome, in the order of the sheet.
// The outcomes of a portion are recorded together.
func (s Sheet) todo() []portion {
	var out []portion
	at := make(map[BatchID]int)
	for i, l := range s.Lines {
		if !l.Chosen || l.Outcome != "" {
			continue
		}
		n, ok := at[l.Batch]
		if !ok {
			n = len(out)
			at[l.Batch] = n
			out = append(out, portion{batch: l.Batch})
		}
		out[n].lines = append(out[n].lines, i)
	}
	return out
}

// decide decides several portions and returns the outcomes of those that have
// one, and the first error of the others.
func (k *Bulk) decide(ctx context.Context, s Sheet, portions []portion) ([]LineResult, error) {
	results, errs := make([][]LineResult, len(portions)), make([]error, len(portions))
	var wg sync.WaitGroup
	free := make(chan struct{}, bulkWorkers)
	for i, p := range portions {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			results[i], errs[i] = k.decidePortion(ctx, s, p)
		})
	}
	wg.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return slices.Concat(results...), nil
	}
	return slices.Concat(results...), errs[i]
}

func (k *Bulk) decidePortion(ctx context.Context, s Sheet, p portion) ([]LineResult, error) {
	cmds := make([]Decide, len(p.lines))
	for i, n := range p.lines {
		l := s.Lines[n]
		cmds[i] = Decide{Decision{
			Call: l.Call, By: s.Principal, Verdict: s.Verdict, Digest: l.Digest, Reason: s.Reason, At: s.SubmittedAt,
		}}
	}
	skipped, err := k.decideAll(ctx, s, p, cmds)
	switch {
	case errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreadable):
		skipped = nil
		for _, cmd := range cmds {
			skipped = append(skipped, Skipped{cmd.Call, err})
		}
	case err != nil:
		return nil, fmt.Errorf("decide %d calls of %s: %w", len(cmds), p.batch, err)
	}
	out := make([]LineResult, len(p.lines))
	for i, n := range p.lines {
		out[i] = LineResult{Line: n, Outcome: LineSigned}
		if j := slices.IndexFunc(skipped, func(s Skipped) bool { return s.Call == cmds[i].Call }); j >= 0 {
			out[i].Outcome, out[i].Why = LineSkipped, whyOf(skipped[j].Err)
		}
	}
	return out, nil
}

// errTooLate is the error of a sheet that could not be decided for a day.
var errTooLate = errors.New("too late")

// decideAll decides, or only looks at what was decided when it is so late that
// an earlier request would no longer be known.
func (k *Bulk) decideAll(ctx context.Context, s Sheet, p portion, cmds []Decide) ([]Skipped, error) {
	if k.now().Before(s.SubmittedAt.Add(bulkEnds)) {
		r := RequestID("sheet-" + string(s.ID) + "-" + string(p.batch))
		_, skipped, err := k.desk.DecideAll(ctx, p.batch, r, cmds)
		return skipped, err
	}
	b, err := k.desk.commits.load(ctx, p.batch)
	if err == nil {
		b, err = k.desk.commits.confirmed(ctx, b)
	}
	var skipped []Skipped
	for _, cmd := range cmds {
		if !b.Has(cmd.Decision) {
			skipped = append(skipped, Skipped{cmd.Call, errTooLate})
		}
	}
	return skipped, err
}
