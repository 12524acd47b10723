package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// opensHome notes who looks at their Home, and draws it after the answer: from
// the first page on.
func (s *homeTabs) opensHome(ctx context.Context, user approvals.UserID) error {
	if err := s.homes.visited(ctx, user); err != nil {
		return err
	}
	return s.respond.after(ctx, s.respond.screens, "draw a Home", func(ctx context.Context) error {
		l, id := s.homes.page(user)
		if n, _, err := l.load(ctx, id); err == nil && s.cfg.Now().Sub(n.Body.Begun) < homePause && n.Body.Pages == (pages{}) {
			return nil // somebody goes to and fro: what has changed since is due by itself
		}
		return s.homes.soon(ctx, user, pages{})
	})
}

// soon draws a Home for somebody who waits for it.
func (h *Homes) soon(ctx context.Context, user approvals.UserID, turn pages) error {
	for {
		err := h.draw(ctx, user, &turn)
		later, busy := err.(*LaterError) //nolint:errorlint // only our own claim
		if !busy {
			return err
		}
		wait := time.NewTimer(later.After)
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}

// turnHome shows other pages of the person's Home.
func (s *homeTabs) turnHome(ctx context.Context, p Interaction, value string) error {
	at, err := parsePages(value)
	if err != nil {
		return err
	}
	return s.respond.after(ctx, s.respond.screens, "turn a page of a Home", func(ctx context.Context) error {
		return s.homes.soon(ctx, approvals.UserID(p.User), at)
	})
}

// approveSeveral opens a sheet of all that waits for the person.
func (s *Sheets) approveSeveral(ctx context.Context, p Interaction) error {
	all, err := json.Marshal(sheetWish{Verdict: approvals.Approve, Filter: filter{All: true}})
	if err != nil {
		return fmt.Errorf("ask for a sheet: %w", err)
	}
	return s.pressedSheet(ctx, p, string(all))
}

// comesBack ends the absence of the person, from their Home.
func (s *homeTabs) comesBack(ctx context.Context, p Interaction) error {
	user := approvals.UserID(p.User)
	if _, err := s.people.admitted(ctx, p.User, p.UserTeam, sought{named: []approvals.UserID{user}}); err != nil {
		return err
	}
	before, after, err := s.people.changeAbsences(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Back(user), nil })
	if errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("%w: %w", errTryAgain, err)
	}
	if err != nil {
		return err
	}
	s.commands_.tellDelegates(ctx, user, before, after)
	return s.respond.after(ctx, s.respond.screens, "draw a Home", func(ctx context.Context) error {
		return s.homes.soon(ctx, user, pages{})
	})
}
