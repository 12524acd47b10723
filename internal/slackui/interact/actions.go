package interact

import (
	"context"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// A press does what one button means. It returns what an error is about, and
// whether something was decided that the review under the button has to show.
type press func(ctx context.Context, s *Handler, p inbound.Interaction) (at respond.Subject, decided bool, err error)

// actions has a row for every button.
var actions = map[ref.Action]press{
	ref.ActionApprove: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return s.decisions.approveAs(ctx, p, p.Press.Value, approvals.Approve)
	},
	ref.ActionAgain: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return s.decisions.approveAs(ctx, p, p.Press.Value, approvals.RunAgain)
	},
	ref.ActionAll: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return s.decisions.approveAll(ctx, p, p.Press.Value)
	},
	ref.ActionRetract: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		at, err := s.verdicts.takeBack(ctx, p, p.Press.Value)
		return at, err == nil, err
	},
	ref.ActionSign:       opens(func(s *Handler) opener { return s.decisions.openSigning }),
	ref.ActionDeny:       opens(func(s *Handler) opener { return s.decisions.askReason(approvals.Deny) }),
	ref.ActionHappened:   opens(func(s *Handler) opener { return s.decisions.askReason(approvals.Happened) }),
	ref.ActionGiveUp:     opens(func(s *Handler) opener { return s.decisions.askReason(approvals.GiveUp) }),
	ref.ActionEdit:       opens(func(s *Handler) opener { return s.edits.openEdit }),
	ref.ActionView:       opens(func(s *Handler) opener { return s.reviews.viewFull }),
	ref.ActionReview:     opens(func(s *Handler) opener { return s.reviews.showOrOpen }),
	ref.ActionEach:       opens(func(s *Handler) opener { return s.reviews.showOrOpen }),
	ref.ActionPage:       turns(func(s *Handler) turner { return s.decisions.turnPage }),
	ref.ActionSheet:      turns(func(s *Handler) turner { return s.Sheets.PressedSheet }),
	ref.ActionSheetPage:  turns(func(s *Handler) turner { return s.Sheets.RedrawSheet }),
	ref.ActionResult:     turns(func(s *Handler) turner { return s.Results.OpenResult }),
	ref.ActionResultPage: turns(func(s *Handler) turner { return s.Results.TurnResult }),
	ref.ActionNext:       does(func(s *Handler) doer { return s.reviews.next }),
	ref.ActionSeveral:    does(func(s *Handler) doer { return s.Sheets.ApproveSeveral }),
	ref.ActionDigest: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		at, err := s.reviews.openDigest(ctx, p.Who(), p.Trigger, p.Press.Value)
		return at, false, err
	},
	ref.ActionTurn: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, s.homeTabs.turnHome(ctx, approvals.UserID(p.User), p.Press.Value)
	},
	ref.ActionList: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, s.turnList(ctx, p.Who(), p.Channel, p.ResponseURL, p.Press.Value)
	},
	ref.ActionBack: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, s.homeTabs.comesBack(ctx, p.Who())
	},
	ref.ActionToolsAccept: aboutTools(true),
	ref.ActionToolsBlock:  aboutTools(false),
	ref.ActionTick: func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, s.Sheets.RedrawSheet(ctx, p, "")
	},
}

type (
	opener func(ctx context.Context, p inbound.Interaction, value string) (respond.Subject, error)
	turner func(ctx context.Context, p inbound.Interaction, value string) error
	doer   func(ctx context.Context, p inbound.Interaction) error
)

func opens(of func(*Handler) opener) press {
	return func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		at, err := of(s)(ctx, p, p.Press.Value)
		return at, false, err
	}
}

func turns(of func(*Handler) turner) press {
	return func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, of(s)(ctx, p, p.Press.Value)
	}
}

// aboutTools decides about what an MCP server changed.
func aboutTools(accept bool) press {
	return func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		if s.cfg.ToolCards == nil {
			return respond.Subject{}, false, s.answer(ctx, p, blockkit.Ours(oldButton))
		}
		words, err := s.cfg.ToolCards.Press(ctx, p.Who(), p.Press.Value, accept)
		if err == nil && !words.IsZero() {
			err = s.answer(ctx, p, words)
		}
		return respond.Subject{}, false, err
	}
}

func does(of func(*Handler) doer) press {
	return func(ctx context.Context, s *Handler, p inbound.Interaction) (respond.Subject, bool, error) {
		return respond.Subject{}, false, of(s)(ctx, p)
	}
}
