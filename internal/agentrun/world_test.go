package agentrun_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A world is a runner with everything around it: a store, a scripted model, a
// policy, tools that remember what they did.
type world struct {
	t      *testing.T
	store  *hooked
	model  *script
	policy *rules
	agent  agentrun.Agent
	now    func() time.Time
	log    *slog.Logger
	fences int
	mu     sync.Mutex
	ran    []string // executions, in the order in which they began
	// What bob says of a call in doubt; empty: he gives it up. Carol joins him if
	// it is to run again.
	doubt approvals.Verdict
	// How many runs of one agent and of one person a runner works on; 0 is no bound.
	perAgent, perRequester int
	rollout                time.Duration
}

var origin = agentrun.Origin{Surface: "slack", Team: "T1", Channel: "C1", Root: "1.1"}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, model: &script{}, policy: &rules{}, now: func() time.Time { return epoch }, log: slog.New(slog.DiscardHandler)}
	w.store = newStore(t, func() time.Time { return w.now() })
	w.agent = agentrun.Agent{Name: "ops", Model: w.model, Tools: w.vectorTools()}
	return w
}

func (w *world) runner() *agentrun.Runner { return w.runnerOn(w.store) }

func (w *world) catalog() *agentrun.Catalog {
	return agentrun.NewCatalog(w.agents, slog.New(slog.DiscardHandler))
}

func (w *world) agents(name string) (agentrun.Agent, bool) {
	return w.agent, name == w.agent.Name || name == "second"
}

func (w *world) runnerOn(store agentrun.Store) *agentrun.Runner {
	return agentrun.NewRunner(agentrun.Config{
		Store: store, Policy: w.policy, Now: func() time.Time { return w.now() }, Log: w.log,
		Agents: w.agents, Rollout: w.rollout, PerAgent: w.perAgent, PerRequester: w.perRequester,
		NewFence: func() agentrun.Fence {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fences++
			return agentrun.Fence(fmt.Sprintf("fence-%d", w.fences))
		},
	})
}

// note remembers an execution.
func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = append(w.ran, what)
}

func (w *world) executed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ran)
}

func (w *world) mention(text string) agentrun.Run {
	w.t.Helper()
	run, err := w.runner().Mention(w.t.Context(), agentrun.Mention{
		Event: "ev-" + text, Origin: origin, Agent: "ops", Requester: "alice", Text: text,
	})
	require.NoError(w.t, err)
	return run
}

// work lets a runner work on the run and returns what became of it.
func (w *world) work(id approvals.RunID) agentrun.Run {
	w.t.Helper()
	require.NoError(w.t, w.runner().Work(w.t.Context(), id))
	return w.run(id)
}

func (w *world) run(id approvals.RunID) agentrun.Run {
	w.t.Helper()
	run, err := w.store.Run(w.t.Context(), id)
	require.NoError(w.t, err)
	return run
}

func (w *world) thread() agentrun.Thread {
	w.t.Helper()
	thread, err := w.store.Thread(w.t.Context(), agentrun.ThreadIDOf(origin))
	require.NoError(w.t, err)
	return thread
}

func (w *world) batch(id approvals.BatchID) approvals.Batch {
	w.t.Helper()
	b, err := w.store.Batch(w.t.Context(), id)
	require.NoError(w.t, err)
	return b
}

// decide lets bob decide about a call of a batch.
func (w *world) decide(id approvals.BatchID, call approvals.ToolCallID, v approvals.Verdict, reason string) {
	w.t.Helper()
	for _, a := range w.batch(id).Approvals {
		if a.Call.ID == call {
			require.NoError(w.t, w.store.move(id, nil, approvals.Decide{Decision: approvals.Decision{
				Call: call, By: approvals.Principal{User: "bob"}, Verdict: v, Digest: a.Call.Digest, Reason: reason, At: epoch,
			}}))
			return
		}
	}
	w.t.Fatalf("no call %s in batch %s", call, id)
}

// answerDoubts lets bob say what is to become of the calls in doubt of a batch, and
// returns how many there are.
func (w *world) answerDoubts(id approvals.BatchID) (doubts int) {
	w.t.Helper()
	for _, a := range w.batch(id).Approvals {
		if !a.InDoubt() {
			continue
		}
		doubts++
		verdict := cmp.Or(w.doubt, approvals.GiveUp)
		w.decide(id, a.Call.ID, verdict, "said bob")
		if asked, _ := w.batch(id).Approval(a.Call.ID); asked.Status == approvals.Pending {
			require.Equal(w.t, approvals.RunAgain, verdict)
			require.NoError(w.t, w.store.move(id, nil, approvals.Decide{Decision: approvals.Decision{
				Call: a.Call.ID, By: approvals.Principal{User: "carol"}, Verdict: verdict, Digest: a.Call.Digest, At: epoch,
			}}))
		}
	}
	return doubts
}

