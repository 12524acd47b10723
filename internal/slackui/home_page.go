package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// homeOpened is the event that somebody looks at their Home.
type homeOpened struct {
	User string `json:"user"`
	Tab  string `json:"tab"`
}

// opensHome notes who looks at their Home, and draws it after the answer: from
// the first page on.
func (s *Server) opensHome(ctx context.Context, e envelope) error {
	var o homeOpened
	if err := json.Unmarshal(e.Event, &o); err != nil {
		return fmt.Errorf("%w: app_home_opened: %w", errBody, err)
	}
	if !e.of(s.cfg) || o.Tab != "home" {
		return nil
	}
	if !idForm.MatchString(o.User) {
		return fmt.Errorf("%w: a Home of nobody", errBody)
	}
	user := approvals.UserID(o.User)
	if err := s.homes.visited(ctx, user); err != nil {
		return err
	}
	return s.after(ctx, s.screens, "draw a Home", func(ctx context.Context) error {
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
func (s *Server) turnHome(ctx context.Context, p payload, value string) error {
	if err := s.sameTeam(p); err != nil {
		return err
	}
	at, err := parsePages(value)
	if err != nil {
		return err
	}
	return s.after(ctx, s.screens, "turn a page of a Home", func(ctx context.Context) error {
		return s.homes.soon(ctx, approvals.UserID(p.User.ID), at)
	})
}

// approveSeveral opens a sheet of all that waits for the person.
func (s *Server) approveSeveral(ctx context.Context, p payload) error {
	all, err := json.Marshal(sheetWish{Verdict: approvals.Approve, Filter: filter{All: true}})
	if err != nil {
		return fmt.Errorf("ask for a sheet: %w", err)
	}
	return s.pressedSheet(ctx, p, string(all))
}

// comesBack ends the absence of the person, from their Home.
func (s *Server) comesBack(ctx context.Context, p payload) error {
	if err := s.sameTeam(p); err != nil {
		return err
	}
	user := approvals.UserID(p.User.ID)
	if _, err := s.people.admitted(ctx, p.User.ID, p.User.Team, sought{named: []approvals.UserID{user}}); err != nil {
		return err
	}
	before, after, err := s.people.changeAbsences(ctx, func(as approvals.Absences) (approvals.Absences, error) { return as.Back(user), nil })
	if errors.Is(err, approvals.ErrConflict) {
		return fmt.Errorf("%w: %w", errTryAgain, err)
	}
	if err != nil {
		return err
	}
	s.tellDelegates(ctx, user, before, after)
	return s.after(ctx, s.screens, "draw a Home", func(ctx context.Context) error {
		return s.homes.soon(ctx, user, pages{})
	})
}
