package uistream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A place is the thread of a chat.
type place struct {
	thread agentrun.ThreadID
	origin agentrun.Origin
	agent  string // answers there; empty if none does any more
	// shared says that this is the thread of a conversation on another surface, in
	// which there may be other people. The person sees what that conversation shows,
	// and everything about their own messages.
	shared bool
}

// sharedID returns the surface and the thread that the id of a chat names, if it names
// a conversation on another surface.
func sharedID(chat string) (from string, thread agentrun.ThreadID, ok bool) {
	from, id, _ := strings.Cut(chat, ":")
	_, err := approvals.Partition(id)
	return from, agentrun.ThreadID(id), err == nil && from != "" && from != surface && strings.HasPrefix(id, "thread-")
}

// errNoChat says that there is no such chat, or that the person may not open it.
var errNoChat = errors.Join(errors.New("no such chat"), approvals.ErrNotFound)

// placeOf finds the thread of a chat. Knowing the id gives no access: a conversation
// on another surface can be opened only by people who are in it now, and every other
// id names a chat of the person's own.
func (s *Server) placeOf(ctx context.Context, user approvals.UserID, chat string) (place, error) {
	if !chatIDOK(chat) {
		return place{}, errNoChat
	}
	from, id, ok := sharedID(chat)
	if !ok {
		o := s.origin(user, chat)
		return place{thread: agentrun.ThreadIDOf(o), origin: o, agent: s.c.Agent}, nil
	}
	t, err := s.c.Runs.Thread(ctx, id)
	if err != nil {
		return place{}, err
	}
	if t.Origin.Surface != from {
		return place{}, errNoChat
	}
	agent, err := s.c.People.MayOpen(ctx, user, t.Origin)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return place{}, errNoChat
	}
	return place{thread: id, origin: t.Origin, agent: agent, shared: true}, err
}

// hasRun reports whether the run belongs to the chat, of whichever person.
func hasRun(chat string, run agentrun.Run) bool {
	if from, id, ok := sharedID(chat); ok {
		return run.Thread == id && run.Origin.Surface == from
	}
	return run.Origin.Surface == surface && run.Origin.Root == chat
}

// load assembles a turn as the person sees it.
func (s *Server) load(ctx context.Context, p place, user approvals.UserID, head approvals.RunID) (*turn, error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime) // a store that hangs must not block a stream for ever
	defer cancel()
	t, err := s.turns.load(ctx, head)
	if err != nil || !p.shared {
		return t, err
	}
	return t, s.narrow(ctx, t, user)
}

// mayRead reports whether the person may read the arguments of a batch. A lookup that
// failed is an error.
func (s *Server) mayRead(ctx context.Context, user approvals.UserID, b approvals.Batch) (bool, error) {
	err := s.c.People.MayRead(ctx, user, b)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return false, nil
	}
	return err == nil, err
}

// narrow removes from a turn what the person could not read in the conversation. It
// keeps the answers of the agent, the calls that the person may read, and everything
// that they asked for themselves.
func (s *Server) narrow(ctx context.Context, t *turn, user approvals.UserID) error {
	known := map[approvals.BatchID]bool{}
	reads := func(c *call) (bool, error) {
		if c.asked == nil {
			return false, nil
		}
		if may, ok := known[c.batch.ID]; ok {
			return may, nil
		}
		may, err := s.mayRead(ctx, user, c.batch)
		if err == nil {
			known[c.batch.ID] = may
		}
		return may, err
	}
	var err error
	if t.ended, err = only(t.ended, reads); err != nil {
		return err
	}
	for _, st := range t.steps {
		if st.by == user {
			continue
		}
		all := st.calls
		if st.calls, err = only(all, reads); err != nil {
			return err
		}
		for i, c := range st.calls {
			st.calls[i] = c.excerpted()
		}
		st.unseen = len(all) > len(st.calls)
		st.response.Parts = shownParts(st, len(all) == 0)
	}
	return nil
}

// excerpted returns the call with the excerpt of its result that the card shows. The
// whole result can repeat arguments that are shown to nobody.
func (c *call) excerpted() *call {
	shown, said := *c, cmp.Or(c.asked.Execution.Excerpt, c.asked.Execution.Words)
	switch r := c.result.(type) {
	case agentrun.ToolReturn:
		if r.Outcome != agentrun.OutcomeDenied { // that is what people said
			r.Content, r.Parts, r.Metadata = quoted(said), nil, nil
		}
		shown.result = r
	case agentrun.RetryPrompt:
		r.Content = said
		shown.result = r
	case agentrun.UserPrompt: // not a result of a call
	}
	return &shown
}

func only(all []*call, is func(*call) (bool, error)) ([]*call, error) {
	var out []*call
	for _, c := range all {
		ok, err := is(c)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, c)
		}
	}
	return out, nil
}

func (s *step) has(id approvals.ToolCallID) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.id == id })
}

// shownParts returns the parts of a response that the conversation shows too: the
// calls that the step still has, and its text if it is an answer. A conversation does
// not show what the model writes beside calls.
func shownParts(s *step, isAnswer bool) []agentrun.ResponsePart {
	var parts []agentrun.ResponsePart
	for _, p := range s.response.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			if isAnswer {
				parts = append(parts, p)
			}
		case agentrun.CallPart:
			if s.has(p.ID) {
				parts = append(parts, p)
			}
		case agentrun.ProviderCall:
			if s.has(p.ID) {
				parts = append(parts, p)
			}
		case agentrun.Thinking:
		}
	}
	return parts
}
