package gateway

import (
	"context"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/intake"
)

// external names the message of a call among those of its agent; empty for a client
// without a session.
func (a asker) external() string { return a.message.Name(a.Caller) }

// canceled ends the wait for the call that a message cancels, on whichever replica it
// is held.
func (s *Server) canceled(ctx context.Context, who asker) {
	name := who.message.Cancels(who.Caller)
	if name == "" || s.door.Cancel(name) {
		return
	}
	if err := s.c.Intake.Leave(ctx, who.Client, name); err != nil {
		s.c.Log.WarnContext(ctx, "a call that its client canceled may still wait", slog.Any("err", err))
	}
}

// left reports whether the client of a call has canceled it on another replica.
func (a asker) left(q intake.Request) bool {
	return slices.Contains(q.Left, a.external())
}
