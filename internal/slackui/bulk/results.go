package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/summary"
	"github.com/slack-go/slack"
)

// Answers tells people what became of the sheets that they submitted: one
// direct message for each. It keeps no state of its own; the memo beside the sheet
// says whether the message was sent.
type Answers struct {
	Sheets  *Service
	Results *Results
	Memos   memo.Store
	Now     func() time.Time
	Log     *slog.Logger
}

// answeredSheet is the memo of the answer to a sheet.
type answeredSheet struct {
	Told bool `json:"told,omitempty"`
	// Parked is whether the person was told that the work on it was given up.
	Parked bool `json:"parked,omitempty"`
}

func (a *Answers) notes() memo.Notes[answeredSheet] {
	return memo.Notes[answeredSheet]{Memos: a.Memos, Surface: "answers", Now: a.Now}
}

// Reconcile answers a finished sheet, once. The due index calls it. A
// [*slackapi.LaterError] says when to try again; any other error is a failure.
func (a *Answers) Reconcile(ctx context.Context, id string) error {
	return a.notes().Reconcile(ctx, id, func(ctx context.Context, h *memo.Claim[answeredSheet]) (int64, error) {
		return a.answer(ctx, h, approvals.SheetID(id))
	})
}

func (a *Answers) answer(ctx context.Context, h *memo.Claim[answeredSheet], id approvals.SheetID) (int64, error) {
	sheet, err := a.Sheets.Cfg.Bulk.Sheet(ctx, id)
	if err != nil {
		return 0, err
	}
	if sheet.Status != approvals.SheetFinished || h.Body.Told {
		return sheet.Version, nil
	}
	m, err := a.Results.outcome(ctx, sheet)
	if err != nil {
		return 0, err
	}
	err = a.Sheets.API.Direct(ctx, string(sheet.By), m)
	if slackapi.HasCode(err, slackapi.Unreachable...) {
		a.Log.WarnContext(ctx, "person takes no direct messages", slog.String("sheet", string(id)), slog.String("user", string(sheet.By)), slog.Any("err", err))
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("answer sheet %s: %w", id, err)
	}
	return sheet.Version, h.Save(ctx, func(x *answeredSheet) { x.Told = true })
}

// Parked tells the person that the work on their sheet was given up.
func (a *Answers) Parked(ctx context.Context, id string) error {
	return a.notes().Reconcile(ctx, id, func(ctx context.Context, h *memo.Claim[answeredSheet]) (int64, error) {
		return 0, a.parked(ctx, h, approvals.SheetID(id))
	})
}

func (a *Answers) parked(ctx context.Context, h *memo.Claim[answeredSheet], id approvals.SheetID) error {
	sheet, err := a.Sheets.Cfg.Bulk.Sheet(ctx, id)
	if err != nil || h.Body.Parked || sheet.Status != approvals.SheetSubmitted {
		return err
	}
	sum := sheet.Summary()
	words := blockkit.Ours(notFinished,
		blockkit.Counted(len(sheet.Lines), "call"), wereOf(sum.Signed), wereOf(sum.Open))
	if err := a.Sheets.API.Direct(ctx, string(sheet.By), blockkit.MessageOf(words)); err != nil {
		return err
	}
	return h.Save(ctx, func(x *answeredSheet) { x.Parked = true })
}

func wereOf(n int) blockkit.Mrkdwn {
	if n == 1 {
		return blockkit.Ours("1 call is")
	}
	return blockkit.Ours("%s calls are", blockkit.Num(n))
}

const (
	resultRows   = 40 // lines of a page
	answerTools  = 8
	answerPlaces = 5
	answerNamed  = 3 // lines of an outcome that say what a call does
)

// skippedWords say how many calls were skipped, and why.
func skippedWords(t approvals.Tally) string {
	why := t.Why
	if _, known := whyWords[why]; !known {
		why = approvals.WhyOther
	}
	if t.Lines == 1 {
		return "Skipped, 1 call: " + lineWhy[why]
	}
	return "Skipped, " + blockkit.Count(t.Lines, "call") + " that " + whyWords[why]
}

