package interact

import (
	"context"
	"encoding/json"

	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// turnList shows another page of a list in the place of the one that is shown.
func (s *Handler) turnList(ctx context.Context, p inbound.Interaction, value string) error {
	var l ref.List
	if len(value) > ref.MaxPointer || json.Unmarshal([]byte(value), &l) != nil || p.ResponseURL == "" {
		return ref.ErrPointer
	}
	m, err := s.Slash.Listed(ctx, p.User, p.UserTeam, p.Channel, l)
	if err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Words, "turn the page of a list", func(ctx context.Context) error {
		return s.api.Replace(ctx, p.ResponseURL, m)
	})
}
