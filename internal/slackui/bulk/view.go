package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/summary"
)

const (
	// A page of a sheet holds what fits into a modal in the worst case: a call with
	// a box to tick takes as much space as several others.
	sheetRoom     = 30
	sheetRiskRoom = 3

	tickBlock = "tick." // and the line
)

// sheetMemo is what the form of a sheet carries: which sheet, which page, and what
// was ticked on the other pages. It is not trusted: the ticks are checked against
// the sheet.
type sheetMemo struct {
	Sheet approvals.SheetID `json:"s"`
	Page  int               `json:"p,omitempty"`
	Ticks bits              `json:"t,omitempty"`
}

func readSheetMemo(raw string) (sheetMemo, error) {
	var m sheetMemo
	if json.Unmarshal([]byte(raw), &m) != nil {
		return m, ref.ErrPointer
	}
	if _, err := approvals.Partition(string(m.Sheet)); err != nil || len(m.Ticks) > approvals.MaxLines/8+1 {
		return m, ref.ErrPointer
	}
	return m, nil
}

// bits are a set of small numbers.
type bits []byte

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

func (b *bits) set(i int, on bool) {
	for on && i/8 >= len(*b) {
		*b = append(*b, 0)
	}
	switch {
	case on:
		(*b)[i/8] |= 1 << (i % 8)
	case i/8 < len(*b):
		(*b)[i/8] &^= 1 << (i % 8)
	}
}

// list returns the numbers in the set, in their order.
func (b bits) list() []int {
	var all []int
	for i := range len(b) * 8 {
		if b.has(i) {
			all = append(all, i)
		}
	}
	return all
}

// sheetPages says which lines are on which page. That depends on the lines alone.
func sheetPages(lines []approvals.Line) [][2]int {
	var pages [][2]int
	from, room := 0, 0
	for i, l := range lines {
		needs := 1
		if l.Risky {
			needs = sheetRiskRoom
		}
		if room+needs > sheetRoom && i > from {
			pages, from, room = append(pages, [2]int{from, i}), i, 0
		}
		room += needs
	}
	return append(pages, [2]int{from, len(lines)})
}

// A shownLine is a line of a sheet with the call that it shows.
type shownLine struct {
	at    int
	line  approvals.Line
	batch approvals.Batch
	a     approvals.Approval
	call  approvals.ToolCall
	index int // of the call in the batch
	gone  bool
	open  bool // people can still decide it
	known bool // its tool is
}

// shownLines loads the calls of these lines with the arguments that they had when
// the sheet was made, if the person of the sheet may still read them.
func (s *Service) shownLines(ctx context.Context, sheet approvals.Sheet, from, to int) ([]shownLine, error) {
	batches, err := s.batchesOf(ctx, sheet.Lines[from:to])
	if err != nil {
		return nil, err
	}
	return s.readLines(ctx, sheet, from, to, batches)
}

// readLines is shownLines for batches that are loaded.
func (s *Service) readLines(ctx context.Context, sheet approvals.Sheet, from, to int, batches map[approvals.BatchID]approvals.Batch) ([]shownLine, error) {
	batches = maps.Clone(batches)
	readers := map[approvals.BatchID]directory.Reader{}
	for id, b := range batches {
		var err error
		readers[id], err = s.People.MayRead(ctx, directory.Who{User: string(sheet.By)}, b)
		switch {
		case errors.Is(err, directory.ErrMayNotRead):
			delete(batches, id)
		case err != nil:
			return nil, err
		}
	}
	out := make([]shownLine, to-from)
	errs := make([]error, to-from)
	now := s.Cfg.Now()
	s.concurrently(to-from, func(i int) {
		l := sheet.Lines[from+i]
		x := shownLine{at: from + i, line: l, batch: batches[l.Batch]}
		x.index = slices.IndexFunc(x.batch.Approvals, func(a approvals.Approval) bool { return a.Call.ID == l.Call })
		if x.gone = x.index < 0; !x.gone {
			x.a = x.batch.Approvals[x.index]
			x.open = x.a.OpenAt(now)
			_, x.known = directory.SpecOf(s.Cfg.Tools, x.batch, x.a)
			x.call, errs[i] = readers[l.Batch].CallAs(ctx, x.batch, l.Call, l.Digest)
		}
		if errors.Is(errs[i], approvals.ErrStale) || errors.Is(errs[i], approvals.ErrNotFound) {
			x.gone, errs[i] = true, nil
		}
		out[i] = x
	})
	return out, errors.Join(errs...)
}

