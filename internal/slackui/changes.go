package slackui

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// change is an event that says that somebody's account or the members of a
// group are not what they were. What it says is not believed: it only makes us
// ask again.
type change struct {
	Subteam json.RawMessage `json:"subteam"`
	ID      string          `json:"subteam_id"`
	Channel string          `json:"channel"`
	User    json.RawMessage `json:"user"`
}

// changed drops what is remembered of a group or a person, so that the next
// click asks Slack. An event that never comes costs no more than the age that
// memberships may have.
func (s *Server) changed(ctx context.Context, e envelope, kind string) error {
	var what string
	switch kind {
	case "subteam_members_changed", "subteam_updated", "member_joined_channel", "member_left_channel":
		what = "group"
	case "user_change":
		what = "user"
	default:
		s.cfg.Log.DebugContext(ctx, "event not for us", slog.String("type", brief(kind, 64)))
		return nil
	}
	if !e.of(s.cfg) {
		s.cfg.Log.WarnContext(ctx, "event of another workspace", slog.String("team", brief(e.Team, 64)))
		return nil
	}
	var c change
	if err := json.Unmarshal(e.Event, &c); err != nil {
		return fmt.Errorf("%w: %s: %w", errBody, kind, err)
	}
	id := c.ID
	switch kind {
	case "subteam_updated":
		id = idOf(c.Subteam)
	case "member_joined_channel", "member_left_channel":
		id = c.Channel
	case "user_change":
		id = idOf(c.User)
	}
	return s.people.forget(ctx, what, id)
}

// idOf reads the id of an object.
func idOf(raw json.RawMessage) string {
	var o struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.ID
}
