package intake

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The types of events.
const (
	EventCreated   = "approval.created"
	EventDecided   = "approval.decided"   // by a person, about one call; it may need more people
	EventRetracted = "approval.retracted" // a person took a decision back
	EventAmended   = "approval.amended"   // a person changed the arguments of a call
	EventFulfilled = "approval.fulfilled" // the result of an external call is in
	EventCall      = "approval.call_settled"
	EventSettled   = "approval.settled" // the last call has its outcome
	EventClaimed   = "approval.claimed"
	EventReported  = "approval.reported" // it is known what became of an approved call
	// EventWaiting is for those who may give the result of an external call of
	// another agent, and only in notices.
	EventWaiting = "call.waiting"
)

// EventTypes are the types of [Event].
var EventTypes = []string{
	EventCreated, EventDecided, EventRetracted, EventAmended, EventFulfilled, EventCall, EventSettled, EventClaimed, EventReported,
}

// isPlace reports whether a text is the place of a fact: two numbers that the store can
// count to, and a third one if the fact was stored together with later ones.
func isPlace(s string) bool {
	s, within, inside := strings.Cut(s, ".")
	at, n, ok := strings.Cut(s, "-")
	_, bad := strconv.ParseUint(at, 10, 64)
	_, worse := strconv.ParseUint(n, 10, 64)
	_, worst := strconv.ParseUint(within, 10, 16)
	return ok && bad == nil && worse == nil && (!inside || worst == nil)
}

// Place returns where events are now: those after it are still to come.
func (s *Service) Place(ctx context.Context, c Client) (string, error) {
	at, err := s.c.Feed.LastFact(ctx, agentrun.RemotePartition(Executor, c.Name))
	if at == "" {
		at = "0-0"
	}
	return at, err
}

// Events yields what happens to the requests of the client after a place, each once and
// in the order in which it was committed, and waits for more until ctx ends. The empty
// place means now. It ends after an error, and can be called again with the ID of the
// last event. A request that needs nobody has no events, and nothing that a payload says
// changes whose events they are.
func (s *Service) Events(ctx context.Context, c Client, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var err error
		if after == "" {
			after, err = s.Place(ctx, c)
		} else if !isPlace(after) {
			err = invalid("place", "is not that of an event")
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		for fact, err := range s.c.Feed.Follow(ctx, agentrun.RemotePartition(Executor, c.Name), after) {
			var e Event
			if err == nil {
				e = eventOf(fact.Event)
				e.ID = fact.ID
				e.Request, err = s.owned(ctx, c, approvals.BatchOf(fact.Event))
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if e.Request != "" && e.Type != "" && !yield(e, nil) {
				return
			}
		}
	}
}

// eventOf is what a client is told of a fact: no names, and nothing at all of
// reminders, which are between people.
func eventOf(fact approvals.Event) Event {
	switch f := fact.(type) {
	case approvals.Opened:
		return Event{Type: EventCreated, At: f.At}
	case approvals.Decided:
		return Event{Type: EventDecided, Call: f.Call, At: f.At}
	case approvals.Retracted:
		return Event{Type: EventRetracted, Call: f.Call, At: f.At}
	case approvals.Amended:
		return Event{Type: EventAmended, Call: f.Call, At: f.At}
	case approvals.Fulfilled:
		return Event{Type: EventFulfilled, Call: f.Call, At: f.At}
	case approvals.Settled:
		return Event{Type: EventCall, Call: f.Call, At: f.At}
	case approvals.Resolved:
		return Event{Type: EventSettled, At: f.At}
	case approvals.Concluded:
		if f.State == approvals.Claimed {
			return Event{Type: EventClaimed, Call: f.Call, At: f.At}
		}
		return Event{Type: EventReported, Call: f.Call, At: f.At}
	case approvals.Reported:
		return Event{Type: EventReported, Call: f.Call, At: f.At}
	case approvals.Reminded, approvals.Escalated:
	}
	return Event{}
}

// owned returns the request of the client that a batch is of, or nothing.
func (s *Service) owned(ctx context.Context, c Client, id approvals.BatchID) (approvals.RunID, error) {
	of, ok := s.owners.get(id)
	if !ok {
		b, err := s.c.Desk.Batch(ctx, id)
		switch {
		case errors.Is(err, approvals.ErrUnreadable), isNotFound(err):
			return "", nil // it must not end the stream for all others
		case err != nil:
			return "", err
		case b.Executor == Executor:
			of = owner{b.Agent, b.Run}
		}
		s.owners.put(id, of)
	}
	if of.agent != c.Name {
		return "", nil
	}
	return of.run, nil
}

// An owner is the agent and the run to which a batch belongs. That never changes, and
// it is needed for each fact when a client follows the events of a partition.
type owner struct {
	agent string
	run   approvals.RunID
}

// A Filter says which requests are listed. The zero value lists all.
type Filter struct {
	Group      string
	ExternalID string
	State      State
	Limit      int // 0 for [DefaultList]
}

// DefaultList is how many requests are listed if the filter does not say.
const DefaultList = 50

// List returns requests of the client, the newest first: those that are open, and
// of the others the newest [MaxDone]. They are without what makes them large or
// costly, the state of the caller and the receipts: [Service.Get] has these. One that
// cannot be read is left out, and in the log.
func (s *Service) List(ctx context.Context, c Client, f Filter) ([]Request, error) {
	if f.Limit == 0 {
		f.Limit = DefaultList
	}
	if f.Limit < 0 || f.Limit > MaxDone {
		return nil, invalid("limit", "must be between 1 and %d", MaxDone)
	}
	d, _, err := s.agent(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	var all []Request
	for i := len(d.Recent) - 1; i >= 0 && len(all) < f.Limit; i-- {
		of := d.Recent[i]
		if f.Group != "" && of.Group != f.Group || f.ExternalID != "" && of.External != f.ExternalID {
			continue
		}
		var r Request
		x, err := s.find(ctx, c, of.Run)
		if err == nil {
			r, err = s.standing(ctx, x)
		}
		switch {
		case isNotFound(err):
			continue // it was counted, and never stored
		case errors.Is(err, approvals.ErrUnreadable): // it must not hide the others
			s.c.Log.WarnContext(ctx, "a listed request cannot be read", slog.String("agent", c.Name), slog.String("run", string(of.Run)), slog.Any("err", err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if f.State == "" || r.State == f.State {
			all = append(all, r)
		}
	}
	return all, nil
}
