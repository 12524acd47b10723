package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// Answers tells people what became of the sheets that they submitted: one
// direct message for each. It holds nothing; the memo beside the sheet says
// whether it has been told.
type Answers struct {
	sheets  *Sheets
	results *results
	memos   memos
	now     func() time.Time
	log     *slog.Logger
}

// answeredSheet is the memo of the answer to a sheet.
type answeredSheet struct {
	Told bool `json:"told,omitempty"`
	// Parked is whether the person was told that the work on it was given up.
	Parked bool `json:"parked,omitempty"`
}

func (a *Answers) ledger() ledger[answeredSheet] {
	return ledger[answeredSheet]{memos: a.memos, surface: "answers", now: a.now}
}

// Reconcile answers a finished sheet, once. It is what the due index calls. A
// [*LaterError] says when to look again; any other error is a failure.
func (a *Answers) Reconcile(ctx context.Context, id string) error {
	h, err := a.ledger().claim(ctx, id)
	if err != nil {
		return err
	}
	version, err := a.answer(ctx, h, approvals.SheetID(id))
	if err != nil {
		return h.abandon(ctx, err)
	}
	return h.release(ctx, version)
}

func (a *Answers) answer(ctx context.Context, h *held[answeredSheet], id approvals.SheetID) (int64, error) {
	sheet, err := a.sheets.cfg.Bulk.Sheet(ctx, id)
	if err != nil {
		return 0, err
	}
	if sheet.Status != approvals.SheetFinished || h.body.Told {
		return sheet.Version, nil
	}
	m, err := a.results.outcome(ctx, sheet)
	if err != nil {
		return 0, err
	}
	err = a.sheets.api.direct(ctx, string(sheet.By), m)
	if hasCode(err, unreachable...) {
		a.log.WarnContext(ctx, "somebody cannot be told", slog.String("sheet", string(id)), slog.String("user", string(sheet.By)), slog.Any("error", err))
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("answer sheet %s: %w", id, err)
	}
	return sheet.Version, h.save(ctx, func(x *answeredSheet) { x.Told = true })
}

// Parked tells the person that the work on their sheet was given up.
func (a *Answers) Parked(ctx context.Context, id string) error {
	h, err := a.ledger().claim(ctx, id)
	if err != nil {
		return err
	}
	err = a.parked(ctx, h, approvals.SheetID(id))
	if err != nil {
		return h.abandon(ctx, err)
	}
	return h.release(ctx, 0)
}

func (a *Answers) parked(ctx context.Context, h *held[answeredSheet], id approvals.SheetID) error {
	sheet, err := a.sheets.cfg.Bulk.Sheet(ctx, id)
	if err != nil || h.body.Parked || sheet.Status != approvals.SheetSubmitted {
		return err
	}
	sum := sheet.Summary()
	words := fmt.Sprintf("Your list of %s is not finished: it failed again and again, so the bot has stopped trying. %s signed and %s open. "+
		"Ask whoever runs Countersign to look; what is open can also be signed on its cards.",
		count(len(sheet.Lines), "call"), wereOf(sum.Signed), wereOf(sum.Open))
	if err := a.sheets.api.direct(ctx, string(sheet.By), told(words)); err != nil {
		return err
	}
	return h.save(ctx, func(x *answeredSheet) { x.Parked = true })
}

func wereOf(n int) string {
	if n == 1 {
		return "1 call is"
	}
	return number(n) + " calls are"
}

const (
	resultRows   = 40 // lines of a page
	answerTools  = 8
	answerPlaces = 5
)

// whyWords say why calls were skipped, after "3 calls".
var whyWords = map[approvals.Why]string{
	approvals.WhySettled:     "others had settled before",
	approvals.WhyExpired:     "were past their deadline",
	approvals.WhyStale:       "were changed after you read the list",
	approvals.WhyNotEligible: "were not for you to sign",
	approvals.WhyOwnRequest:  "you had asked for yourself",
	approvals.WhyOwnEdit:     "you had changed yourself",
	approvals.WhyOwnWords:    "follow what you wrote to the agent",
	approvals.WhyDecided:     "you had already decided otherwise",
	approvals.WhyReason:      "need a reason for an approval",
	approvals.WhyGone:        "are not there any more",
	approvals.WhyTakenBack:   "you signed and took back meanwhile",
	approvals.WhyUnreadable:  "cannot be read: whoever runs Countersign must look",
	approvals.WhyTooLate:     "could not be decided for a day",
	approvals.WhyInvalid:     "could not be signed as it was said",
	approvals.WhyOther:       "were refused",
}

