package approvals_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

const sheetID SheetID = "sheet-03-s"

// sheetOf is a sheet of ann's with a line for each letter; a capital is risky.
func sheetOf(t require.TestingT, letters string) Sheet {
	s := Sheet{ID: sheetID, By: "ann", Verdict: Approve, Origin: "C1/1.2"}
	for i, c := range letters {
		s.Lines = append(s.Lines, Line{
			Batch: BatchID(NewID("batch", i/2, "b")), Call: ToolCallID(c), Digest: Digest{byte(i + 1)}, Tool: "delete_file",
			Risky: c >= 'A' && c <= 'Z',
		})
	}
	s, err := NewSheet(s, opened)
	require.NoError(t, err)
	return s
}

func submission(ticked ...int) Submission {
	return Submission{
		Request: "r", Ticked: ticked, At: opened.Add(time.Minute),
		By: Principal{User: "ann", Groups: []GroupID{"sre"}, GroupsAt: opened},
	}
}

// chosen is the letters of the lines that are chosen.
func chosen(s Sheet) string {
	out := ""
	for _, l := range s.Lines {
		if l.Chosen {
			out += string(l.Call)
		}
	}
	return out
}

func TestASheetIsMadeWhole(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *Sheet){
		"no id":             func(s *Sheet) { s.ID = "" },
		"nobody":            func(s *Sheet) { s.By = "" },
		"no verdict":        func(s *Sheet) { s.Verdict = "" },
		"no lines":          func(s *Sheet) { s.Lines = nil },
		"too many lines":    func(s *Sheet) { s.Lines = make([]Line, MaxLines+1) },
		"a line twice":      func(s *Sheet) { s.Lines[1].Batch, s.Lines[1].Call = s.Lines[0].Batch, s.Lines[0].Call },
		"no batch":          func(s *Sheet) { s.Lines[0].Batch = "" },
		"no call":           func(s *Sheet) { s.Lines[0].Call = "" },
		"nothing was shown": func(s *Sheet) { s.Lines[0].Digest = Digest{} },
		"no text":           func(s *Sheet) { s.Lines[0].Tool = "\xff" },
		"an odd reason":     func(s *Sheet) { s.Reason = "\xff" },
		"an odd origin":     func(s *Sheet) { s.Origin = "\xff" },
	} {
		s := sheetOf(t, "abC")
		spoil(&s)
		_, err := NewSheet(s, opened)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	_, err := NewSheet(sheetOf(t, "a"), time.Time{})
	require.ErrorIs(t, err, ErrInvalid)

	s := sheetOf(t, "ab")
	s.Status, s.Lines[0].Chosen, s.Lines[1].Outcome, s.Principal.User = SheetFinished, true, LineSigned, "ann"
	again, err := NewSheet(s, opened)
	require.NoError(t, err)
	require.Equal(t, sheetOf(t, "ab"), again, "what is not the caller's to say is not taken")
	require.NoError(t, again.Check())
	require.Equal(t, opened.Add(SheetLife), again.ExpiresAt)
}

func TestASubmissionChoosesAmongTheLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		letters string
		ticked  []int
		chosen  string
		err     error
	}{
		"all that is not risky":   {"abCd", nil, "abd", nil},
		"one risky one":           {"abCD", []int{3}, "abD", nil},
		"only risky ones, one":    {"AB", []int{1}, "B", nil},
		"only risky ones, none":   {"AB", nil, "", ErrInvalid},
		"a line that is not here": {"abC", []int{3}, "", ErrInvalid},
		"a line before the first": {"abC", []int{-1}, "", ErrInvalid},
		"one twice":               {"abC", []int{2, 2}, "", ErrInvalid},
		"one that is not to tick": {"abC", []int{0}, "", ErrInvalid},
		"a good and a bad one":    {"aBC", []int{1, 7}, "", ErrInvalid},
	} {
		s := sheetOf(t, c.letters)
		next, err := s.Submit(submission(c.ticked...))
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.chosen, chosen(next), name)
	}
}

