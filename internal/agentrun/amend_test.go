package agentrun_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools"
)

type payment struct {
	To    string `json:"to"`
	Cents int    `json:"cents"`
	PIN   string `json:"pin,omitempty" countersign:"writeOnly"`
}

// payments is a policy: bob signs what is small, bob and carol what is large,
// and nobody what is too large.
type payments struct {
	tooLarge int
	seen     []approvals.Proposal
}

func (p *payments) Rule(_ context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	p.seen = append(p.seen, q)
	var in payment
	if err := json.Unmarshal(q.Call.Args, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Cents >= p.tooLarge:
		return approvals.Refuse{Reason: "That is too much."}, nil
	case in.Cents >= 100:
		return approvals.Ask{Requirement: signedBy("bob", "carol"), Why: "It is a lot.", Rule: "large@00000001"}, nil
	}
	return approvals.Ask{Requirement: signedBy("bob"), Rule: "small@00000001"}, nil
}

func (*payments) Strictest(time.Time) approvals.Requirement { return signedBy("nobody") }

// An office is a runner and a desk on the store that is shipped.
type office struct {
	*world
	state  *state.Store
	rules  *payments
	desk   *approvals.Desk
	runner *agentrun.Runner
	n      int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{world: newWorld(t), rules: &payments{tooLarge: 1000}}
	pay, err := tools.New(tools.Spec[payment]{Name: "pay", Description: "Pays.", Approval: tools.Always},
		func(_ context.Context, c agentrun.Call, _ payment) (string, error) {
			o.note(string(c.Args))
			return "paid", nil
		})
	require.NoError(t, err)
	o.agent.Tools = []agentrun.Tool{pay, o.does("plain", agentrun.KindFunction)}
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	o.state, err = state.Open(t.Context(), state.Options{Client: client})
	require.NoError(t, err)
	o.runner = agentrun.NewRunner(agentrun.Config{
		Store: o.state, Policy: o.rules, Now: time.Now,
		Agents: func(name string) (agentrun.Agent, bool) { return o.agent, name == "ops" },
	})
	o.desk = approvals.NewDesk(o.state, o.rules, o.catalog().CheckCall, time.Now)
	return o
}

// work works on the run and returns what became of it.
func (o *office) work(id approvals.RunID) agentrun.Run {
	o.t.Helper()
	require.NoError(o.t, o.runner.Work(o.t.Context(), id))
	run, err := o.state.Run(o.t.Context(), id)
	require.NoError(o.t, err)
	return run
}