// amend lets alice, who asked, change the arguments of a call.
func (w *world) amend(id approvals.BatchID, call approvals.ToolCallID, args string) {
	w.t.Helper()
	for _, a := range w.batch(id).Approvals {
		if a.Call.ID == call {
			require.NoError(w.t, w.store.move(id, json.RawMessage(args), approvals.Amend{
				Call: call, From: a.Call.Digest, Args: json.RawMessage(args), Ruling: approvals.Permit{},
				By: approvals.Principal{User: "alice"}, At: epoch,
			}))
		}
	}
}

func (w *world) fulfill(id approvals.BatchID, call approvals.ToolCallID, r approvals.CallResult) {
	w.t.Helper()
	require.NoError(w.t, w.store.move(id, nil, approvals.Fulfill{Call: call, Result: r, By: "job", At: epoch}))
}

// resume makes the resume run of a batch and lets a runner work on it.
func (w *world) resume(id approvals.BatchID) agentrun.Run {
	w.t.Helper()
	require.NoError(w.t, w.runner().Resume(w.t.Context(), id))
	run, err := agentrun.ResumeRunID(id)
	require.NoError(w.t, err)
	return w.work(run)
}

func (w *world) history() []agentrun.Message {
	w.t.Helper()
	messages, err := w.store.Messages(w.t.Context(), agentrun.ThreadIDOf(origin), 0, w.thread().Messages)
	require.NoError(w.t, err)
	return messages
}

// A script is a model that gives these answers in turn, and "done" after them.
type script struct {
	mu       sync.Mutex
	answers  []any // Response, error, or func() (Response, error)
	requests []agentrun.ModelRequest
	reply    func(agentrun.ModelRequest) agentrun.Response // instead of answers
}

func (s *script) Request(ctx context.Context, r agentrun.ModelRequest) (agentrun.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	var next any = says("done")
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	if s.reply != nil {
		return s.reply(r), ctx.Err()
	}
	switch next := next.(type) {
	case agentrun.Response:
		return next, ctx.Err()
	case error:
		return agentrun.Response{}, next
	case func(context.Context) (agentrun.Response, error):
		return next(ctx)
	}
	panic(fmt.Sprintf("script: %T", next))
}

func says(text string) agentrun.Response {
	return agentrun.Response{
		Parts: []agentrun.ResponsePart{agentrun.Text{Content: text}}, FinishReason: agentrun.FinishStop,
		Usage: agentrun.Usage{InputTokens: 10, OutputTokens: 5},
	}
}

// calls is a response with calls, each "id tool args".
func calls(specs ...[3]string) agentrun.Response {
	r := agentrun.Response{FinishReason: agentrun.FinishToolCall, Usage: agentrun.Usage{InputTokens: 10, OutputTokens: 5}}
	for _, s := range specs {
		r.Parts = append(r.Parts, agentrun.CallPart{ToolCall: approvals.ToolCall{
			ID: approvals.ToolCallID(s[0]), Name: s[1], Args: json.RawMessage(s[2]),
		}})
	}
	return r
}

// rules is a policy: bob signs, unless a ruling is set for the tool.
type rules struct {
	by     map[string]approvals.Ruling
	err    error
	panics bool
	nobody bool                     // it has no default requirement
	heard  func(approvals.Proposal) // called with every proposal
	seen   []approvals.Proposal
	mu     sync.Mutex
}

func (r *rules) Rule(_ context.Context, p approvals.Proposal) (approvals.Ruling, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, p)
	if r.heard != nil {
		r.heard(p)
	}
	if r.panics {
		panic("no rules")
	}
	if r.err != nil {
		return approvals.Permit{}, r.err
	}
	if ruling, ok := r.by[p.Call.Name]; ok {
		return ruling, nil
	}
	if p.Gate == approvals.GateNone {
		return approvals.Permit{}, nil
	}
	return approvals.Ask{Requirement: signedBy("bob"), Why: "rules say so"}, nil
}

func (r *rules) Strictest(time.Time) approvals.Requirement {
	if r.nobody {
		return approvals.Requirement{}
	}
	return signedBy("bob", "carol")
}

// signedBy is a requirement that each of these signs.
func signedBy(users ...approvals.UserID) approvals.Requirement {
	var r approvals.Requirement
	for _, u := range users {
		r.Quorums = append(r.Quorums, approvals.Quorum{Name: string(u), Need: 1, From: approvals.From{Users: []approvals.UserID{u}}})
	}
	return r
}