func TestASheetIsSubmittedOnceByWhomItWasShownTo(t *testing.T) {
	t.Parallel()
	shown := sheetOf(t, "aB")
	change := func(f func(c *Submission)) Submission {
		c := submission(1)
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		Submission
		err error
	}{
		"somebody else": {change(func(c *Submission) { c.By.User = "bo" }), ErrNotEligible},
		"nobody":        {change(func(c *Submission) { c.By.User = "" }), ErrInvalid},
		"no time":       {change(func(c *Submission) { c.At = time.Time{} }), ErrInvalid},
		"no request":    {change(func(c *Submission) { c.Request = "" }), ErrInvalid},
		"an odd reason": {change(func(c *Submission) { c.Reason = "\xff" }), ErrInvalid},
		"too late":      {change(func(c *Submission) { c.At = shown.ExpiresAt }), ErrExpired},
		"in time":       {change(func(c *Submission) { c.At = shown.ExpiresAt.Add(-1) }), nil},
	} {
		_, err := shown.Submit(c.Submission)
		require.ErrorIs(t, err, c.err, name)
	}
	submitted, err := shown.Submit(change(func(c *Submission) { c.Reason = "tidy" }))
	require.NoError(t, err)
	require.Equal(t, SheetSubmitted, submitted.Status)
	require.Equal(t, "tidy", submitted.Reason)
	require.Equal(t, []GroupID{"sre"}, submitted.Principal.Groups)
	require.EqualValues(t, 2, submitted.Version)
	require.Equal(t, sheetOf(t, "aB"), shown, "the receiver stays as it is")

	again, err := submitted.Submit(change(func(c *Submission) { c.Reason, c.At = "tidy", shown.ExpiresAt.Add(time.Hour) }))
	require.NoError(t, err, "a repetition says it later")
	require.Equal(t, submitted, again)
	for name, other := range map[string]Submission{
		"another request": change(func(c *Submission) { c.Reason, c.Request = "tidy", "r2" }),
		"other ticks":     change(func(c *Submission) { c.Reason, c.Ticked = "tidy", nil }),
		"another reason":  submission(1),
	} {
		_, err = submitted.Submit(other)
		require.ErrorIs(t, err, ErrSettled, name)
	}
}

// One call more, one argument changed, or anything else: the whole sheet is
// refused, whoever wrote it.
func TestAChangedSheetIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *Sheet){
		"one call more": func(s *Sheet) {
			s.Lines = append(s.Lines, Line{Batch: "batch-01-x", Call: "x", Digest: Digest{9}, Tool: "t"})
		},
		"one call less":        func(s *Sheet) { s.Lines = s.Lines[:1] },
		"one argument changed": func(s *Sheet) { s.Lines[0].Digest[31]++ },
		"another call":         func(s *Sheet) { s.Lines[0].Call = "z" },
		"another batch":        func(s *Sheet) { s.Lines[0].Batch = "batch-01-x" },
		"another tool":         func(s *Sheet) { s.Lines[0].Tool = "list_files" },
		"not risky after all":  func(s *Sheet) { s.Lines[1].Risky = false },
		"another order":        func(s *Sheet) { slices.Reverse(s.Lines) },
		"another person":       func(s *Sheet) { s.By = "bo" },
		"another verdict":      func(s *Sheet) { s.Verdict = Deny },
		"another place":        func(s *Sheet) { s.Origin = "C2" },
		"longer life":          func(s *Sheet) { s.ExpiresAt = s.ExpiresAt.Add(time.Hour) },
		"no seal":              func(s *Sheet) { s.Seal = Digest{} },
	} {
		s := sheetOf(t, "aB")
		submitted, err := s.Submit(submission())
		require.NoError(t, err)
		claimed, err := submitted.Claim("w", opened, opened.Add(time.Minute))
		require.NoError(t, err)
		for _, v := range []*Sheet{&s, &submitted, &claimed} {
			v.Lines = slices.Clone(v.Lines)
			change(v)
			require.ErrorIs(t, v.Check(), ErrInvalid, name)
		}
		c := submission()
		c.By.User = s.By
		_, err = s.Submit(c)
		require.ErrorIs(t, err, ErrInvalid, name)
		_, err = submitted.Claim("w", opened, opened.Add(time.Minute))
		require.ErrorIs(t, err, ErrInvalid, name)
		_, err = claimed.Record("w", opened, []LineResult{{0, LineSigned, ""}})
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}

func TestALineGetsOneOutcomeFromWhoeverHoldsTheSheet(t *testing.T) {
	t.Parallel()
	shown := sheetOf(t, "abC")
	at, until := opened.Add(time.Minute), opened.Add(2*time.Minute)
	_, err := shown.Claim("w", at, until)
	require.ErrorIs(t, err, ErrSettled, "nobody has submitted it")
	submitted, err := shown.Submit(submission())
	require.NoError(t, err)
	due, ok := submitted.Due()
	require.True(t, ok)
	require.Equal(t, submitted.SubmittedAt, due)
	_, err = submitted.Record("", until, []LineResult{{0, LineSigned, ""}})
	require.ErrorIs(t, err, ErrConflict, "nobody has claimed it")
	_, err = submitted.Claim("", at, until)
	require.ErrorIs(t, err, ErrInvalid)

	held, err := submitted.Claim("w", at, until)
	require.NoError(t, err)
	due, _ = held.Due()
	require.Equal(t, until, due)
	_, err = held.Claim("v", until.Add(-1), until.Add(time.Minute))
	require.ErrorIs(t, err, ErrConflict)
	_, err = held.Claim("w", until.Add(-1), until.Add(time.Minute))
	require.NoError(t, err, "one's own")
	_, err = held.Claim("v", until, until.Add(time.Minute))
	require.NoError(t, err, "the lease is over")
	_, err = held.Record("v", until, []LineResult{{0, LineSigned, ""}})
	require.ErrorIs(t, err, ErrConflict)

	for name, r := range map[string]LineResult{
		"not a line":          {3, LineSigned, ""},
		"before the first":    {-1, LineSigned, ""},
		"not chosen":          {2, LineSigned, ""},
		"no outcome":          {0, "", ""},
		"signed and why":      {0, LineSigned, WhyStale},
		"skipped and no why":  {0, LineSkipped, ""},
		"another of the same": {1, LineSigned, ""},
	} {
		next, err := held.Record("w", until, []LineResult{{1, LineSigned, ""}, r})
		require.ErrorIs(t, err, ErrInvalid, name)
		require.Equal(t, held, next, name)
	}
	half, err := held.Record("w", until.Add(time.Minute), []LineResult{{1, LineSkipped, WhyStale}})
	require.NoError(t, err)
	require.Equal(t, SheetSubmitted, half.Status)
	_, err = half.Record("w", until, []LineResult{{1, LineSigned, ""}})
	require.ErrorIs(t, err, ErrInvalid, "it has its outcome")
	done, err := half.Record("w", until, []LineResult{{0, LineSigned, ""}})
	require.NoError(t, err)
	require.Equal(t, SheetFinished, done.Status)
	_, ok = done.Due()
	require.False(t, ok)
	require.Equal(t, SheetSummary{Signed: 1, Skipped: []Tally{{WhyStale, 1}}, NotChosen: 1}, done.Summary())
	_, err = done.Record("w", until, []LineResult{{0, LineSigned, ""}})
	require.ErrorIs(t, err, ErrSettled)
	_, err = done.Claim("w", until, until.Add(time.Minute))
	require.ErrorIs(t, err, ErrSettled)
}