// outcome returns the answer to a finished sheet.
func (s *Results) outcome(ctx context.Context, sheet approvals.Sheet) (blockkit.Message, error) {
	sum := sheet.Summary()
	past := "Approved"
	if sheet.Verdict == approvals.Deny {
		past = "Denied"
	}
	batches, err := s.Sheets.batchesOf(ctx, sheet.Lines)
	if err != nil {
		return blockkit.Message{}, err
	}
	decided := func(l approvals.Line) bool { return l.Outcome == approvals.LineSigned }
	text := past + " " + blockkit.Count(sum.Signed, "call") + "."
	spans := []blockkit.Span{blockkit.Styled(text, blockkit.Bold)}
	if does := s.does(ctx, sheet, batches, decided); len(does) > 0 {
		text = past + " " + blockkit.Count(sum.Signed, "call") + ": " + strings.Join(does, "; ") + "."
	}
	skipped := 0
	for _, t := range sum.Skipped {
		skipped += t.Lines
	}
	for _, t := range sum.Skipped {
		text += " " + skippedWords(t) + "."
	}
	if skipped > 0 {
		spans = append(spans, blockkit.Say(" "+blockkit.Number(skipped)+" skipped."))
	}
	if sum.NotChosen > 0 {
		spans = append(spans, blockkit.Say(" "+blockkit.Number(sum.NotChosen)+notSelectedCount))
	}
	paras := []blockkit.Para{blockkit.Line(append(spans, blockkit.Say(sentAt), blockkit.DateSpan(sheet.SubmittedAt), blockkit.Say("."))...)}
	if sum.Signed > 0 {
		paras = append(paras, s.group(ctx, past+": ", sheet, batches, decided))
	}
	for _, t := range sum.Skipped {
		paras = append(paras, s.group(ctx, skippedWords(t)+": ", sheet, batches, func(l approvals.Line) bool { return l.Why == t.Why }))
	}
	m := blockkit.Message{Text: blockkit.Escape(text), Blocks: []slack.Block{blockkit.RichText(paras...)}}
	button := blockkit.Button(ref.ActionResult.ID(0), string(sheet.ID), wholeList, wholeListSpoken)
	m.Blocks = append(m.Blocks, slack.NewActionBlock("", button))
	return m, nil
}

// does says what the calls of some lines do, if they are few enough.
func (s *Results) does(ctx context.Context, sheet approvals.Sheet, batches map[approvals.BatchID]approvals.Batch, of func(approvals.Line) bool) []string {
	var rows []*card.OpenCalls
	for _, l := range sheet.Lines {
		if !of(l) {
			continue
		}
		b := batches[l.Batch]
		i := slices.IndexFunc(b.Approvals, func(a approvals.Approval) bool { return a.Call.ID == l.Call && a.Call.Digest == l.Digest })
		if i < 0 || len(rows) == answerNamed {
			return nil // the list showed other arguments, or there are too many lines
		}
		rows = append(rows, &card.OpenCalls{Batch: b, Calls: []int{i}})
	}
	s.Sheets.People.Summarize(ctx, directory.Who{User: string(sheet.By)}, rows)
	does := make([]string, len(rows))
	for i, row := range rows {
		does[i] = row.Title(titleOnSheet)
	}
	return does
}

// group names some lines, or their tools if they are many, and links to the
// first cards.
func (s *Results) group(ctx context.Context, head string, sheet approvals.Sheet, batches map[approvals.BatchID]approvals.Batch, of func(approvals.Line) bool) blockkit.Para {
	var tools []string
	n, links := map[string]int{}, []blockkit.Span{}
	at := map[string]bool{}
	for _, l := range sheet.Lines {
		if !of(l) {
			continue
		}
		if n[l.Tool]++; n[l.Tool] == 1 {
			tools = append(tools, l.Tool)
		}
		if len(links) >= answerPlaces {
			continue
		}
		if link := s.lineLink(ctx, l, batches[l.Batch], ""); link != "" && !at[link] {
			at[link] = true
			links = append(links, slack.NewRichTextSectionLinkElement(link, ref.ShortID(l.Digest), nil))
		}
	}
	var named []blockkit.Span
	for _, d := range s.does(ctx, sheet, batches, of) {
		named = append(named, blockkit.Styled(d, blockkit.Bold))
	}
	if len(named) > 0 {
		tools = nil
	}
	for _, t := range tools {
		named = append(named, blockkit.Styled(times(blockkit.Brief(t, 60), n[t]), blockkit.Code))
	}
	spans := append([]blockkit.Span{blockkit.Styled(head, blockkit.Bold)}, blockkit.ListSpans(named, answerTools)...)
	if len(links) > 0 {
		spans = append(spans, blockkit.Say(". Cards: "))
		spans = append(spans, blockkit.ListSpans(links, answerPlaces)...)
	}
	return blockkit.Line(append(spans, blockkit.Say("."))...)
}

func (s *Results) lineLink(ctx context.Context, l approvals.Line, b approvals.Batch, person approvals.UserID) string {
	for i, a := range b.Approvals {
		if a.Call.ID == l.Call {
			return s.Placements.Link(ctx, b, i, person)
		}
	}
	return ""
}

// result returns the whole list with what became of each call, for the person who
// submitted it.
func (s *Results) result(ctx context.Context, p inbound.Interaction, value string, page int) (slack.ModalViewRequest, error) {
	if _, err := approvals.Partition(value); err != nil || s.Cfg.Bulk == nil {
		return slack.ModalViewRequest{}, ref.ErrPointer
	}
	sheet, err := s.Cfg.Bulk.Sheet(ctx, approvals.SheetID(value))
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		return blockkit.Notice(blockkit.Ours(resultNotStored)), nil
	case err != nil:
		return slack.ModalViewRequest{}, err
	case string(sheet.By) != p.User:
		return blockkit.Notice(blockkit.Ours(notYoursToRead)), nil
	}
	return s.resultView(ctx, sheet, page)
}

