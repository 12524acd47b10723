package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// ticked returns the memo with the ticks of the page that is shown.
func ticked(p inbound.Interaction, memo sheetMemo) sheetMemo {
	memo.Ticks = append(bits(nil), memo.Ticks...)
	for i := range approvals.MaxLines {
		state, shown := p.View.Values[tickBlock+strconv.Itoa(i)][ref.ActionTick.ID(i)]
		if shown {
			memo.Ticks.set(i, len(state.Chosen) > 0)
		}
	}
	return memo
}

// RedrawSheet shows the page that the person is on, or another one, with what they
// have ticked.
func (s *Service) RedrawSheet(ctx context.Context, p inbound.Interaction, page string) error {
	memo, err := readSheetMemo(p.View.Metadata)
	if err != nil || s.Cfg.Bulk == nil {
		return ref.ErrPointer
	}
	memo = ticked(p, memo)
	if page != "" {
		if memo.Page, err = strconv.Atoi(page); err != nil {
			return ref.ErrPointer
		}
	}
	sheet, err := s.Cfg.Bulk.Sheet(ctx, memo.Sheet)
	if err == nil && string(sheet.By) != p.User {
		err = approvals.ErrNotEligible
	}
	if err != nil {
		return s.API.UpdateView(ctx, p.View.ID, "", blockkit.Notice(explainSheet(err)))
	}
	view, err := s.sheetView(ctx, sheet, memo, blockkit.Mrkdwn{})
	if err != nil {
		return err
	}
	err = s.API.UpdateView(ctx, p.View.ID, p.View.Hash, view)
	if slackapi.HasCode(err, "hash_conflict") {
		// The form was redrawn after this tick was made. A tick carries all that is
		// ticked, so it is drawn over that.
		err = s.API.UpdateView(ctx, p.View.ID, "", view)
	}
	if slackapi.HasCode(err, "not_found") {
		return nil // the form is closed
	}
	return err
}

// SubmittedSheet only commits the person's decision on a sheet: its calls are decided
// afterwards, and a direct message says what became of them.
func (s *Service) SubmittedSheet(ctx context.Context, p inbound.Interaction) inbound.Reply {
	memo, err := readSheetMemo(p.View.Metadata)
	if s.Cfg.Bulk == nil {
		err = ref.ErrPointer
	}
	if err != nil {
		words := explainSheet(err)
		return inbound.Replace(blockkit.Notice(words))
	}
	memo = ticked(p, memo)
	reason := form.TrimReason(p.View.Values[form.ReasonBlock][form.ReasonInput].Value)
	sheet, err := s.Cfg.Bulk.Sheet(ctx, memo.Sheet)
	if err == nil && string(sheet.By) != p.User {
		err = approvals.ErrNotEligible
	}
	if err == nil && sheet.Verdict == approvals.Approve && sheet.Status == approvals.SheetShown && !contextOf(sheet).Whole {
		err = errOldSheet
	}
	if err == nil {
		if again := s.unfinished(sheet, memo, reason); !again.IsZero() {
			return s.again(ctx, p, sheet, memo, again)
		}
		sheet, err = s.submitSheet(ctx, p, sheet, memo, reason)
	}
	if err == nil {
		s.Cfg.Log.InfoContext(ctx, "sheet submitted", slog.String("sheet", string(sheet.ID)), slog.String("user", p.User),
			slog.String("verdict", string(sheet.Verdict)), slog.Int("lines", chosen(sheet, memo.Ticks)))
		return inbound.Replace(blockkit.Notice(underWay(sheet, chosen(sheet, memo.Ticks))))
	}
	words := explainSheet(err)
	s.Cfg.Log.InfoContext(ctx, "sheet refused", slog.String("user", p.User), slog.Any("reason", err))
	switch {
	case words.IsZero():
		s.Cfg.Log.ErrorContext(ctx, "sheet not submitted", slog.String("user", p.User), slog.Any("err", err))
		words = blockkit.Ours(notSentStore)
		if errors.Is(err, errMaybeSent) {
			words = blockkit.Ours(perhapsSent)
		}
		return s.again(ctx, p, sheet, memo, blockkit.Ours("%s"+pressAgain, words))
	case respond.IsTryAgain(err):
		return s.again(ctx, p, sheet, memo, blockkit.Ours("%s"+pressAgain, words))
	}
	return inbound.Replace(blockkit.Notice(words))
}

// errOldSheet refuses a list for approval that may not show all of its calls whole.
var errOldSheet = errors.New("a list of an earlier version")

// errMaybeSent says that it is not known whether a submission was stored.
var errMaybeSent = errors.New("perhaps submitted")

func underWay(sheet approvals.Sheet, n int) blockkit.Mrkdwn {
	doing, done := blockkit.Ours("Approving"), blockkit.Ours("approved")
	if sheet.Verdict == approvals.Deny {
		doing, done = blockkit.Ours("Denying"), blockkit.Ours("denied")
	}
	return blockkit.Ours(sent, doing, blockkit.Counted(n, "call"), done)
}