// skippedWords say how many calls were skipped, and why.
func skippedWords(t approvals.Tally) string {
	why := t.Why
	if _, known := whyWords[why]; !known {
		why = approvals.WhyOther
	}
	if t.Lines == 1 {
		return "Skipped, 1 call: " + lineWhy[why]
	}
	return "Skipped, " + count(t.Lines, "call") + " that " + whyWords[why]
}

// outcome is the answer to a finished sheet.
func (s *results) outcome(ctx context.Context, sheet approvals.Sheet) (message, error) {
	sum := sheet.Summary()
	past := "Approved"
	if sheet.Verdict == approvals.Deny {
		past = "Denied"
	}
	text := past + " " + count(sum.Signed, "call") + "."
	spans := []span{styled(text, bold)}
	skipped := 0
	for _, t := range sum.Skipped {
		skipped += t.Lines
	}
	for _, t := range sum.Skipped {
		text += " " + skippedWords(t) + "."
	}
	if skipped > 0 {
		spans = append(spans, say(" "+number(skipped)+" skipped."))
	}
	if sum.NotChosen > 0 {
		spans = append(spans, say(" "+number(sum.NotChosen)+" not ticked, so not signed."))
	}
	paras := []para{line(append(spans, say(" You sent the list "), dated(sheet.SubmittedAt), say("."))...)}
	batches, err := s.sheets.batchesOf(ctx, sheet.Lines)
	if err != nil {
		return message{}, err
	}
	if sum.Signed > 0 {
		paras = append(paras, s.group(ctx, past+": ", sheet, batches, func(l approvals.Line) bool { return l.Outcome == approvals.LineSigned }))
	}
	for _, t := range sum.Skipped {
		paras = append(paras, s.group(ctx, skippedWords(t)+": ", sheet, batches, func(l approvals.Line) bool { return l.Why == t.Why }))
	}
	m := message{text: text, blocks: []slack.Block{richText(paras...)}}
	button := slack.NewButtonBlockElement(actionResult.id(0), string(sheet.ID), literal("Show the whole list"))
	m.blocks = append(m.blocks, slack.NewActionBlock("", button))
	return m, nil
}

// group names the tools of some lines, and links to the first cards.
func (s *results) group(ctx context.Context, head string, sheet approvals.Sheet, batches map[approvals.BatchID]approvals.Batch, of func(approvals.Line) bool) para {
	var tools []string
	n, links := map[string]int{}, []span{}
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
		if link := s.lineLink(ctx, l, batches[l.Batch]); link != "" && !at[link] {
			at[link] = true
			links = append(links, slack.NewRichTextSectionLinkElement(link, shortID(l.Digest), nil))
		}
	}
	var named []span
	for _, t := range tools {
		named = append(named, styled(times(brief(t, 60), n[t]), code))
	}
	spans := append([]span{styled(head, bold)}, several(named, answerTools)...)
	if len(links) > 0 {
		spans = append(spans, say(". Cards: "))
		spans = append(spans, several(links, answerPlaces)...)
	}
	return line(append(spans, say("."))...)
}

func (s *results) lineLink(ctx context.Context, l approvals.Line, b approvals.Batch) string {
	for i, a := range b.Approvals {
		if a.Call.ID == l.Call {
			return s.cards.link(ctx, b, i)
		}
	}
	return ""
}

// result opens the whole list with what became of each call, for the person
// whose it is.
func (s *results) result(ctx context.Context, p Interaction, value string, page int) (slack.ModalViewRequest, error) {
	if _, err := approvals.Partition(value); err != nil || s.cfg.Bulk == nil {
		return slack.ModalViewRequest{}, errPointer
	}
	sheet, err := s.cfg.Bulk.Sheet(ctx, approvals.SheetID(value))
	switch {
	case errors.Is(err, approvals.ErrNotFound):
		return notice("This list is not stored any more: it is kept for 30 days. What was decided stands on the cards."), nil
	case err != nil:
		return slack.ModalViewRequest{}, err
	case string(sheet.By) != p.User:
		return notice("This list was made for somebody else, so you cannot read it."), nil
	}
	return s.resultView(ctx, sheet, page)
}

