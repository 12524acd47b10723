package interact

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/home"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/respond"
)

// opensHome notes who looks at their Home, and draws it after the answer: from
// the first page on.
func (s *homeTabs) opensHome(ctx context.Context, user approvals.UserID) error {
	if err := s.homes.Visited(ctx, user); err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Screens, "draw a Home", func(ctx context.Context) error {
		l, id := s.homes.Page(user)
		if n, _, err := l.Load(ctx, id); err == nil && s.cfg.Now().Sub(n.Body.Begun) < home.Pause && n.Body.Pages == (card.Pages{}) {
			return nil // the person switches tabs: a change since then redraws the Home anyway
		}
		return s.homes.Soon(ctx, user, card.Pages{})
	})
}

// turnHome shows other pages of the person's Home.
func (s *homeTabs) turnHome(ctx context.Context, user approvals.UserID, value string) error {
	at, err := card.ParsePages(value)
	if err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Screens, "turn a page of a Home", func(ctx context.Context) error {
		return s.homes.Soon(ctx, user, at)
	})
}

// comesBack ends the absence of the person, from their Home.
func (s *homeTabs) comesBack(ctx context.Context, who directory.Who) error {
	user := approvals.UserID(who.User)
	if _, err := s.people.Admitted(ctx, who.User, who.Team, directory.Sought{Named: []approvals.UserID{user}}); err != nil {
		return err
	}
	before, after, err := s.people.Absences().Change(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Back(user), nil })
	if errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("%w: %w", respond.ErrTryAgain, err)
	}
	if err != nil {
		return err
	}
	s.slash.TellDelegates(ctx, user, before, after)
	return s.respond.After(ctx, s.respond.Screens, "draw a Home", func(ctx context.Context) error {
		return s.homes.Soon(ctx, user, card.Pages{})
	})
}

// changed drops what is remembered of a group or a person, so that the next
// click asks Slack. An event that never comes costs no more than the age that
// memberships may have.
func (s *homeTabs) changed(ctx context.Context, c inbound.Change) error {
	if c.User != "" {
		return s.people.Forget(ctx, "user", c.User)
	}
	return s.people.Forget(ctx, "group", c.Group)
}
