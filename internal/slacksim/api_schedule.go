package slacksim

import (
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// scheduleAPI is the methods of chat.* for messages that are posted later.
type scheduleAPI struct {
	*world

	payloads  *payloads
	messages  *messages
	chat      *chatAPI
	scheduled []*scheduled // in the order in which they came
}

// The bounds of scheduled messages.
//
// https://docs.slack.dev/reference/methods/chat.scheduleMessage
const (
	farthest       = 120 * 24 * time.Hour
	maxScheduled   = 30 // in one channel within scheduledSpan
	scheduledSpan  = 5 * time.Minute
	lastMomentStop = 60 * time.Second // later, a message cannot be deleted
)

// scheduled is a message that is going to be posted.
type scheduled struct {
	id      string
	in      *installation
	channel *channel
	message *message
	at      time.Time
	created time.Time
}

var unixSeconds = regexp.MustCompile(`^\d{1,10}$`)

func (s *scheduleAPI) chatScheduleMessage(c *call) (object, *failure) {
	k, ch, root, f := s.chat.posting(c)
	if f != nil {
		return nil, f
	}
	if utf8.RuneCountInString(k.text) > maxPostText {
		return nil, fail("msg_too_long")
	}
	if !unixSeconds.MatchString(c.str("post_at")) {
		return nil, fail("invalid_time")
	}
	seconds, _ := strconv.ParseInt(c.str("post_at"), 10, 64) // the pattern leaves numbers only
	now, at := s.clock.now(), time.Unix(seconds, 0)
	switch {
	case !at.After(now):
		return nil, fail("time_in_past")
	case at.Sub(now) > farthest:
		return nil, fail("time_too_far")
	case s.crowded(ch, at):
		return nil, fail("restricted_too_many")
	}
	p := &scheduled{
		id: s.nextID("Q"), in: c.in, channel: ch, message: c.message(k, root), at: at, created: now,
	}
	s.scheduled = append(s.scheduled, p)
	s.changed()
	s.clock.after(at.Sub(now), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.postScheduled(p)
	})
	shown := s.payloads.messageJSON(ch, p.message, true)
	delete(shown, "ts")
	shown["type"] = "delayed_message"
	return object{"channel": ch.ID, "scheduled_message_id": p.id, "post_at": seconds, "message": shown}, nil
}

// crowded reports whether one more message at this time would be too many for
// the channel.
func (s *scheduleAPI) crowded(ch *channel, at time.Time) bool {
	times := []time.Time{at}
	for _, p := range s.scheduled {
		if p.channel == ch && at.Sub(p.at).Abs() < scheduledSpan {
			times = append(times, p.at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := maxScheduled; i < len(times); i++ {
		if times[i].Sub(times[i-maxScheduled]) < scheduledSpan {
			return true
		}
	}
	return false
}

// postScheduled posts the message, unless it was deleted or the bot may not
// write there any more. Slack posts none that has metadata, and says so as a
// known bug. The caller holds mu.
func (s *scheduleAPI) postScheduled(p *scheduled) {
	if !s.unschedule(p) || p.in.ended != "" || p.channel.Archived || !s.chat.posts(p.in, p.channel) || p.message.metadata != nil {
		return
	}
	s.messages.store(p.channel, p.message)
}

func (s *scheduleAPI) unschedule(p *scheduled) bool {
	at := slices.Index(s.scheduled, p)
	if at >= 0 {
		s.scheduled = slices.Delete(slices.Clone(s.scheduled), at, at+1)
		s.changed()
	}
	return at >= 0
}

func (s *scheduleAPI) chatDeleteScheduledMessage(c *call) (object, *failure) {
	ch := s.identified(c.in, c.str("channel"))
	if ch == nil {
		return nil, fail("channel_not_found")
	}
	for _, p := range s.scheduled {
		if p.id == c.str("scheduled_message_id") && p.in == c.in && p.channel == ch && p.at.Sub(s.clock.now()) > lastMomentStop {
			s.unschedule(p)
			return object{}, nil
		}
	}
	return nil, fail("invalid_scheduled_message_id")
}

// chatScheduledMessagesList lists what the app scheduled, the first to be
// posted first.
func (s *scheduleAPI) chatScheduledMessagesList(c *call) (object, *failure) {
	if _, f := s.listed(c); f != nil {
		return nil, f
	}
	only := c.str("channel")
	if only != "" && s.identified(c.in, only) == nil {
		return nil, fail("invalid_channel")
	}
	pending := slices.Clone(s.scheduled)
	slices.SortStableFunc(pending, func(a, b *scheduled) int { return a.at.Compare(b.at) })
	var all []any
	for _, p := range pending {
		at := strconv.FormatInt(p.at.Unix(), 10)
		if p.in != c.in || (only != "" && p.channel.ID != only) || !within(at, c.str("oldest"), c.str("latest"), true) {
			continue
		}
		all = append(all, object{
			"id": p.id, "channel_id": p.channel.ID, "post_at": p.at.Unix(), "date_created": p.created.Unix(), "text": p.message.text,
		})
	}
	page, next, f := c.pageOf(all, 100, 1000)
	if f != nil {
		return nil, f
	}
	return object{"scheduled_messages": page, "response_metadata": object{"next_cursor": next}}, nil
}
