package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Bulk is what sheets need of [approvals.Bulk].
type Bulk interface {
	Show(ctx context.Context, s approvals.Sheet) (approvals.Sheet, error)
	Sheet(ctx context.Context, id approvals.SheetID) (approvals.Sheet, error)
	Submit(ctx context.Context, id approvals.SheetID, r approvals.RequestID, who approvals.Principal, ticked []int, reason string) (approvals.Sheet, error)
}

const (
	sheetLooks = 4000 // batches that are read for one sheet
	sheetLoads = 16   // reads of the store at the same time
)

// A Reason is why a call that the filter found is not on the sheet.
type Reason string

const (
	leftOwn      Reason = "own"      // the person asked for it
	leftEdit     Reason = "edit"     // the person changed it
	leftSpoke    Reason = "words"    // the person wrote to the agent before it made the call
	leftApprover Reason = "approver" // not an approver
	leftDecided  Reason = "decided"  // the person has decided
	leftContrary Reason = "contrary" // the person has decided otherwise
	leftNeed     Reason = "need"     // enough others approved, or others are asked first
	leftRead     Reason = "read"     // the arguments cannot be read
	leftGone     Reason = "gone"     // Slack does not know one of its groups
	leftChanged  Reason = "changed"  // its arguments are not those that were drawn
	leftSettled  Reason = "settled"
	leftCut      Reason = "cut"   // a list does not show it whole
	leftDoubt    Reason = "doubt" // people are asked whether it took effect
	leftOther    Reason = "other"
)

// leftOver counts the calls that one reason keeps off a sheet.
type leftOver struct {
	Why   Reason         `json:"w"`
	Calls int            `json:"n"`
	Tools []leftTool     `json:"t,omitempty"`
	IDs   []string       `json:"i,omitempty"`
	Cards []leftCard     `json:"k,omitempty"` // of what is approved on a card only, the first
	by    map[string]int // calls by tool
}

type leftTool struct {
	Name  string `json:"n"`
	Calls int    `json:"c"`
}

const (
	leftTools = 3
	leftIDs   = 4
	leftCards = 5
)

// sheetContext is what is stored with a sheet of how it was made. It is part of what
// the seal of the sheet covers.
type sheetContext struct {
	Left   []leftOver `json:"left,omitempty"`
	More   bool       `json:"more,omitempty"`   // there are more calls than fit, or than were read
	Unsure bool       `json:"unsure,omitempty"` // Slack did not say of every group who is in it
	Reason bool       `json:"reason,omitempty"` // an approval must say why
	Whole  bool       `json:"whole,omitempty"`  // it shows every call whole that it lists for approval
}

// A SheetOrder is what a person wants a sheet of.
type SheetOrder struct {
	User, Team string
	Channel    string // where the person asked; they may see what is shown there
	Verdict    approvals.Verdict
	Reason     string
	Filter     ref.Filter
	Unique     string // the same for a repeated delivery of the same order
}

// A draft is a sheet before it is shown.
type draft struct {
	lines []approvals.Line
	left  map[Reason]*leftOver
	sheetContext
}

// found is a call that matches the filter.
type found struct {
	batch approvals.Batch
	index int // of the call in the batch
	a     approvals.Approval
	risky bool
	why   Reason // not empty: it is left out
}

// draft collects the calls that match the filter and that the person may see, and
// decides which of them go on the sheet. It is an error if that cannot be known. The
// person is looked up as for an approval.
func (s *Service) draft(ctx context.Context, o SheetOrder) (draft, error) {
	var d draft
	batches, err := s.meant(ctx, &o, &d)
	if err != nil {
		return d, err
	}
	p, gone, err := s.People.Resolve(ctx, o.User, o.Team, directory.SoughtFor(batches...))
	if err != nil {
		return d, err
	}
	who := directory.Viewer{Principal: p}
	now := s.Cfg.Now()
	var all []found
	named := map[string]int{}
	for _, b := range batches {
		for i, a := range b.Approvals {
			seen := who.Sees(b, a, o.Channel, now) || who.MayDecide(b, a, o.Verdict, now) == nil
			moved := movedSince(o.Filter, a, now)
			if !seen || (!a.OpenAt(now) && moved == "") || !o.Filter.Matches(b, a, now) {
				continue
			}
			for _, id := range o.Filter.IDs {
				if strings.HasPrefix(a.Call.Digest.String(), id) {
					named[id]++
				}
			}
			all = append(all, found{batch: b, index: i, a: a, why: cmp.Or(moved, leavesOut(who, b, a, o.Verdict, gone, now))})
		}
	}
	for _, id := range o.Filter.IDs {
		if named[id] > 1 {
			return d, &wordError{blockkit.MessageOf(blockkit.Ours(idTooShort, blockkit.CodeWord(id), blockkit.Counted(named[id], "call")))}
		}
	}
	if all, err = s.judged(ctx, o, all); err != nil {
		return d, err
	}
	d.take(all, o.Verdict)
	return d, nil
}

