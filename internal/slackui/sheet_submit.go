package slackui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/countersign/countersign/internal/approvals"
)

// ticked is the memo with what is ticked on the page that is shown.
func (p payload) ticked(memo sheetMemo) sheetMemo {
	memo.Ticks = append(bits(nil), memo.Ticks...)
	for i := range approvals.MaxLines {
		state, shown := p.View.State.Values[tickBlock+strconv.Itoa(i)][fmt.Sprintf("%s.%d", actionTick, i)]
		if shown {
			memo.Ticks.set(i, len(state.Chosen) > 0)
		}
	}
	return memo
}

// redrawSheet shows the page again that the person is on, or another one, with
// what they have ticked.
func (s *Server) redrawSheet(ctx context.Context, p payload, page string) error {
	if err := s.sameTeam(p); err != nil {
		return err
	}
	memo, err := readSheetMemo(p.View.Metadata)
	if err != nil || s.cfg.Bulk == nil {
		return errPointer
	}
	memo = p.ticked(memo)
	if page != "" {
		if memo.Page, err = strconv.Atoi(page); err != nil {
			return errPointer
		}
	}
	sheet, err := s.cfg.Bulk.Sheet(ctx, memo.Sheet)
	if err == nil && string(sheet.By) != p.User.ID {
		err = approvals.ErrNotEligible
	}
	if err != nil {
		return s.api.updateView(ctx, p.View.ID, "", notice(explainSheet(err)))
	}
	view, err := s.sheetView(ctx, sheet, memo, "")
	if err != nil {
		return err
	}
	err = s.api.updateView(ctx, p.View.ID, p.View.Hash, view)
	if hasCode(err, "hash_conflict", "not_found") {
		return nil // a later tick draws it, or nobody looks any more
	}
	return err
}

// submittedSheet commits the person's word on a sheet, and nothing else: what it
// decides is done afterwards, and said in a direct message.
func (s *Server) submittedSheet(ctx context.Context, p payload) (reply, error) {
	if err := s.sameTeam(p); err != nil {
		words, _ := explain(err, about{})
		return replace(notice(words)), nil
	}
	memo, err := readSheetMemo(p.View.Metadata)
	if s.cfg.Bulk == nil {
		err = errPointer
	}
	if err != nil {
		words := explainSheet(err)
		return replace(notice(words)), nil
	}
	memo = p.ticked(memo)
	reason := trimReason(p.View.State.Values[reasonBlock][reasonInput].Value)
	sheet, err := s.cfg.Bulk.Sheet(ctx, memo.Sheet)
	if err == nil && string(sheet.By) != p.User.ID {
		err = approvals.ErrNotEligible
	}
	if err == nil {
		if again := s.unfinished(sheet, memo, reason); again != "" {
			return s.again(ctx, sheet, memo, again, again == needsReason)
		}
		sheet, err = s.submitSheet(ctx, p, sheet, memo, reason)
	}
	if err == nil {
		s.cfg.Log.InfoContext(ctx, "sheet submitted", slog.String("sheet", string(sheet.ID)), slog.String("user", p.User.ID),
			slog.String("verdict", string(sheet.Verdict)), slog.Int("lines", chosen(sheet, memo.Ticks)))
		return replace(notice(underWay(sheet, chosen(sheet, memo.Ticks)))), nil
	}
	words := explainSheet(err)
	s.cfg.Log.InfoContext(ctx, "sheet refused", slog.String("user", p.User.ID), slog.Any("reason", err))
	switch {
	case words == "" && !isTryAgain(err):
		return reply{}, err
	case isTryAgain(err):
		if words == "" {
			words = "Nothing was signed: the store did not answer in time."
		}
		return s.again(ctx, sheet, memo, words+" Press the button below again.", false)
	}
	return replace(notice(words)), nil
}

func underWay(sheet approvals.Sheet, n int) string {
	doing := "Approving"
	if sheet.Verdict == approvals.Deny {
		doing = "Denying"
	}
	return doing + " " + count(n, "call") + "… Your word is stored: nothing more is needed, and you can close this. " +
		"When it is done, a direct message says what was signed, what was skipped and why."
}

const needsReason = "Write the reason: blanks are none."

// unfinished says what the person has to add, or nothing. What is sent in the
// name of somebody else is not judged here.
func (s *Server) unfinished(sheet approvals.Sheet, memo sheetMemo, reason string) string {
	switch {
	case sheet.Check() != nil || sheet.Status != approvals.SheetShown:
		return ""
	case chosen(sheet, memo.Ticks) == 0:
		return "Nothing is ticked, so there is nothing to sign. Tick the calls that you want, or press Cancel."
	case reason == "" && sheetReason(sheet, backdropOf(sheet)) != nil:
		return needsReason
	}
	return ""
}

// again keeps the form, with words on top of it or under its field.
func (s *Server) again(ctx context.Context, sheet approvals.Sheet, memo sheetMemo, words string, field bool) (reply, error) {
	if field || len(sheet.Lines) == 0 {
		return under(map[string]string{reasonBlock: words}), nil
	}
	view, err := s.sheetView(ctx, sheet, memo, words)
	if err != nil {
		return reply{}, err
	}
	return replace(view), nil
}

// submitSheet resolves the person for all that is on the sheet, and commits.
func (s *Server) submitSheet(ctx context.Context, p payload, sheet approvals.Sheet, memo sheetMemo, reason string) (approvals.Sheet, error) {
	batches, err := s.batchesOf(ctx, sheet.Lines)
	if err != nil {
		return sheet, err
	}
	var all []approvals.Batch
	for _, b := range batches {
		all = append(all, b)
	}
	who, _, err := s.signer(ctx, p.User.ID, p.User.Team, soughtFor(all...))
	if err != nil {
		return sheet, err
	}
	r := s.request(p, pointer{Batch: approvals.BatchID(sheet.ID)}, sheet.Verdict, reason)
	next, err := s.cfg.Bulk.Submit(ctx, sheet.ID, r, who, memo.Ticks.list(), reason)
	if err != nil {
		return sheet, fmt.Errorf("submit sheet %s: %w", sheet.ID, err)
	}
	return next, nil
}

// explainSheet says why a sheet was not submitted, or shown, and what to do now;
// nothing if that is not for people.
func explainSheet(err error) string {
	const remake = " To see what is open now, send the command again."
	switch {
	case errors.Is(err, approvals.ErrNotEligible):
		return "This list was made for somebody else, so you cannot send it. Nothing was signed." + remake
	case errors.Is(err, approvals.ErrExpired):
		return "This list is too old: it can be sent for " + number(int(approvals.SheetLife.Minutes())) + " minutes after it was made. Nothing was signed." + remake
	case errors.Is(err, approvals.ErrSettled):
		return "This list was sent already, so this changed nothing. A direct message says what became of it."
	case errors.Is(err, approvals.ErrNotFound):
		return "This list is not stored any more. Nothing was signed." + remake
	case errors.Is(err, approvals.ErrInvalid), errors.Is(err, errPointer):
		return "What was sent does not fit the list that was shown. Nothing was signed." + remake
	}
	words, known := explain(err, about{})
	if !known {
		return ""
	}
	return words
}