// OpenResult opens what became of a sheet.
func (s *Results) OpenResult(ctx context.Context, p inbound.Interaction, value string) error {
	view, err := s.result(ctx, p, value, 0)
	if err != nil {
		return err
	}
	if _, err := s.API.ShowView(ctx, p.Trigger.ID, "", view); err != nil {
		return fmt.Errorf("%w: %w", respond.ErrForm, err)
	}
	return nil
}

// TurnResult shows another page of what became of a sheet.
func (s *Results) TurnResult(ctx context.Context, p inbound.Interaction, value string) error {
	var at resultPage
	if len(value) > ref.MaxPointer || json.Unmarshal([]byte(value), &at) != nil {
		return ref.ErrPointer
	}
	view, err := s.result(ctx, p, string(at.Sheet), at.Page)
	if err != nil {
		return err
	}
	return slackapi.Turned(s.API.UpdateView(ctx, p.View.ID, p.View.Hash, view))
}

type resultPage struct {
	Sheet approvals.SheetID `json:"s"`
	Page  int               `json:"p"`
}

func (s *Results) resultView(ctx context.Context, sheet approvals.Sheet, page int) (slack.ModalViewRequest, error) {
	pages := (len(sheet.Lines) + resultRows - 1) / resultRows
	page = min(max(0, page), pages-1)
	lines := sheet.Lines[page*resultRows : min((page+1)*resultRows, len(sheet.Lines))]
	batches, err := s.Sheets.batchesOf(ctx, lines)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	shown, err := s.Sheets.readLines(ctx, sheet, page*resultRows, page*resultRows+len(lines), batches)
	if err != nil { // the list still says what became of the calls
		s.Cfg.Log.WarnContext(ctx, "calls of a list cannot be read", slog.String("sheet", string(sheet.ID)), slog.Any("err", err))
		shown = make([]shownLine, len(lines))
	}
	links := make([]string, len(lines))
	s.Sheets.concurrently(len(lines), func(i int) { links[i] = s.lineLink(ctx, lines[i], batches[lines[i].Batch], sheet.By) })
	head := []blockkit.Span{blockkit.Styled(blockkit.Count(len(sheet.Lines), "call")+", sent ", blockkit.Bold), blockkit.DateSpan(sheet.SubmittedAt)}
	if pages > 1 {
		head = append(head, blockkit.Say(fmt.Sprintf(". Page %d of %d.", page+1, pages)))
	}
	blocks := []slack.Block{blockkit.RichText(blockkit.Line(head...))}
	for i, l := range lines {
		title := blockkit.Brief(summary.Words(l.Tool), titleOnSheet)
		if shown[i].call.Name != "" {
			title = shown[i].does(titleOnSheet)
		}
		spans := []blockkit.Span{blockkit.Styled(ref.ShortID(l.Digest), blockkit.Code), blockkit.Say(" "), blockkit.Styled(title, blockkit.Bold), blockkit.Say(": " + became(sheet, l))}
		if links[i] != "" {
			spans = append(spans, blockkit.Say(". "), slack.NewRichTextSectionLinkElement(links[i], "Open the card", nil))
		}
		blocks = append(blocks, blockkit.RichText(blockkit.Line(spans...)))
	}
	var turn []slack.BlockElement
	for _, to := range []struct {
		page  int
		label string
	}{{page - 1, "Previous page"}, {page + 1, "Next page"}} {
		value, err := json.Marshal(resultPage{sheet.ID, to.page})
		if err == nil && to.page >= 0 && to.page < pages {
			turn = append(turn, blockkit.Button(ref.ActionResultPage.ID(to.page), string(value), to.label,
				fmt.Sprintf(pageOfResult, to.label, to.page+1, pages)))
		}
	}
	if len(turn) > 0 {
		blocks = append(blocks, slack.NewActionBlock("", turn...))
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: blockkit.Literal(resultTitle), Close: blockkit.Literal("Close"), Blocks: slack.Blocks{BlockSet: blocks},
	}, nil
}

// became says what became of the call of a line.
func became(sheet approvals.Sheet, l approvals.Line) string {
	switch {
	case !l.Chosen:
		return notSelected
	case l.Outcome == approvals.LineSigned && sheet.Verdict == approvals.Deny:
		return "denied"
	case l.Outcome == approvals.LineSigned:
		return "approved"
	case l.Outcome == approvals.LineSkipped:
		return "skipped: " + lineWhy[l.Why]
	}
	return "not known yet"
}

// Results say what became of sheets.
type Results struct {
	Cfg        Config
	API        *slackapi.Client
	Placements *delivery.Placements
	Sheets     *Service
}
