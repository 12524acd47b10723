package home

import (
	"context"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/memo"
)

// visitors is the memo of who has opened their Home, and when.
type visitors struct {
	Opened map[approvals.UserID]time.Time `json:"opened,omitempty"`
}

func (h *Homes) visitors() (l memo.Notes[visitors], id string) {
	return memo.Notes[visitors]{Memos: h.Memos, Surface: "visitors", Now: h.Now, Derived: h.Log}, h.People.Key("homes", h.People.Team)
}

// Visited records that a person opened their Home, so that it is kept up to date.
func (h *Homes) Visited(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	n, _, err := l.Load(ctx, id)
	if err != nil {
		return err
	}
	now := h.Now()
	if now.Sub(n.Body.Opened[user]) < noteEvery {
		return nil
	}
	return l.Edit(ctx, id, func(v *visitors) {
		if v.Opened == nil {
			v.Opened = map[approvals.UserID]time.Time{}
		}
		v.Opened[user] = now
		for len(v.Opened) > mostHomes || v.dropOld(now) {
			v.dropOldest()
		}
	})
}

// forget stops keeping the Home of the person up to date.
func (h *Homes) forget(ctx context.Context, user approvals.UserID) error {
	l, id := h.visitors()
	return l.Edit(ctx, id, func(v *visitors) { delete(v.Opened, user) })
}

func (v *visitors) oldest() (user approvals.UserID, at time.Time) {
	for u, t := range v.Opened {
		if user == "" || t.Before(at) {
			user, at = u, t
		}
	}
	return user, at
}

func (v *visitors) dropOldest() {
	user, _ := v.oldest()
	delete(v.Opened, user)
}

func (v *visitors) dropOld(now time.Time) bool {
	user, at := v.oldest()
	return user != "" && now.Sub(at) > homeKept
}
