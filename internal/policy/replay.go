package policy

import (
	"context"
	"io"

	"github.com/countersign/countersign/internal/approvals"
)

// A Difference is a recorded call that two policies rule differently.
type Difference struct {
	Line     int // in what was read, from 1
	Call     Recorded
	Old, New approvals.Ruling
	Changes  []string // in words: what, from what, to what
}

// Summary counts what a replay saw.
type Summary struct {
	Calls     int
	Different int
	// By kind of ruling, old then new: Moved["ask"]["allow"] counts the calls
	// that were asked about and now run at once.
	Moved map[Kind]map[Kind]int
}

// Replay judges recorded calls, one [Recorded] as JSON a line, by two policies
// and emits every call that they rule differently: the kind, who signs, how
// many, until when, and the words. Nobody is told of shadow rules. A line that
// is not a recorded call is an error that names the line and ends the replay.
func Replay(ctx context.Context, before, after *Policy, r io.Reader, emit func(Difference)) (Summary, error) {
	return Summary{}, errNotRead
}
