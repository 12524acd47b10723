package approvals

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// A Sheet is a bulk decision as it was shown to one person: a list of calls
// that is frozen when it is made. Submitting it chooses among its lines and
// never adds or changes one, so that a call that arrived later, or whose
// arguments changed, is not decided.
//
// A Sheet is a value. [NewSheet] makes one; [Sheet.Submit], [Sheet.Claim] and
// [Sheet.Record] are the only ways it moves, and none changes its receiver.
// These sentences always hold:
//
//  1. The lines, who it was shown to and the verdict never change: [Sheet.Check]
//     compares them with the seal that was set when it was made.
//  2. It is submitted once, by the person it was shown to, before it expires.
//  3. A risky line is chosen only by its own tick; others always are.
//  4. A line has an outcome only if it was chosen, and it gets it once.
//  5. It is finished exactly when all chosen lines have an outcome.
//  6. The version moves by one with every change.
type Sheet struct {
	ID        SheetID
	By        UserID // the person who sees it, the only one who may submit it
	Verdict   Verdict
	Reason    string // as of the submission, from then on
	Origin    string // where the answer goes; opaque to this package
	CreatedAt time.Time
	ExpiresAt time.Time
	Lines     []Line
	Seal      Digest

	Status      SheetStatus
	Request     RequestID // that submitted it
	SubmittedAt time.Time
	Principal   Principal // as of the submission

	Owner     string // the worker that decides it, see [Sheet.Claim]
	LeaseEnds time.Time
	Version   int64
}

// SheetID names a sheet. It carries its partition, see [NewID].
type SheetID string

// NewSheetID returns the id of a sheet of this person. All sheets of a person
// are in one partition.
func NewSheetID(team string, user UserID, unique string) SheetID {
	return SheetID(NewID("sheet", PartitionOf(team, string(user)), unique))
}

// SheetStatus says how far a sheet is.
type SheetStatus string

// The statuses of a sheet. The empty one is none.
const (
	SheetShown     SheetStatus = "shown"
	SheetSubmitted SheetStatus = "submitted"
	SheetFinished  SheetStatus = "finished"
)

// A Line is one call on a sheet.
type Line struct {
	Batch  BatchID
	Call   ToolCallID
	Digest Digest // of the arguments that were shown
	Tool   string
	Risky  bool // chosen only when ticked by itself

	Chosen  bool
	Outcome LineOutcome
	Why     Why // of a line that was skipped
}

// Line returns the line of a sheet for this approval as it stands.
func (b Batch) Line(a Approval, risky bool) Line {
	return Line{Batch: b.ID, Call: a.Call.ID, Digest: a.Call.Digest, Tool: a.Call.Name, Risky: risky}
}

// LineOutcome is the outcome of a chosen line; empty while it is not known.
type LineOutcome string

// The outcomes. Signed also stands for what the person had said before.
const (
	LineSigned  LineOutcome = "signed"
	LineSkipped LineOutcome = "skipped"
)

const (
	// SheetLife is how long a sheet may be submitted after it was shown.
	SheetLife = 30 * time.Minute
	// MaxLines is how many calls a sheet may list.
	MaxLines = 1000

	maxOrigin = 4 << 10
)

// NewSheet returns the sheet as it is shown at this time, with its seal and
// version 1. Who, verdict, reason, origin and lines are the caller's; what the
// lines say of choices and outcomes is not looked at. It refuses a sheet
// without lines, with a call twice, or with a line that names no arguments.
func NewSheet(s Sheet, at time.Time) (Sheet, error) {
	if err := checkActor(s.By, at); err != nil {
		return Sheet{}, err
	}
	if _, err := Partition(string(s.ID)); err != nil {
		return Sheet{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := checkReason(s.Reason); err != nil {
		return Sheet{}, err
	}
	switch {
	case s.Verdict != Approve && s.Verdict != Deny:
		return Sheet{}, fmt.Errorf("%w: %q is no verdict", ErrInvalid, string(s.Verdict))
	case len(s.Origin) > maxOrigin || !utf8.ValidString(s.Origin):
		return Sheet{}, fmt.Errorf("%w: the origin of a sheet is text of at most %d bytes", ErrInvalid, maxOrigin)
	case len(s.Lines) == 0 || len(s.Lines) > MaxLines:
		return Sheet{}, fmt.Errorf("%w: a sheet of %d lines; it has 1 to %d", ErrInvalid, len(s.Lines), MaxLines)
	}
	type call struct {
		batch BatchID
		id    ToolCallID
	}
	seen := make(map[call]bool, len(s.Lines))
	at = plain(at)
	out := Sheet{
		ID: s.ID, By: s.By, Verdict: s.Verdict, Reason: s.Reason, Origin: s.Origin,
		CreatedAt: at, ExpiresAt: at.Add(SheetLife), Status: SheetShown, Version: 1,
	}
	for i, l := range s.Lines {
		if err := l.check(); err != nil {
			return Sheet{}, fmt.Errorf("line %d: %w", i, err)
		}
		if c := (call{l.Batch, l.Call}); seen[c] {
			return Sheet{}, fmt.Errorf("%w: line %d names a call for the second time", ErrInvalid, i)
		} else {
			seen[c] = true
		}
		out.Lines = append(out.Lines, Line{Batch: l.Batch, Call: l.Call, Digest: l.Digest, Tool: l.Tool, Risky: l.Risky})
	}
	out.Seal = out.seal()
	return out, nil
}

func (l Line) check() error {
	if _, err := Partition(string(l.Batch)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, text := range []string{string(l.Batch), string(l.Call), l.Tool} {
		if text == "" || !utf8.ValidString(text) {
			return fmt.Errorf("%w: %q is no name of a call or tool", ErrInvalid, text)
		}
	}
	if l.Digest.IsZero() {
		return fmt.Errorf("%w: call %q without the digest of what was shown", ErrInvalid, string(l.Call))
	}
	return nil
}

// Check is nil if the sheet is the one that was made. If a line was added,
// removed or changed, the whole sheet is [ErrInvalid].
func (s Sheet) Check() error {
	if s.Seal.IsZero() || s.Seal != s.seal() {
		return fmt.Errorf("%w: sheet %s is not the one that was shown", ErrInvalid, s.ID)
	}
	return nil
}

const sealVersion = "countersign.sheet.v1"

// seal is the digest of everything that is frozen.
func (s Sheet) seal() Digest {
	parts := []string{
		sealVersion, string(s.ID), string(s.By), string(s.Verdict), s.Origin,
		s.CreatedAt.UTC().Format(time.RFC3339Nano), s.ExpiresAt.UTC().Format(time.RFC3339Nano), strconv.Itoa(len(s.Lines)),
	}
	for _, l := range s.Lines {
		parts = append(parts, string(l.Batch), string(l.Call), string(l.Digest[:]), l.Tool, strconv.FormatBool(l.Risky))
	}
	return TupleDigest(parts...)
}

// moved returns s one version on, with lines of its own.
func (s Sheet) moved() Sheet {
	s.Version++
	s.Lines = slices.Clone(s.Lines)
	return s
}
