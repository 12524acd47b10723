package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/webhook"
)

// A Status is where an endpoint stands, for the operator.
type Status struct {
	Agent      string    `json:"agent"`
	Endpoint   string    `json:"webhook"`
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why it is disabled
	Delivered  time.Time `json:"delivered_at,omitzero"`
	Waiting    int       `json:"waiting"`              // messages that are still to be delivered
	LastError  string    `json:"last_error,omitempty"` // of those that wait, the last
	GivenUp    []string  `json:"given_up,omitempty"`   // the newest requests whose message is not tried any more
}

// List returns every endpoint of which something is known, each once: calls of other
// agents, for which it gets messages too, have partitions of their own. An endpoint that
// is disabled in one of them is listed as disabled.
func (o *Outbox) List(ctx context.Context) ([]Status, error) {
	var list []Status
	at := func(agent, name string) int {
		i := slices.IndexFunc(list, func(s Status) bool { return s.Agent == agent && s.Endpoint == name })
		if i < 0 {
			i = len(list)
			list = append(list, Status{Agent: agent, Endpoint: name})
		}
		return i
	}
	last := map[int]time.Time{}
	for n := range approvals.Partitions {
		all, _, err := load[endpoints](ctx, o, endpointsID(n))
		if err != nil {
			return nil, err
		}
		for _, e := range all.All {
			list[at(e.Agent, e.Name)].add(e)
		}
		err = o.messages(ctx, n, func(_ string, m stored) error {
			i := at(m.Agent, m.Endpoint)
			list[i].Waiting++
			if m.Attempts.LastError != "" && !m.Attempts.Last.Before(last[i]) {
				list[i].LastError, last[i] = m.Attempts.LastError, m.Attempts.Last
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return list, nil
}

// add adds what one partition knows of the endpoint.
func (s *Status) add(e endpoint) {
	if !e.DisabledAt.IsZero() && (s.DisabledAt.IsZero() || e.DisabledAt.Before(s.DisabledAt)) {
		s.DisabledAt, s.Reason = e.DisabledAt.UTC(), e.Reason
	}
	if e.Delivered.After(s.Delivered) {
		s.Delivered = e.Delivered.UTC()
	}
	s.GivenUp = append(s.GivenUp, e.GivenUp...)
}

// messages yields the messages of a partition that wait.
func (o *Outbox) messages(ctx context.Context, partition int, f func(id string, m stored) error) error {
	ids, err := o.c.Store.Timed(ctx, Surface, partition)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id == endpointsID(partition) {
			continue
		}
		d, _, err := load[document](ctx, o, id)
		if err != nil {
			return err
		}
		for _, m := range d.Messages {
			if m.Attempts.State != webhook.Waiting {
				continue
			}
			if err := f(id, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// Enable has messages sent again to an endpoint that is disabled, and those that
// wait for it sent at once, each with its whole schedule, also if it is not disabled. It
// returns how many those are. It may be repeated.
func (o *Outbox) Enable(ctx context.Context, agent, name string) (waiting int, err error) {
	known := false
	for i := range approvals.Partitions {
		n := (homeOf(agent, name) + i) % approvals.Partitions // so that people are told if it is disabled again meanwhile
		all, _, err := load[endpoints](ctx, o, endpointsID(n))
		if err != nil {
			return waiting, err
		}
		if all.index(agent, name) >= 0 {
			known = true
			err = o.changeEndpoint(ctx, endpointsID(n), agent, name, func(e *endpoint) bool {
				e.DisabledAt, e.Reason, e.Told, e.Telling, e.SlowUntil = time.Time{}, "", false, time.Time{}, time.Time{}
				return true
			})
			if err != nil {
				return waiting, err
			}
		}
		again := map[string]int{}
		err = o.messages(ctx, n, func(id string, m stored) error {
			if m.Agent == agent && m.Endpoint == name {
				again[id]++
			}
			return nil
		})
		if err != nil {
			return waiting, err
		}
		for id, count := range again {
			known = true
			_, _, err := o.restart(ctx, id, func(m stored) bool {
				return m.Agent == agent && m.Endpoint == name && m.Attempts.State == webhook.Waiting
			})
			if err != nil {
				return waiting, err
			}
			waiting += count
		}
	}
	if !known {
		return 0, fmt.Errorf("webhook %q of agent %q: %w", name, agent, approvals.ErrNotFound)
	}
	return waiting, nil
}

// Redeliver sends the messages about a request again, under the ids that they had. It returns
// how many are due now, and how many wait until their endpoint is enabled.
func (o *Outbox) Redeliver(ctx context.Context, id string) (due, held int, err error) {
	due, held, err = o.restart(ctx, id, func(stored) bool { return true })
	if err == nil && due+held == 0 {
		err = fmt.Errorf("messages about %s: %w", id, approvals.ErrNotFound)
	}
	if err != nil {
		return 0, 0, err
	}
	if err := o.takeUp(ctx, id); err != nil {
		return due, held, fmt.Errorf("the messages are sent again, but are still listed as given up: %w", err)
	}
	return due, held, nil
}

// takeUp forgets that messages about a request were given up, but for those that are again.
func (o *Outbox) takeUp(ctx context.Context, id string) error {
	n, err := approvals.Partition(id)
	if err != nil {
		return err
	}
	err = update(ctx, o, endpointsID(n), func(all *endpoints) (due time.Time, changed bool, err error) {
		for i, e := range all.All {
			if at := slices.Index(e.GivenUp, id); at >= 0 {
				all.All[i].GivenUp, changed = slices.Delete(e.GivenUp, at, at+1), true
			}
		}
		return all.due(o.c.Now()), changed, nil
	})
	if err != nil {
		return err
	}
	d, _, err := load[document](ctx, o, id)
	for _, m := range d.Messages {
		if s := m.Attempts.State; err == nil && s != webhook.Waiting && s != webhook.Done {
			err = o.giveUp(ctx, id, m)
		}
	}
	return err
}

// restart makes messages of a request due at once, as if they had never been sent; those for an
// endpoint that is disabled are held.
func (o *Outbox) restart(ctx context.Context, id string, which func(m stored) bool) (due, held int, err error) {
	all, err := o.endpointsOf(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	err = update(ctx, o, id, func(d *document) (time.Time, bool, error) {
		due, held = 0, 0
		for i, m := range d.Messages {
			if !which(m) {
				continue
			}
			d.Messages[i].Attempts, d.Messages[i].Claimed = webhook.Attempts{}, time.Time{}
			if all.of(m.Agent, m.Endpoint).DisabledAt.IsZero() {
				due++
			} else {
				held++
			}
		}
		at, _ := d.due(all, o.c.Now())
		return at, due+held > 0, nil
	})
	return due, held, err
}