// proposed lets the model propose a payment, and returns what waits for people.
func (o *office) proposed(args string) approvals.Batch {
	o.t.Helper()
	o.model.answers = []any{calls([3]string{"pay-1", "pay", args})}
	run, err := o.runner.Mention(o.t.Context(), agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
	require.NoError(o.t, err)
	b, err := o.desk.Batch(o.t.Context(), o.work(run.ID).Deferred)
	require.NoError(o.t, err)
	return b
}

func (o *office) request() approvals.RequestID {
	o.n++
	return approvals.RequestID(string(rune('a' + o.n)))
}

// amends lets alice, who asked, write new arguments.
func (o *office) amends(b approvals.Batch, args string) (approvals.Batch, error) {
	return o.desk.Amend(o.t.Context(), b.ID, o.request(), approvals.Amend{
		Call: "pay-1", From: b.Approvals[0].Call.Digest, Args: json.RawMessage(args), By: approvals.Principal{User: "alice"},
	})
}

// signs lets someone approve what is in the batch that they see.
func (o *office) signs(b approvals.Batch, who approvals.UserID) (approvals.Batch, error) {
	return o.desk.Decide(o.t.Context(), b.ID, o.request(), approvals.Decide{Decision: approvals.Decision{
		Call: "pay-1", By: approvals.Principal{User: who}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest,
	}})
}

// resumes works on the run that takes up the answers, and returns what it adds
// to the thread.
func (o *office) resumes(b approvals.Batch) []string {
	o.t.Helper()
	ctx := o.t.Context()
	require.NoError(o.t, o.runner.Resume(ctx, b.ID))
	id, err := agentrun.ResumeRunID(b.ID)
	require.NoError(o.t, err)
	run := o.work(id)
	require.Equal(o.t, agentrun.RunCompleted, run.Status, run.Failure)
	history, err := o.state.Messages(ctx, run.Thread, 0, run.To)
	require.NoError(o.t, err)
	requireAnswered(o.t, history)
	return brief(history)[1:]
}

// Someone changes what the model proposed: what does not fit the tool or the
// policy is refused, what was approved before counts no more, exactly the new
// bytes are signed and run, and the model is told.
func TestAnAmendedCallFromFormToExecution(t *testing.T) {
	o := newOffice(t)
	b := o.proposed(`{"to":"eve","cents":200}`)
	b, err := o.signs(b, "bob")
	require.NoError(t, err)
	require.Equal(t, approvals.Pending, b.Approvals[0].Status, "carol has not signed")

	_, err = o.amends(b, `{"to":"eve","cents":"1","pni":"1234"}`)
	require.ErrorIs(t, err, approvals.ErrInvalid)
	var many interface{ Unwrap() []error }
	require.ErrorAs(t, err, &many)
	require.EqualError(t, many.Unwrap()[0], "/cents: got string, want integer")
	require.EqualError(t, many.Unwrap()[1], "/pni: there is no such argument")
	_, err = o.amends(b, `{"to":"eve","cents":5000}`)
	require.ErrorIs(t, err, approvals.ErrRefused)
	unchanged, err := o.desk.Batch(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, b, unchanged, "bob's signature stands")

	const args = `{"to": "frank",  "cents": 9, "pin": "1234"}`
	amended, err := o.amends(b, args)
	require.NoError(t, err)
	a := amended.Approvals[0]
	require.Empty(t, a.Decisions)
	require.Equal(t, []approvals.UserID{"bob"}, a.Amendments[0].Cleared)
	require.Equal(t, approvals.DigestOf(b.ID, approvals.ToolCall{ID: "pay-1", Name: "pay", Args: json.RawMessage(args)}), a.Call.Digest)
	require.Equal(t, b.Approvals[0].Call.Digest, a.Proposed)
	require.Equal(t, "small@00000001", a.Rule)
	require.Equal(t, signedBy("bob"), a.Requirement, "the policy was asked again")
	last := o.rules.seen[len(o.rules.seen)-1]
	require.Equal(t, approvals.GateDeclared, last.Gate)
	require.Equal(t, b.SoFar, last.SoFar)
	require.Equal(t, approvals.SoFar{Steps: 1}, last.SoFar)
	require.Equal(t, "C1", last.Channel)

	_, err = o.signs(b, "bob")
	require.ErrorIs(t, err, approvals.ErrStale, "bob looks at the old arguments")
	_, err = o.signs(amended, "carol")
	require.ErrorIs(t, err, approvals.ErrNotEligible, "what is small is bob's")
	_, err = o.signs(amended, "bob")
	require.NoError(t, err)
	require.Equal(t, []string{
		`call pay-1 pay{"to":"eve","cents":200}`,
		`pay-1 success: "paid"`,
		`user: The arguments of call pay-1 (pay) were changed by a person before it was run. It was run with: ` +
			`{"cents":9,"pin":"(4 characters)","to":"frank"}`,
		"text: done",
	}, o.resumes(amended))
	require.Equal(t, []string{args}, o.executed(), "exactly the bytes that were signed")
}

// A signature does not hold against the policy: what it refuses by the time of
// the execution does not run.
func TestThePolicyStopsWhatWasSigned(t *testing.T) {
	o := newOffice(t)
	b := o.proposed(`{"to":"eve","cents":5}`)
	b, err := o.amends(b, `{"to":"eve","cents":50}`)
	require.NoError(t, err)
	_, err = o.signs(b, "bob")
	require.NoError(t, err)
	o.rules.tooLarge = 50
	require.Equal(t, []string{
		`call pay-1 pay{"to":"eve","cents":5}`, `pay-1 denied: "That is too much."`, "text: done",
	}, o.resumes(b))
	require.Empty(t, o.executed())
}