// A fake is a tool made of functions.
type fake struct {
	spec     agentrun.Spec
	validate func(context.Context, agentrun.Call) error
	execute  func(context.Context, agentrun.Call) (agentrun.Result, error)
}

func (f *fake) Spec() agentrun.Spec { return f.spec }

func (f *fake) Validate(ctx context.Context, c agentrun.Call) error {
	if f.validate == nil {
		return nil
	}
	return f.validate(ctx, c)
}

func (f *fake) Execute(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
	return f.execute(ctx, c)
}

// x reads the argument that the tools of the vectors have.
func x(args json.RawMessage) (int, error) {
	var in struct {
		X *int `json:"x"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return 0, fmt.Errorf("x: Input should be a valid integer")
	}
	if in.X == nil {
		return 0, fmt.Errorf("x: Field required")
	}
	return *in.X, nil
}

func needsX(_ context.Context, c agentrun.Call) error {
	_, err := x(c.Args)
	return err
}

// does is a tool that notes its execution and returns "name:x".
func (w *world) does(name string, kind agentrun.Kind) *fake {
	return &fake{
		spec: agentrun.Spec{Name: name, Kind: kind}, validate: needsX,
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			n, err := x(c.Args)
			if err != nil {
				return agentrun.Result{}, err
			}
			w.note(fmt.Sprintf("%s:%d", name, n))
			return agentrun.Result{Value: json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("%s:%d", name, n)))}, nil
		},
	}
}

// vectorTools are the tools that the shared vectors describe.
func (w *world) vectorTools() []agentrun.Tool {
	cond := w.does("cond", agentrun.KindFunction)
	run := cond.execute
	cond.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		if n, _ := x(c.Args); !c.Approved {
			return agentrun.Result{}, &agentrun.ApprovalRequired{Metadata: json.RawMessage(fmt.Sprintf(`{"why":%d}`, n))}
		}
		return run(ctx, c)
	}
	slow := &fake{
		spec: agentrun.Spec{Name: "slow", Kind: agentrun.KindFunction}, validate: needsX,
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			n, _ := x(c.Args)
			return agentrun.Result{}, &agentrun.CallDeferred{Metadata: json.RawMessage(fmt.Sprintf(`{"job":%d}`, n))}
		},
	}
	return []agentrun.Tool{w.does("gated", agentrun.KindUnapproved), cond, slow, w.does("plain", agentrun.KindFunction)}
}

// brief is a history in a form that a test can read.
func brief(messages []agentrun.Message) []string {
	var out []string
	for _, m := range messages {
		switch m := m.(type) {
		case agentrun.Request:
			for _, p := range m.Parts {
				switch p := p.(type) {
				case agentrun.UserPrompt:
					out = append(out, "user: "+p.Content)
				case agentrun.ToolReturn:
					out = append(out, fmt.Sprintf("%s %s: %s", p.CallID, p.Outcome, p.Content))
				case agentrun.RetryPrompt:
					out = append(out, fmt.Sprintf("%s retry: %s", p.CallID, p.Content))
				}
			}
		case agentrun.Response:
			for _, p := range m.Parts {
				switch p := p.(type) {
				case agentrun.Text:
					out = append(out, "text: "+p.Content)
				case agentrun.Thinking:
				case agentrun.CallPart:
					out = append(out, fmt.Sprintf("call %s %s%s", p.ID, p.Name, p.Args))
				case agentrun.ProviderCall:
					out = append(out, fmt.Sprintf("ran %s %s%s: %s", p.ID, p.Name, p.Args, p.Output))
				}
			}
		}
	}
	return out
}

// say mentions "go", lets the model give these answers, and works until the run
// has ended or deferred.
func (w *world) say(answers ...any) agentrun.Run {
	w.t.Helper()
	w.model.answers = answers
	return w.work(w.mention("go").ID)
}

// added is what the thread says after the prompt.
func (w *world) added() []string {
	w.t.Helper()
	return brief(w.history())[1:]
}

// pending names what a deferred run waits for, people first.
func (w *world) pending(run agentrun.Run) (people, elsewhere []string) {
	w.t.Helper()
	require.Equal(w.t, agentrun.RunDeferred, run.Status, run.Failure)
	b := w.batch(run.Deferred)
	for _, a := range b.Approvals {
		people = append(people, string(a.Call.ID))
	}
	for _, c := range b.Calls {
		elsewhere = append(elsewhere, string(c.Call.ID))
	}
	return people, elsewhere
}