// unfinished says what the person has to add, or nothing. It does not check whether
// the sheet is theirs.
func (s *Service) unfinished(sheet approvals.Sheet, memo sheetMemo, reason string) blockkit.Mrkdwn {
	switch {
	case sheet.Check() != nil || sheet.Status != approvals.SheetShown:
		return blockkit.Mrkdwn{}
	case chosen(sheet, memo.Ticks) == 0:
		return blockkit.Ours(nothingSelected)
	case reason == "" && sheetReason(sheet, contextOf(sheet)) != nil:
		return blockkit.Ours(needsReason)
	}
	return blockkit.Mrkdwn{}
}

// MaxAnswer bounds what is shown in the answer to a submission: over Socket Mode
// Slack drops an answer of 20 KB, and says nothing.
const MaxAnswer = 16_000

// again shows the page with what was ticked and with the words: under the field for
// the reason if there is one, else at the top. If the page is too long for an
// answer, or cannot be drawn now, a small form with a button that leads to it is
// shown.
func (s *Service) again(ctx context.Context, p inbound.Interaction, sheet approvals.Sheet, memo sheetMemo, words blockkit.Mrkdwn) inbound.Reply {
	if _, field := p.View.Values[form.ReasonBlock]; field && words.Plain() {
		return inbound.Under(map[string]string{form.ReasonBlock: words.String()})
	}
	if len(sheet.Lines) > 0 {
		view, err := s.sheetView(ctx, sheet, memo, words)
		raw, marshalErr := json.Marshal(view)
		if err == nil && marshalErr == nil && len(raw) <= MaxAnswer {
			return inbound.Replace(view)
		}
	}
	return inbound.Replace(memo.aside(sheet, words))
}

// aside is a small form in place of a page of the sheet: it can be submitted like
// that page, and has a button that leads back to it. The sheet may be empty.
func (m sheetMemo) aside(sheet approvals.Sheet, words blockkit.Mrkdwn) slack.ModalViewRequest {
	v := blockkit.Notice(words)
	metadata, err := json.Marshal(m)
	if err != nil {
		return v
	}
	v.CallbackID, v.PrivateMetadata, v.Close = ref.CallbackSheet, string(metadata), blockkit.Literal("Cancel")
	switch n := chosen(sheet, m.Ticks); {
	case len(sheet.Lines) == 0:
		v.Submit = blockkit.Literal(sendAgain)
	case n > 0:
		v.Submit = blockkit.Literal(submitLabel(verbOf(sheet.Verdict), n))
	}
	back := blockkit.Button(ref.ActionSheetPage.ID(m.Page), fmt.Sprint(m.Page), backToList, fmt.Sprintf(backToPage, m.Page+1))
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewActionBlock("", back))
	return v
}

// submitSheet resolves the person for all that is on the sheet, and commits.
func (s *Service) submitSheet(ctx context.Context, p inbound.Interaction, sheet approvals.Sheet, memo sheetMemo, reason string) (approvals.Sheet, error) {
	batches, err := s.batchesOf(ctx, sheet.Lines)
	if err != nil {
		return sheet, err
	}
	var all []approvals.Batch
	for _, b := range batches {
		all = append(all, b)
	}
	who, _, err := s.People.Resolve(ctx, p.User, p.UserTeam, directory.SoughtFor(all...))
	if err != nil {
		return sheet, err
	}
	r := respond.RequestID(s.Cfg.Team, p.IDs(), ref.Pointer{Batch: approvals.BatchID(sheet.ID)}, sheet.Verdict, reason)
	next, err := s.Cfg.Bulk.Submit(ctx, sheet.ID, r, who, memo.Ticks.list(), reason)
	if err != nil {
		return sheet, fmt.Errorf("submit sheet %s: %w: %w", sheet.ID, errMaybeSent, err)
	}
	return next, nil
}

// explainSheet says why a sheet was not submitted or shown, and what to do now. It
// returns nothing for an error that people cannot act on.
func explainSheet(err error) blockkit.Mrkdwn {
	switch {
	case errors.Is(err, approvals.ErrNotEligible):
		return blockkit.Ours(notYoursToSend + sendCommandAgain)
	case errors.Is(err, errOldSheet):
		return blockkit.Ours(listOfOldVersion + sendCommandAgain)
	case errors.Is(err, approvals.ErrExpired):
		return blockkit.Ours(listTooOld+sendCommandAgain, blockkit.Num(int(approvals.SheetLife.Minutes())))
	case errors.Is(err, approvals.ErrSettled):
		return blockkit.Ours(alreadySent)
	case errors.Is(err, approvals.ErrNotFound):
		return blockkit.Ours(notStored + sendCommandAgain)
	case errors.Is(err, approvals.ErrInvalid), errors.Is(err, ref.ErrPointer):
		return blockkit.Ours(notAsShown + sendCommandAgain)
	}
	words, known := respond.Explain(err, respond.Subject{})
	if !known {
		return blockkit.Mrkdwn{}
	}
	return words
}