// FuzzSheet moves a sheet at random, well and badly, and checks the sentences
// of [Sheet] after each move against what was seen from outside.
func FuzzSheet(f *testing.F) {
	for _, data := range seeds(60) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &byteDice{data}
		letters := "aBcDefGh"[:1+d.roll(8)]
		s := sheetOf(t, letters)
		frozen, now := s, opened
		ticks := map[int]bool{}
		outcomes := map[int]string{}
		for d.more() {
			now = now.Add(time.Duration(d.roll(4)) * 5 * time.Minute)
			was := snapshot(s)
			who := []UserID{"ann", "ann", "ann", "bo"}[d.roll(4)]
			worker := []string{"w", "w", "v", ""}[d.roll(4)]
			var next Sheet
			var err error
			var c Submission
			var results []LineResult
			switch d.roll(4) {
			case 0:
				c = Submission{Request: RequestID([]string{"r", "q"}[d.roll(2)]), By: Principal{User: who}, At: now}
				for range d.roll(3) {
					c.Ticked = append(c.Ticked, d.roll(10)-1)
				}
				next, err = s.Submit(c)
			case 1:
				next, err = s.Claim(worker, now, now.Add(10*time.Minute))
			default:
				for range d.roll(4) {
					r := LineResult{d.roll(10) - 1, []LineOutcome{LineSigned, LineSigned, LineSkipped, ""}[d.roll(4)], ""}
					if r.Outcome == LineSkipped {
						r.Why = []Why{WhyStale, ""}[d.roll(2)]
					}
					results = append(results, r)
				}
				next, err = s.Record(worker, now.Add(10*time.Minute), results)
			}
			require.Equal(t, was, snapshot(s), "a move changed its receiver")
			if err != nil || next.Version == s.Version {
				require.Equal(t, was, snapshot(next), "refused and changed all the same")
				continue
			}
			require.Equal(t, s.Version+1, next.Version)
			switch {
			case c.Request != "":
				require.Equal(t, SheetShown, s.Status, "submitted twice")
				require.Equal(t, frozen.By, who)
				require.True(t, now.Before(frozen.ExpiresAt))
				for _, i := range c.Ticked {
					ticks[i] = true
				}
			case results != nil:
				require.True(t, s.Owner == worker && worker != "")
				for _, r := range results {
					require.Empty(t, outcomes[r.Line], "a second outcome")
					outcomes[r.Line] = string(r.Outcome) + string(r.Why)
				}
			default:
				require.True(t, s.Owner == worker || !now.Before(s.LeaseEnds))
			}
			s = next
			requireSheet(t, frozen, s, ticks, outcomes)
		}
	})
}

// requireSheet checks what can be seen of a sheet that was submitted.
func requireSheet(t *testing.T, frozen, s Sheet, ticks map[int]bool, outcomes map[int]string) {
	t.Helper()
	require.NoError(t, s.Check())
	require.Len(t, s.Lines, len(frozen.Lines))
	open := 0
	for i, l := range s.Lines {
		bare := l
		bare.Chosen, bare.Outcome, bare.Why = false, "", ""
		require.Equal(t, frozen.Lines[i], bare)
		require.Equal(t, !l.Risky || ticks[i], l.Chosen)
		require.Equal(t, outcomes[i], string(l.Outcome)+string(l.Why))
		require.True(t, l.Chosen || l.Outcome == "")
		if l.Chosen && l.Outcome == "" {
			open++
		}
	}
	require.Equal(t, open == 0, s.Status == SheetFinished)
	require.Equal(t, open, s.Summary().Open)
}
