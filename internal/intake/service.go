package intake

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Executor says that the client that asked executes the calls.
const Executor approvals.Executor = "client"

// Store keeps what a [Service] knows of a request besides its run and its batch.
// The state package has the one implementation.
type Store interface {
	Memo(ctx context.Context, id, surface string) (data []byte, version int64, err error)
	CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error
	KeepMemo(ctx context.Context, id, surface string, data []byte, version int64) error
	MemoParts(ctx context.Context, id, surface string) (data []byte, parts map[string][]byte, version int64, err error)
	ChangeMemo(ctx context.Context, m agentrun.MemoChange) error
	RevertMemo(ctx context.Context, id, surface string, is, to []byte, version int64) error
	Confirm(ctx context.Context, id string) error
	Prefetch(ctx context.Context, r approvals.Reads) context.Context
	Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error)
	Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error)
}

// Feed is where the facts of a partition are read; [state.Feed] does that.
type Feed interface {
	LastFact(ctx context.Context, partition int) (string, error)
	Follow(ctx context.Context, partition int, after string) iter.Seq2[approvals.StoredEvent, error]
}

// Runner rules on requests and stores them; [agentrun.Runner] does.
type Runner interface {
	Submit(ctx context.Context, q agentrun.RemoteRequest) (agentrun.RemoteRun, error)
	Permit(ctx context.Context, q agentrun.RemoteRequest) (*agentrun.Admission, agentrun.Ruled, error)
	Admit(ctx context.Context, memo agentrun.MemoChange, all ...*agentrun.Admission) error
	Remote(ctx context.Context, id approvals.RunID) (agentrun.RemoteRun, error)
	Clear(ctx context.Context, r agentrun.RemoteRun, call approvals.ToolCall) error
	Unclear(ctx context.Context, run agentrun.Run, call approvals.ToolCall)
}

// Desk moves batches; [approvals.Desk] does.
type Desk interface {
	Batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error)
	Call(ctx context.Context, b approvals.Batch, call approvals.ToolCallID) (approvals.ToolCall, error)
	Withdraw(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Withdraw) (approvals.Batch, error)
	Fulfill(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Fulfill) (approvals.Batch, error)
	Conclude(ctx context.Context, id approvals.BatchID, r approvals.RequestID, cmd approvals.Conclude) (approvals.Batch, error)
}

// A Notifier tells the endpoint of an agent that something happened to a request of
// it. An error means that it is to be tried again; then it may be told twice.
type Notifier func(ctx context.Context, n Notice) error

// A Notice is a message for an endpoint.
type Notice struct {
	Agent    string
	Endpoint string
	Type     string
	At       time.Time
	Request  Request              // with its calls for [EventCreated] and [EventSettled]
	Call     approvals.ToolCallID // that it is about; empty for the request
	Tool     string
	Key      string // tells apart notices of one type about one request
}

// A Signer makes the receipt of a call of a request, of nothing but what these say.
// A call that has none yet has an empty one.
type Signer func(r Request, c CallStatus) (string, error)

// Config is what a [Service] works with. Notify, Fulfillers, Sign and Log may be nil.
type Config struct {
	Store  Store
	Feed   Feed
	Runner Runner
	Desk   Desk
	Now    func() time.Time
	// Shown is the time by which a request that is only read has expired, or not. Now if nil.
	Shown func() time.Time
	// Agrees is an error if Now may be wrong: then it ends nothing, and Shown may be another
	// time afterwards. Now is trusted if nil.
	Agrees func(ctx context.Context) error
	Notify Notifier
	// Fulfillers are the clients that may give the results of these calls.
	Fulfillers func(agent, tool string) []Client
	Sign       Signer
	Log        *slog.Logger
}

// Service is the use case behind the doors. It holds no request: any number of
// services may work on one store.
type Service struct {
	c        Config
	hubs     hubs
	owners   cache[approvals.BatchID, owner]
	turns    cache[string, turn] // by the index of a fingerprint
	counters counters
}

// New returns a service.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Feed == nil || c.Runner == nil || c.Desk == nil || c.Now == nil {
		return nil, errors.New("an intake needs a store, a feed, a runner, a desk and a clock")
	}
	if c.Shown == nil {
		c.Shown = c.Now
	}
	if c.Agrees == nil {
		c.Agrees = func(context.Context) error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{c: c}
	s.hubs.feed, s.hubs.log = c.Feed, c.Log
	return s, nil
}

// Get returns a request of the client as it stands. One of another agent is
// [approvals.ErrNotFound].
func (s *Service) Get(ctx context.Context, c Client, id approvals.RunID) (Request, error) {
	x, err := s.find(ctx, c, id)
	if err != nil {
		return Request{}, err
	}
	return s.view(ctx, x)
}

// DeliverReads is what [Service.Deliver] reads about a run.
func DeliverReads(run approvals.RunID) []approvals.MemoKey {
	return []approvals.MemoKey{{ID: string(run), Surface: recordMemo}}
}

// Deliver is the [agentrun.Deliverer] of [Executor]. A webhook gets
// a message; where answers are fetched nobody is told. A call that was refused at its
// claim before the runner entered it takes no place of the day.
func (s *Service) Deliver(ctx context.Context, d agentrun.Delivery) error {
	s.counters.of(d.Run.Agent).ended(d.Run.ID)
	rec, _, err := s.record(ctx, d.Run.ID)
	for _, kept := range rec.Calls {
		s.giveBack(ctx, d.Run, kept)
	}
	if s.c.Notify == nil {
		return nil
	}
	if err != nil || rec.Notify == "" {
		return err
	}
	r, _, err := d.Answers(ctx)
	if err != nil {
		return err
	}
	request, err := s.view(ctx, found{id: d.Run.ID, rec: rec, remote: r})
	if err != nil {
		return err
	}
	return s.notify(ctx, EventSettled, rec, request)
}

// notify tells the endpoint that the request names, if it names one.
func (s *Service) notify(ctx context.Context, event string, rec record, r Request) error {
	if s.c.Notify == nil || rec.Notify == "" {
		return nil
	}
	at := r.CreatedAt
	for _, c := range r.Calls {
		if event == EventSettled && c.DecidedAt.After(at) {
			at = c.DecidedAt
		}
	}
	err := s.c.Notify(ctx, Notice{Agent: rec.Agent, Endpoint: rec.Notify, Type: event, At: at, Request: r})
	if err != nil {
		return fmt.Errorf("notify %q of request %s: %w", rec.Notify, r.ID, err)
	}
	return nil
}
