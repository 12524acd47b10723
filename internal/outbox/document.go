package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/webhook"
)

// Surface is the name of the memos, and of the kind of due work that they are.
const Surface = "webhooks"

// schema is the version of every memo.
const schema = 1

// A document has the messages about one request.
type document struct {
	Schema   int      `json:"v"`
	Messages []stored `json:"messages"`
}

// A stored message is one message to one endpoint.
type stored struct {
	ID       string           `json:"id"` // the webhook-id
	Agent    string           `json:"agent"`
	Endpoint string           `json:"endpoint"`
	Type     string           `json:"type"`
	At       time.Time        `json:"at"`
	Data     json.RawMessage  `json:"data"`
	Attempts webhook.Attempts `json:"attempts,omitzero"`
	Claimed  time.Time        `json:"claimed,omitzero"` // until then, a process is sending it
}

// The endpoints of a partition of which there is something to remember.
type endpoints struct {
	Schema int        `json:"v"`
	All    []endpoint `json:"endpoints"`
}

type endpoint struct {
	Agent      string    `json:"agent"`
	Name       string    `json:"name"`
	Delivered  time.Time `json:"delivered,omitzero"`  // when it took a message, to about a minute
	SlowUntil  time.Time `json:"slow_until,omitzero"` // it asked for a pause
	DisabledAt time.Time `json:"disabled_at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why it is disabled, in a sentence
	Told       bool      `json:"told,omitempty"`   // people were told; in the home of the endpoint, in whichever partition it is disabled
	Telling    time.Time `json:"telling,omitzero"` // until then, a process is telling them
	GivenUp    []string  `json:"given_up,omitempty"`
}

// messageID is the same for every attempt, and for a message that is put again.
func messageID(about string, m Message) string {
	parts := []string{"countersign.webhook.v1", about, m.Agent, m.Endpoint, m.Type}
	if m.Key != "" {
		parts = append(parts, m.Key)
	}
	return "msg_" + approvals.TupleDigest(parts...).String()[:32]
}

// endpointsID is the id of the memo of the endpoints of a partition.
func endpointsID(partition int) string { return approvals.NewID("webhooks", partition, "endpoints") }

// of returns what is known of the endpoint; the zero value is one that works.
func (e endpoints) of(agent, name string) endpoint {
	if i := e.index(agent, name); i >= 0 {
		return e.All[i]
	}
	return endpoint{Agent: agent, Name: name}
}

func (e endpoints) index(agent, name string) int {
	return slices.IndexFunc(e.All, func(x endpoint) bool { return x.Agent == agent && x.Name == name })
}

// due is when people are to be told of a disabled endpoint; zero if of none.
func (e endpoints) due(now time.Time) time.Time {
	var first time.Time
	for _, x := range e.All {
		if x.DisabledAt.IsZero() || x.Told {
			continue
		}
		if at := later(now, x.Telling); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// held is how often a message for a disabled endpoint is looked at. Enable makes it
// due at once; this is in case that was cut off.
const held = time.Hour

// due is when to send the message next, not before now, and zero for never.
func (m stored) due(e endpoint, now time.Time) time.Time {
	if m.Attempts.State != webhook.Waiting {
		return time.Time{}
	}
	at := later(m.Attempts.Due, m.Claimed)
	if !e.DisabledAt.IsZero() {
		return later(at, now.Add(held))
	}
	return later(later(at, e.SlowUntil), now)
}

// due is when the first message is due, and zero for never.
func (d document) due(e endpoints, now time.Time) (at time.Time, first int) {
	first = -1
	for i, m := range d.Messages {
		due := m.due(e.of(m.Agent, m.Endpoint), now)
		if !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at, first = due, i
		}
	}
	return at, first
}

func (d document) index(id string) int {
	return slices.IndexFunc(d.Messages, func(m stored) bool { return m.ID == id })
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{b, a}, time.Time.Compare) }

// load reads a memo; version 0 says that there is none.
func load[T any](ctx context.Context, o *Outbox, id string) (v T, version int64, err error) {
	data, version, err := o.c.Store.Memo(ctx, id, Surface)
	if err != nil || version == 0 {
		return v, 0, err
	}
	if err := approvals.DecodeMemo(data, schema, &v); err != nil {
		return v, 0, fmt.Errorf("decode the outbox of %s: %w", id, err)
	}
	return v, version, nil
}

// maxTries bounds how often a lost race is run again. Each loss means that another
// change went through.
const maxTries = 64

// update changes a memo under its version, starting from zero if there is none.
// change reports whether there is something to store, and when the memo is due.
func update[T any](ctx context.Context, o *Outbox, id string, change func(v *T) (due time.Time, changed bool, err error)) error {
	for range maxTries {
		v, version, err := load[T](ctx, o, id)
		if err != nil {
			return err
		}
		due, changed, err := change(&v)
		if err != nil || !changed {
			return err
		}
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode the outbox of %s: %w", id, err)
		}
		if err = o.c.Store.CommitTimed(ctx, id, Surface, data, version, due); !errors.Is(err, approvals.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("change the outbox of %s: lost %d races: %w", id, maxTries, approvals.ErrConflict)
}
