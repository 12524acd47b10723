package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// lookupLimit is how long after a batch was opened a lookup that Slack does not
// answer just now delays what depends on it.
const lookupLimit = 2 * time.Minute

// attendance is who sees the card of a batch in the conversation, and which of them
// get no direct message for that reason. In the zero value nobody is there.
type attendance struct {
	who    []approvals.UserID // sorted
	known  bool               // Slack said who is there
	direct approvals.DirectMessages
}

func (a attendance) has(user approvals.UserID) bool {
	_, is := slices.BinarySearch(a.who, user)
	return is
}

// skips reports whether the person gets no direct message, whether or not they can
// help.
func (a attendance) skips(user approvals.UserID) bool {
	switch a.direct {
	case approvals.DirectNobody:
		return true
	case approvals.DirectEveryone:
		return false
	case approvals.DirectOutside:
	}
	return a.has(user)
}

// attendance looks up who is in the channel of the batch, unless its thread takes no
// card, and in those of its escalations that show it. If Slack refuses to say who is in
// one of them, everybody counts as outside of it. If Slack does not answer just now, that
// is an error until [lookupLimit] has passed.
func (c *Cards) attendance(ctx context.Context, body *anchors, b approvals.Batch, unseen bool) (attendance, error) {
	in := attendance{known: true}
	channels := b.Channels()
	if !unseen {
		channels = append(channels, b.Channel)
	}
	for _, channel := range channels {
		switch {
		case channel == "", body.missed(channel):
			continue
		case strings.HasPrefix(channel, "D") && b.Executor != "":
			continue // a remote request names it, and does not say whose it is
		case strings.HasPrefix(channel, "D"): // between the bot and the people who write to it
			in.who = append(append(in.who, b.Requester), b.Participants...)
			continue
		}
		r, err := c.People.Roster(ctx, channel)
		if later, ok := errors.AsType[*slackapi.LaterError](err); ok && c.Now().Sub(b.OpenedAt) < lookupLimit {
			return attendance{}, later
		}
		in.known = in.known && err == nil
		for _, user := range r.Users {
			in.who = append(in.who, approvals.UserID(user))
		}
	}
	slices.Sort(in.who)
	return in, nil
}
