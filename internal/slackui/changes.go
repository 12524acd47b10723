package slackui

import "context"

// changed drops what is remembered of a group or a person, so that the next
// click asks Slack. An event that never comes costs no more than the age that
// memberships may have.
func (s *homeTabs) changed(ctx context.Context, c Change) error {
	if c.User != "" {
		return s.people.forget(ctx, "user", c.User)
	}
	return s.people.forget(ctx, "group", c.Group)
}
