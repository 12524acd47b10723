package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/intake"
)

// external names the message of a call among those of its agent. It is empty for a
// client without a session: such a client closes the connection of a call that it
// does not want any more.
func (a asker) external() string { return a.named(a.request) }

func (a asker) named(request string) string {
	if a.session == "" || request == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(a.Credential + "\x00" + a.session + "\x00" + request))
	return "mcp/" + hex.EncodeToString(sum[:])
}

// cancelable returns a context that ends when the client cancels its call.
func (s *Server) cancelable(ctx context.Context, who asker) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	name := who.external()
	if name == "" {
		return ctx, cancel
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name] = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, name)
		cancel()
	}
}

// canceled ends the wait for a call that its client cancels, on whichever replica
// it is held. A connection that stays open says nothing: clients leave it when they
// give up.
func (s *Server) canceled(ctx context.Context, who asker, request json.RawMessage) {
	name := who.named(string(request))
	if name == "" {
		return
	}
	s.mu.Lock()
	cancel := s.calls[name]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
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
