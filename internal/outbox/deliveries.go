package outbox

import (
	"context"
	"time"

	"github.com/countersign/countersign/internal/webhook"
)

// A Delivery is where one message about a request stands, for the operator.
type Delivery struct {
	ID         string    `json:"id"` // the webhook-id
	Agent      string    `json:"agent"`
	Endpoint   string    `json:"webhook"`
	Type       string    `json:"type"`
	At         time.Time `json:"at"`
	State      string    `json:"state"` // waiting, done, unwanted, unsendable or undelivered
	Attempts   int       `json:"attempts"`
	Last       time.Time `json:"last_attempt,omitzero"`
	Next       time.Time `json:"next_attempt,omitzero"`
	Held       bool      `json:"held,omitempty"` // until the endpoint, which is disabled, is enabled
	LastStatus int       `json:"last_status,omitempty"`
	LastError  string    `json:"last_error,omitempty"`
}

// Deliveries returns where the messages about a request stand, as they were made.
func (o *Outbox) Deliveries(ctx context.Context, id string) ([]Delivery, error) {
	all, err := o.endpointsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	d, _, err := load[document](ctx, o, id)
	if err != nil {
		return nil, err
	}
	list := make([]Delivery, len(d.Messages))
	for i, m := range d.Messages {
		a := m.Attempts
		list[i] = Delivery{
			ID: m.ID, Agent: m.Agent, Endpoint: m.Endpoint, Type: m.Type, At: m.At.UTC(), State: string(a.State),
			Attempts: a.Count, Last: a.Last.UTC(), LastStatus: a.LastStatus, LastError: a.LastError,
		}
		if a.State != webhook.Waiting {
			continue
		}
		list[i].State = "waiting"
		if e := all.of(m.Agent, m.Endpoint); !e.DisabledAt.IsZero() {
			list[i].Held = true
		} else {
			list[i].Next = m.due(e, o.c.Now()).UTC()
		}
	}
	return list, nil
}
