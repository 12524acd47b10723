package slacksim

import (
	"cmp"
	"regexp"
)

// call is one Web API call that passed the checks of its method.
type call struct {
	args
	in       *installation // whose token it came with
	warnings []string
}

// failure is an answer with ok:false.
type failure struct {
	code     string
	problems []string // for response_metadata.messages, and errors
	quiet    bool     // not for errors
	extra    object
}

func fail(code string) *failure { return &failure{code: code} }

func invalid(problem string) *failure {
	return &failure{code: "invalid_arguments", problems: []string{problem}}
}

var timestamp = regexp.MustCompile(`^\d{1,12}\.\d{1,6}$`)

// replyTo checks a thread_ts and returns the root of that thread.
func (c *channel) replyTo(ts string) (string, *failure) {
	if ts == "" {
		return "", nil
	}
	if !timestamp.MatchString(ts) {
		return "", &failure{code: "invalid_thread_ts", problems: []string{ts + " is not a valid thread_ts"}, quiet: true}
	}
	root := c.find(ts)
	if root == nil || root.visibleTo != "" {
		return "", fail("cannot_reply_to_message")
	}
	return cmp.Or(root.threadTS, root.ts), nil
}

// known finds a person whom the call may name by id.
func (s *world) known(c *call, id string) *Person {
	if p := s.userByID(id); p != nil && s.knows(c.in, p) {
		return p
	}
	return nil
}

// joined finds a channel that the bot is in, by id.
func (s *world) joined(c *call, id string) *channel {
	if ch := s.identified(c.in, id); ch != nil && ch.has(c.in.botUser) {
		return ch
	}
	return nil
}

// listed returns the workspace that a method which lists is asked about.
// With a token of an organization it has to be named.
func (s *installations) listed(c *call) (string, *failure) {
	team := c.str("team_id")
	switch {
	case !c.in.org():
		return c.in.team, nil // team_id is ignored
	case team == "":
		return "", fail("missing_argument")
	case !s.owns(c.in, team):
		return "", fail("invalid_team")
	}
	return team, nil
}
