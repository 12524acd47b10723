package interact

import (
	"context"
	"encoding/json"

	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// turnList shows another page of a list in the place of the one that is shown.
func (s *Handler) turnList(ctx context.Context, who directory.Who, channel, responseURL, value string) error {
	var l ref.List
	if len(value) > ref.MaxPointer || json.Unmarshal([]byte(value), &l) != nil || responseURL == "" {
		return ref.ErrPointer
	}
	m, err := s.Slash.Listed(ctx, who.User, who.Team, channel, l)
	if err != nil {
		return err
	}
	return s.respond.After(ctx, s.respond.Words, "turn the page of a list", func(ctx context.Context) error {
		return s.api.Replace(ctx, responseURL, m)
	})
}