func (s *results) openResult(ctx context.Context, p Interaction, value string) error {
	view, err := s.result(ctx, p, value, 0)
	if err != nil {
		return err
	}
	if _, _, err := s.api.openedView(ctx, p.Trigger, view); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	return nil
}

func (s *results) turnResult(ctx context.Context, p Interaction, value string) error {
	var at resultPage
	if len(value) > maxPointer || json.Unmarshal([]byte(value), &at) != nil {
		return errPointer
	}
	view, err := s.result(ctx, p, string(at.Sheet), at.Page)
	if err != nil {
		return err
	}
	return s.api.updateView(ctx, p.View.ID, p.View.Hash, view)
}

type resultPage struct {
	Sheet approvals.SheetID `json:"s"`
	Page  int               `json:"p"`
}

func (s *results) resultView(ctx context.Context, sheet approvals.Sheet, page int) (slack.ModalViewRequest, error) {
	pages := (len(sheet.Lines) + resultRows - 1) / resultRows
	page = min(max(0, page), pages-1)
	lines := sheet.Lines[page*resultRows : min((page+1)*resultRows, len(sheet.Lines))]
	batches, err := s.sheets.batchesOf(ctx, lines)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	links := make([]string, len(lines))
	s.sheets.concurrently(len(lines), func(i int) { links[i] = s.lineLink(ctx, lines[i], batches[lines[i].Batch]) })
	head := []span{styled(count(len(sheet.Lines), "call")+", sent ", bold), dated(sheet.SubmittedAt)}
	if pages > 1 {
		head = append(head, say(fmt.Sprintf(". Page %d of %d.", page+1, pages)))
	}
	blocks := []slack.Block{richText(line(head...))}
	for i, l := range lines {
		spans := []span{styled(shortID(l.Digest), code), say(" "), styled(brief(l.Tool, 60), bold), say(": " + became(sheet, l))}
		if links[i] != "" {
			spans = append(spans, say(". "), slack.NewRichTextSectionLinkElement(links[i], "Open the card", nil))
		}
		blocks = append(blocks, richText(line(spans...)))
	}
	var turn []slack.BlockElement
	for _, to := range []struct {
		page  int
		label string
	}{{page - 1, "Previous page"}, {page + 1, "Next page"}} {
		value, err := json.Marshal(resultPage{sheet.ID, to.page})
		if err == nil && to.page >= 0 && to.page < pages {
			turn = append(turn, slack.NewButtonBlockElement(actionResultPage.id(to.page), string(value), literal(to.label)))
		}
	}
	if len(turn) > 0 {
		blocks = append(blocks, slack.NewActionBlock("", turn...))
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: literal("What became of it"), Close: literal("Close"), Blocks: slack.Blocks{BlockSet: blocks},
	}, nil
}

// became says what became of a line.
func became(sheet approvals.Sheet, l approvals.Line) string {
	switch {
	case !l.Chosen:
		return "not ticked, so not signed"
	case l.Outcome == approvals.LineSigned && sheet.Verdict == approvals.Deny:
		return "denied"
	case l.Outcome == approvals.LineSigned:
		return "approved"
	case l.Outcome == approvals.LineSkipped:
		return "skipped: " + lineWhy[l.Why]
	}
	return "not known yet"
}

var lineWhy = map[approvals.Why]string{
	approvals.WhySettled: "others had settled it before", approvals.WhyExpired: "it was past its deadline",
	approvals.WhyStale: "it was changed after you read the list", approvals.WhyNotEligible: "it was not for you to sign",
	approvals.WhyOwnRequest: "you had asked for it yourself", approvals.WhyOwnEdit: "you had changed it yourself",
	approvals.WhyOwnWords: "it follows what you wrote to the agent",
	approvals.WhyDecided:  "you had already decided otherwise", approvals.WhyReason: "an approval of it needs a reason",
	approvals.WhyGone: "it is not there any more", approvals.WhyTakenBack: "you signed it and took that back meanwhile",
	approvals.WhyUnreadable: "it cannot be read", approvals.WhyTooLate: "it could not be decided for a day",
	approvals.WhyInvalid: "it could not be signed as it was said", approvals.WhyOther: "it was refused",
}