// batchesOf loads the batches of these lines, each once. It leaves out those that
// are gone.
func (s *Service) batchesOf(ctx context.Context, lines []approvals.Line) (map[approvals.BatchID]approvals.Batch, error) {
	var ids []approvals.BatchID
	for _, l := range lines {
		ids = append(ids, l.Batch)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	batches, errs := make([]approvals.Batch, len(ids)), make([]error, len(ids))
	s.concurrently(len(ids), func(i int) { batches[i], errs[i] = s.Cfg.Desk.Batch(ctx, ids[i]) })
	all := map[approvals.BatchID]approvals.Batch{}
	for i, id := range ids {
		switch {
		case errors.Is(errs[i], approvals.ErrNotFound), errors.Is(errs[i], approvals.ErrUnreadable):
		case errs[i] != nil:
			return nil, errs[i]
		default:
			all[id] = batches[i]
		}
	}
	return all, nil
}

// sheetView draws a page of the sheet as the form in which it is submitted.
// note is shown at the top.
func (s *Service) sheetView(ctx context.Context, sheet approvals.Sheet, memo sheetMemo, note blockkit.Mrkdwn) (slack.ModalViewRequest, error) {
	pages := sheetPages(sheet.Lines)
	memo.Page = min(max(0, memo.Page), len(pages)-1)
	from, to := pages[memo.Page][0], pages[memo.Page][1]
	lines, err := s.shownLines(ctx, sheet, from, to)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	metadata, err := json.Marshal(memo)
	if err != nil {
		return slack.ModalViewRequest{}, fmt.Errorf("write the form: %w", err)
	}
	verb := verbOf(sheet.Verdict)
	back := contextOf(sheet)
	var blocks []slack.Block
	if !note.IsZero() {
		blocks = append(blocks, blockkit.Section(note))
	}
	blocks = append(blocks, blockkit.RichText(sheetHead(sheet, memo, len(pages))...))
	if memo.Page == 0 {
		if left := back.paras(); len(left) > 0 {
			blocks = append(blocks, blockkit.RichText(left...))
		}
		if reviews := back.reviews(); reviews != nil {
			blocks = append(blocks, reviews)
		}
	}
	if input := sheetReason(sheet, back); input != nil {
		blocks = append(blocks, input)
	}
	blocks = append(blocks, lineBlocks(lines, memo.Ticks)...)
	if turn := sheetTurns(memo.Page, len(pages)); turn != nil {
		blocks = append(blocks, turn)
	}
	title := map[approvals.Verdict]string{approvals.Approve: titleApprove, approvals.Deny: titleDeny}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ref.CallbackSheet, PrivateMetadata: string(metadata),
		Title: blockkit.Literal(title[sheet.Verdict]), Submit: blockkit.Literal(submitLabel(verb, chosen(sheet, memo.Ticks))), Close: blockkit.Literal("Cancel"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}, nil
}

func verbOf(v approvals.Verdict) string {
	if v == approvals.Deny {
		return "Deny"
	}
	return "Approve"
}

func submitLabel(verb string, n int) string {
	if n == 0 {
		return verb + selectedCalls
	}
	return verb + " " + blockkit.Count(n, "call")
}

// chosen counts the lines that a submission with these ticks would choose.
func chosen(sheet approvals.Sheet, ticks bits) (n int) {
	for i, l := range sheet.Lines {
		if !l.Risky || ticks.has(i) {
			n++
		}
	}
	return n
}

// sheetHead says what pressing the button means.
func sheetHead(sheet approvals.Sheet, memo sheetMemo, pages int) []blockkit.Para {
	risky, batches := 0, map[approvals.BatchID]bool{}
	for _, l := range sheet.Lines {
		risky += bit(l.Risky)
		batches[l.Batch] = true
	}
	plain := len(sheet.Lines) - risky
	verb := verbOf(sheet.Verdict)
	first := []blockkit.Span{blockkit.Styled(blockkit.Count(len(sheet.Lines), "call")+" of "+blockkit.Count(len(batches), "request"), blockkit.Bold)}
	switch {
	case risky == 0:
		everywhere := ""
		if pages > 1 {
			everywhere = ", on every page"
		}
		first = append(first, blockkit.Say(". "+verb+appliesToAll+everywhere+"."))
	case plain == 0:
		first = append(first, blockkit.Say(selectThose+selectWhy))
	default:
		first = append(first, blockkit.Say(fmt.Sprintf(selectOthers, verb, blockkit.Count(plain, "call"), selectWhy)))
	}
	out := []blockkit.Para{blockkit.Line(first...), blockkit.Line(
		blockkit.Say(listAsOf), blockkit.DateSpan(sheet.CreatedAt),
		blockkit.Say(listUntil), blockkit.DateSpan(sheet.ExpiresAt), blockkit.Say("."))}
	if pages > 1 {
		out = append(out, blockkit.Line(blockkit.Styled(fmt.Sprintf("Page %d of %d.", memo.Page+1, pages), blockkit.Bold), blockkit.Say(turnPages)))
	}
	return out
}

// sheetReason is the field for the reason, where one is needed.
func sheetReason(sheet approvals.Sheet, back sheetContext) *slack.InputBlock {
	var b *slack.InputBlock
	switch {
	case sheet.Verdict == approvals.Deny:
		b = form.ReasonInputBlock(whyNot, whyNotHint, true, false)
	case back.Reason:
		b = form.ReasonInputBlock(whyApprove, whyApproveHint, true, false)
	default:
		return nil
	}
	if input, ok := b.Element.(*slack.PlainTextInputBlockElement); ok {
		input.InitialValue = sheet.Reason
	}
	return b
}

// lineBlocks draws lines under a heading for each tool and agent.
func lineBlocks(lines []shownLine, ticks bits) []slack.Block {
	var blocks []slack.Block
	head := ""
	for _, x := range lines {
		this := fmt.Sprintf("%t %s\n%s", x.line.Risky, x.line.Tool, x.batch.Agent)
		var text []blockkit.Para
		if this != head {
			head = this
			text = append(text, blockkit.Line(blockkit.Styled(blockkit.Brief(x.line.Tool, 60), blockkit.Bold), blockkit.Say(", agent "), blockkit.Styled(blockkit.Brief(x.batch.Agent, 40), blockkit.Bold)))
		}
		blocks = append(blocks, blockkit.RichText(append(text, x.paras()...)...))
		if x.line.Risky {
			blocks = append(blocks, x.box(ticks.has(x.at)))
		}
	}
	return blocks
}

// paras show a call as it is approved: what it does, its severity, and its exact
// arguments.
func (x shownLine) paras() []blockkit.Para {
	id := []blockkit.Span{blockkit.Styled(ref.ShortID(x.line.Digest), blockkit.Code)}
	if x.gone {
		return []blockkit.Para{blockkit.Line(append(id, blockkit.Say(rowGone))...)}
	}
	what := blockkit.Line(blockkit.Styled(x.does(titleOnSheet), blockkit.Bold), blockkit.Say(" · "+card.Rated(x.a.Severity, x.known)))
	id = append(id, blockkit.Say(" requested by "), blockkit.PersonSpan(x.batch.Requester))
	if d := x.a.Requirement.Deadline; !d.IsZero() {
		id = append(id, blockkit.Say(", expires "), blockkit.DateSpan(d))
	}
	if len(x.a.Amendments) > 0 {
		id = append(id, blockkit.Say(", edited by "))
		id = append(id, blockkit.ListSpans(blockkit.PersonSpans(x.a.Editors()), blockkit.NamesShown)...)
	}
	out := append([]blockkit.Para{what, blockkit.Line(id...)}, form.Where(x.a, x.call.Args)...)
	switch {
	case x.a.Call.Digest != x.line.Digest:
		out = append(out, blockkit.Line(blockkit.Styled(rowEdited, blockkit.Bold)))
	case !x.open:
		out = append(out, blockkit.Line(blockkit.Styled(rowSettled, blockkit.Bold)))
	}
	list, whole := card.ArgumentsOnSheet(x.a, x.call)
	if len(list) == 0 {
		out = append(out, blockkit.Line(blockkit.Styled(rowNoArguments, blockkit.Italic)))
	}
	out = append(out, blockkit.BoxParas(list)...)
	if !whole {
		out = append(out, blockkit.Line(blockkit.Styled(rowCut, blockkit.Bold)))
	}
	return out
}

// titleOnSheet is how much of what a call does a sheet shows above its arguments.
const titleOnSheet = 160

// does says what the call does, in at most n characters of foreign text.
func (x shownLine) does(n int) string {
	return blockkit.Brief(summary.Of(x.a.Summary, x.call.Name, x.call.Args, x.a.WriteOnly), n-1)
}

// maxOption is how long Slack lets the label of a box be.
const maxOption = 75

// box is the checkbox that chooses one risky call, with a button that shows all of
// it.
func (x shownLine) box(ticked bool) slack.Block {
	label := "Approve " + ref.ShortID(x.line.Digest)
	if !x.gone {
		label += ": " + x.does(maxOption-len(label)-2)
	}
	option := slack.NewOptionBlockObject(fmt.Sprint(x.at), blockkit.Literal(label), nil)
	check := slack.NewCheckboxGroupsBlockElement(ref.ActionTick.ID(x.at), option)
	if ticked {
		check.InitialOptions = []*slack.OptionBlockObject{option}
	}
	elements := []slack.BlockElement{check}
	value, err := ref.Pointer{Batch: x.line.Batch, Call: x.line.Call, Digest: x.line.Digest}.Encode()
	if err == nil && !x.gone {
		elements = append(elements, blockkit.Button(ref.ActionView.ID(x.at), value, "View full", "View full: "+x.does(blockkit.SpokenRunes)))
	}
	return slack.NewActionBlock(fmt.Sprintf("%s%d", tickBlock, x.at), elements...)
}

func sheetTurns(page, pages int) slack.Block {
	elements := blockkit.Turns(page, pages, "Previous page", "Next page", func(to int, label string) *blockkit.ButtonElement {
		return blockkit.Button(ref.ActionSheetPage.ID(to), fmt.Sprint(to), label, fmt.Sprintf(pageOfList, label, to+1, pages))
	})
	if len(elements) == 0 {
		return nil
	}
	return slack.NewActionBlock("", elements...)
}
