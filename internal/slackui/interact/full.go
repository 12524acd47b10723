package interact

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// viewFull opens a modal with the whole arguments, for those who may look.
func (s *reviews) viewFull(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error) {
	at, view, err := s.fullView(ctx, p, value, 0)
	if err != nil {
		return at, err
	}
	return at, s.respond.Open(ctx, p.Trigger, view)
}

// turnPage shows another page in the modal that is open.
func (s *decisions) turnPage(ctx context.Context, p inbound.Interaction, value string) error {
	var page int
	i := strings.LastIndexByte(value, '|')
	err := ref.ErrPointer
	if i > 0 {
		page, err = strconv.Atoi(value[i+1:])
	}
	if err != nil || page < 0 {
		return ref.ErrPointer
	}
	turn := s.reviews.fullView
	if p.View.Callback == ref.CallbackApprove {
		turn = s.signingPage
	}
	at, view, err := turn(ctx, p, value[:i], page)
	if words, known := respond.Explain(err, at); err != nil && known {
		view, err = blockkit.Notice(words), nil
	}
	if err != nil {
		return err
	}
	return slackapi.Turned(s.api.UpdateView(ctx, p.View.ID, p.View.Hash, view))
}

func (s *reviews) fullView(ctx context.Context, p inbound.Interaction, value string, page int) (respond.Subject, slack.ModalViewRequest, error) {
	at := respond.Subject{User: p.User, Now: s.cfg.Now()}
	none := slack.ModalViewRequest{}
	ptr, b, a, err := s.verdicts.resolve(ctx, value)
	at.Batch, at.Approval = b, a
	if err != nil {
		return at, none, err
	}
	reader, err := s.people.MayRead(ctx, p.Who(), b)
	if err != nil {
		return at, none, err
	}
	call, err := reader.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, none, err
	}
	ptr.Call = a.Call.ID
	var change card.Change
	change.Now, change.Before, err = reader.Preview(ctx, b, a.Call.ID)
	if errors.Is(err, approvals.ErrNotFound) || errors.Is(err, approvals.ErrStale) {
		change, err = card.Change{Lost: true}, nil
	}
	if err != nil {
		return at, none, err
	}
	return at, card.Full(ptr, a, call, change, page), nil
}