// judged reads the arguments of the calls. A call that a list does not show whole
// is left out of a sheet for approval.
func (s *Service) judged(ctx context.Context, o SheetOrder, all []found) ([]found, error) {
	calls := make([]approvals.ToolCall, len(all))
	errs := make([]error, len(all))
	s.concurrently(len(all), func(i int) {
		if all[i].why != "" {
			return
		}
		var reader directory.Reader
		if reader, errs[i] = s.People.MayRead(ctx, directory.Who{User: o.User, Team: o.Team}, all[i].batch); errs[i] == nil {
			calls[i], errs[i] = reader.Call(ctx, all[i].batch, all[i].a.Call.ID)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []found
	for i, f := range all {
		switch {
		case f.why != "":
		case errs[i] != nil:
			f.why = leftRead
		case o.Verdict == approvals.Approve:
			if _, whole := card.ArgumentsOnSheet(f.a, calls[i]); !whole {
				f.why = leftCut
			}
			f.risky = s.risky(f)
		}
		out = append(out, f)
	}
	return out, nil
}

// concurrently runs f for 0 to n-1, some at the same time.
func (s *Service) concurrently(n int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, sheetLoads)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// risky reports whether the call is approved only if it is ticked by itself: if it
// cannot be undone, may do harm or has an unknown tool, if someone edited it, or if
// it has values that nobody may read.
func (s *Service) risky(f found) bool {
	spec, known := directory.SpecOf(s.Cfg.Tools, f.batch, f.a)
	return !known || card.Irreversible(f.a.Severity) || card.Destructive(spec.Annotations) || len(spec.WriteOnly) > 0 || len(f.a.Amendments) > 0 || len(f.a.WriteOnly) > 0
}

// take puts the calls on the sheet in the order in which people read them: by tool
// and agent, the oldest first, and those that must be ticked after all others.
func (d *draft) take(all []found, v approvals.Verdict) {
	d.left, d.Whole = map[Reason]*leftOver{}, v == approvals.Approve
	slices.SortStableFunc(all, func(x, y found) int {
		return cmp.Or(bit(x.risky)-bit(y.risky), cmp.Compare(x.a.Call.Name, y.a.Call.Name), cmp.Compare(x.batch.Agent, y.batch.Agent))
	})
	for _, f := range all {
		switch {
		case f.why != "":
			d.leave(f)
		case len(d.lines) == approvals.MaxLines:
			d.More = true
		default:
			d.lines = append(d.lines, f.batch.Line(f.a, f.risky))
			d.Reason = d.Reason || v == approvals.Approve && f.a.Requirement.ReasonNeeded
		}
	}
	for _, l := range d.left {
		for name, n := range l.by {
			l.Tools = append(l.Tools, leftTool{blockkit.Brief(name, 40), n})
		}
		slices.SortFunc(l.Tools, func(x, y leftTool) int { return cmp.Or(y.Calls-x.Calls, cmp.Compare(x.Name, y.Name)) })
		l.Tools = l.Tools[:min(len(l.Tools), leftTools)]
		d.Left = append(d.Left, *l)
	}
	slices.SortFunc(d.Left, func(x, y leftOver) int { return cmp.Or(y.Calls-x.Calls, cmp.Compare(x.Why, y.Why)) })
}

func (d *draft) leave(f found) {
	l := d.left[f.why]
	if l == nil {
		l = &leftOver{Why: f.why, by: map[string]int{}}
		d.left[f.why] = l
	}
	l.Calls++
	l.by[f.a.Call.Name]++
	if len(l.IDs) < leftIDs {
		l.IDs = append(l.IDs, ref.ShortID(f.a.Call.Digest))
	}
	card := leftCard{ID: ref.ShortID(f.a.Call.Digest), At: ref.Card{Batch: f.batch.ID, Part: f.index / card.CallsPerCard}.String()}
	if f.why == leftCut && len(l.Cards) < leftCards && !slices.ContainsFunc(l.Cards, func(c leftCard) bool { return c.At == card.At }) {
		l.Cards = append(l.Cards, card)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sheet returns the draft as it is stored when it is shown.
func (d draft) sheet(team string, o SheetOrder) (approvals.Sheet, error) {
	back, err := json.Marshal(d.sheetContext)
	if err != nil {
		return approvals.Sheet{}, fmt.Errorf("write what is left out: %w", err)
	}
	user := approvals.UserID(o.User)
	return approvals.Sheet{
		ID: approvals.NewSheetID(team, user, o.Unique), By: user, Verdict: o.Verdict, Reason: o.Reason,
		Origin: string(back), Lines: d.lines,
	}, nil
}

func contextOf(sheet approvals.Sheet) sheetContext {
	var b sheetContext
	_ = json.Unmarshal([]byte(sheet.Origin), &b) // fields that are missing are not shown
	return b
}

// paras say what is not on the sheet, and why.
func (b sheetContext) paras() []blockkit.Para {
	var out []blockkit.Para
	for _, l := range b.Left {
		words := leftWords[l.Why]
		if words == "" {
			words = leftWords[leftOther]
		}
		spans := []blockkit.Span{blockkit.Styled("Left out: "+blockkit.Count(l.Calls, "call"), blockkit.Bold), blockkit.Say(" " + words + " (")}
		for i, t := range l.Tools {
			if i > 0 {
				spans = append(spans, blockkit.Say(", "))
			}
			spans = append(spans, blockkit.Styled(times(t.Name, t.Calls), blockkit.Code))
		}
		for i, id := range l.IDs {
			sep := " "
			if i == 0 {
				sep = ": "
			}
			spans = append(spans, blockkit.Say(sep), blockkit.Styled(id, blockkit.Code))
		}
		if l.Calls > len(l.IDs) {
			spans = append(spans, blockkit.Say(" and "+blockkit.Number(l.Calls-len(l.IDs))+" more"))
		}
		out = append(out, blockkit.Line(append(spans, blockkit.Say(")."))...))
	}
	if b.More {
		out = append(out, blockkit.Line(blockkit.Styled(moreThanFit, blockkit.Bold), blockkit.Say(narrowFilter)))
	}
	if b.Unsure {
		out = append(out, blockkit.Line(blockkit.Say(unsureGroups)))
	}
	return out
}

// times names a tool and how many calls it has.
func times(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + " ×" + blockkit.Number(n)
}
