package command

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/bulk"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// bulk answers `approve` and `deny`: with the sheet in a form, or with why there
// is none.
func (s *Handler) bulk(ctx context.Context, c inbound.Command, v approvals.Verdict) (inbound.Reply, error) {
	name := string(v)
	f, rest, bad := typed{team: s.Cfg.Team, channel: c.Channel}.filter(c.Words)
	example := blockkit.Ours(helpMore, blockkit.CodeWord(c.Name), blockkit.CodeWord(name))
	onlyReason := v == approvals.Deny && len(rest) > 0 && strings.IndexAny(rest[0], quotes) == 0
	switch {
	case bad != nil:
		return inbound.AnswerWith(blockkit.MessageAbout(filterUnclear, bad.word, " means. Nothing changed.", blockkit.Ours("%s\n"+filterHint, bad.why))), nil
	case len(c.Words) == 0:
		return explainBulk(c, v), nil
	case f.Empty() && !onlyReason, v == approvals.Approve && len(rest) > 0:
		return inbound.AnswerWith(blockkit.MessageAbout("", asTyped(rest[0]), noFilter, blockkit.Ours(filterHint+"\n%s", example))), nil
	case f.Empty():
		return explainBulk(c, v), nil
	}
	o := bulk.SheetOrder{
		User: c.User, Team: c.Team, Channel: c.Channel, Verdict: v, Filter: f,
		Reason: form.TrimReason(unquoted(asTyped(strings.Join(rest, " ")))), Unique: bulk.UniqueOf(c.User, c.Trigger),
	}
	said, err := s.Sheets.OpenSheet(ctx, inbound.Trigger{ID: c.Trigger}, o)
	if err != nil {
		words, known := respond.Explain(err, respond.Subject{})
		if errors.Is(err, respond.ErrForm) {
			words, known = blockkit.Ours(formTooLate), true
		}
		if !known {
			return inbound.Reply{}, err
		}
		return inbound.Ephemeral(words), nil
	}
	if said != nil {
		return inbound.AnswerWith(*said), nil
	}
	return inbound.Reply{}, nil
}

// explainBulk says what is missing.
func explainBulk(c inbound.Command, v approvals.Verdict) inbound.Reply {
	words := blockkit.Ours(sayWhich)
	if v == approvals.Deny {
		words = blockkit.Ours(sayWhichAndWhy)
	}
	more, _ := helpOf(string(v), c.Name)
	return inbound.Ephemeral(blockkit.Ours(withoutChange, words, more))
}

// quotes are the quotation marks that keyboards write around a reason.
const quotes = "\"'\u201c\u201d\u201e\u2018\u2019"

func unquoted(s string) string {
	if s = strings.TrimSpace(s); strings.IndexAny(s, quotes) != 0 {
		return s
	}
	return strings.Trim(s, quotes)
}
