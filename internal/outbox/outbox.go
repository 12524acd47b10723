package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/webhook"
)

// Store keeps the memos. CommitTimed also says when a memo is due, and Timed lists
// the ids of a partition that are due now or later. The state package has the one
// implementation.
type Store interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	CommitTimed(ctx context.Context, id, surface string, data []byte, version int64, due time.Time) error
	Timed(ctx context.Context, surface string, partition int) ([]string, error)
}

// Sender makes one attempt; [webhook.Sender] does.
type Sender interface {
	Send(ctx context.Context, e webhook.Endpoint, m webhook.Message) webhook.Outcome
}

// Config is what an [Outbox] works with. A process that sends nothing has no Sender,
// Endpoint and Tell.
type Config struct {
	Store  Store
	Sender Sender
	// Endpoint returns an endpoint of an agent as it is configured now.
	Endpoint func(agent, name string) (webhook.Endpoint, bool)
	// Tell tells people once that an endpoint is disabled.
	Tell func(ctx context.Context, d Disabled) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Disabled is an endpoint that gets no more messages until it is enabled again.
type Disabled struct {
	Agent    string
	Endpoint string
	Reason   string // a sentence of ours
}

// Outbox holds no message itself: any number of them may work on one store.
type Outbox struct {
	c       Config
	sending sending
}

// New returns an outbox.
func New(c Config) (*Outbox, error) {
	if c.Store == nil || c.Now == nil {
		return nil, errors.New("an outbox needs a store and a clock")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Outbox{c: c}, nil
}

// A Message is for one endpoint of an agent.
type Message struct {
	Agent    string
	Endpoint string
	Type     string
	At       time.Time
	Data     json.RawMessage // a JSON object
	Key      string          // tells apart messages of one type about one request; empty if there is one
}

// Put keeps a message about the request with this id. The same message again
// changes nothing, also if it was delivered. It is as durable as the next durable
// commit in the partition of the request.
func (o *Outbox) Put(ctx context.Context, about string, m Message) error {
	all, err := o.endpointsOf(ctx, about)
	if err != nil {
		return err
	}
	id := messageID(about, m)
	return update(ctx, o, about, func(d *document) (time.Time, bool, error) {
		if d.index(id) >= 0 {
			return time.Time{}, false, nil
		}
		d.Schema = schema
		d.Messages = append(d.Messages, stored{
			ID: id, Agent: m.Agent, Endpoint: m.Endpoint, Type: m.Type, At: m.At.UTC(), Data: m.Data,
		})
		at, _ := d.due(all, o.c.Now())
		return at, true, nil
	})
}

// A waitError says when there is something to do. It is no failure.
type waitError struct{ after time.Duration }

func (e *waitError) Error() string             { return "nothing is due yet" }
func (e *waitError) RetryAfter() time.Duration { return e.after }

// lease is how long a process has for one attempt. It is longer than an attempt can
// take, and its end is when another process sends a message whose sender died.
const lease = 45 * time.Second

// Reconcile does what is due under the id: it sends the messages of a request, or
// tells people of disabled endpoints. The due index calls it.
func (o *Outbox) Reconcile(ctx context.Context, id string) error {
	n, err := approvals.Partition(id)
	if err != nil {
		return err
	}
	if id == endpointsID(n) {
		return o.tell(ctx, id)
	}
	for ctx.Err() == nil {
		m, err := o.claim(ctx, id)
		if err != nil || m.ID == "" {
			return err
		}
		outcome, configured := o.send(ctx, m)
		// What became of it is stored even while the process is stopping.
		settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err = o.settle(settling, id, m, outcome, configured)
		cancel()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// send makes an attempt for a claimed message.
func (o *Outbox) send(ctx context.Context, m stored) (outcome webhook.Outcome, configured bool) {
	defer o.sending.end(m)
	to, configured := o.c.Endpoint(m.Agent, m.Endpoint)
	if !configured {
		return webhook.Outcome{Kind: webhook.Retry, Reason: "The webhook is not in the configuration."}, false
	}
	outcome = o.c.Sender.Send(ctx, to, webhook.Message{ID: m.ID, Type: m.Type, Timestamp: m.At, Data: m.Data, Trace: traceOf(m.Data)})
	o.sending.attempted(m, outcome.Kind == webhook.Delivered)
	return outcome, true
}

// claim returns a message that is due, which nobody else sends for the time of the
// lease, and which is counted for its endpoint. Without one it returns a [waitError] if
// there will be one, and otherwise takes the memo out of the due index.
func (o *Outbox) claim(ctx context.Context, id string) (stored, error) {
	all, err := o.endpointsOf(ctx, id)
	if err != nil {
		return stored{}, err
	}
	var m stored
	err = update(ctx, o, id, func(d *document) (time.Time, bool, error) {
		now := o.c.Now()
		o.sending.end(m) // the change before was not stored
		m = stored{}
		at, i := d.due(all, now)
		switch {
		case i < 0:
			return time.Time{}, len(d.Messages) > 0, nil
		case at.After(now):
			return time.Time{}, false, &waitError{at.Sub(now)}
		case !o.sending.begin(d.Messages[i]):
			return time.Time{}, false, &waitError{busyFor}
		}
		d.Messages[i].Claimed = now.Add(lease)
		m = d.Messages[i]
		at, _ = d.due(all, now)
		return at, true, nil
	})
	if err != nil {
		o.sending.end(m)
	}
	return m, err
}

// settle records how an attempt ended. The endpoint is first: if the process dies
// between the two, the message is sent again, or waits for the endpoint.
func (o *Outbox) settle(ctx context.Context, id string, m stored, outcome webhook.Outcome, configured bool) error {
	now, jitter := o.c.Now(), rand.Float64() //nolint:gosec // jitter is no secret
	next := m.Attempts.Next(outcome, now, jitter)
	disabled := false
	if configured {
		var err error
		if disabled, err = o.learn(ctx, id, m, outcome, next); err != nil {
			return err
		}
	}
	if disabled && next.State.DisablesEndpoint() { // it waits for the endpoint, and then begins anew
		next = webhook.Attempts{Last: next.Last, LastStatus: next.LastStatus, LastError: next.LastError}
	}
	log := []slog.Attr{
		slog.String("agent", m.Agent), slog.String("webhook", m.Endpoint), slog.String("request", id),
		slog.String("message", m.ID), slog.String("reason", outcome.Reason),
	}
	givenUp := next.State != webhook.Waiting && next.State != webhook.Done
	if givenUp {
		o.c.Log.LogAttrs(ctx, slog.LevelError, "a webhook message is given up", log...)
		if err := o.giveUp(ctx, id, m); err != nil {
			return err
		}
	}
	all, err := o.endpointsOf(ctx, id)
	if err != nil {
		return err
	}
	stores := false
	err = update(ctx, o, id, func(d *document) (time.Time, bool, error) {
		i := d.index(m.ID)
		if stores = i >= 0 && d.Messages[i].Claimed.Equal(m.Claimed); !stores {
			return time.Time{}, false, nil // another process took it over, or an operator sent it again
		}
		d.Messages[i].Attempts, d.Messages[i].Claimed = next, time.Time{}
		at, _ := d.due(all, now)
		return at, true, nil
	})
	if err == nil && stores && givenUp { // an operator's command may have taken it off the list
		err = o.giveUp(ctx, id, m)
	}
	return err
}

func (o *Outbox) endpointsOf(ctx context.Context, id string) (endpoints, error) {
	n, err := approvals.Partition(id)
	if err != nil {
		return endpoints{}, err
	}
	all, _, err := load[endpoints](ctx, o, endpointsID(n))
	if err != nil {
		return endpoints{}, fmt.Errorf("load the webhooks: %w", err)
	}
	return all, nil
}
