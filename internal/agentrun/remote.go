package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A RemoteRequest is a response of an agent that runs elsewhere: calls that are
// to be ruled on here and, where the policy asks for it, decided by people. It
// becomes a run that is deferred from birth, in a thread of its own, so that
// nothing queues behind it or supersedes it. This program never executes its
// calls and never resumes it: when its batch is settled, the answers are
// delivered to its executor.
type RemoteRequest struct {
	Executor     approvals.Executor // who executes the calls; never empty
	Key          string             // names the request among those of its executor and agent
	Agent        string
	Requester    approvals.UserID
	Participants []approvals.UserID // the others who may have asked, as in [approvals.Batch]
	Channel      string             // where it is shown, as in [approvals.Batch]
	Limits       approvals.Limits   // what its executor cannot take back
	Prompt       string             // what the requester wrote, if the executor knows it; quoted
	Until        time.Time          // nobody can decide from then on; zero leaves it to the policy
	Calls        []RemoteCall
	Ruled        Ruled // by [Runner.Permit] a moment ago; the zero value has the policy asked
	Here         bool  // if it is admitted, its calls are executed at once by [Runner.Continue]
	Untold       bool  // as in [approvals.Batch]
}

// A RemoteCall is one call with what its executor says about it, and Summary and
// Severity, which the configuration says about its tool.
type RemoteCall struct {
	approvals.ToolCall

	// Summary is the configured template for calls of this tool, as in package
	// summary. That of a rule goes before it. It is never one of the executor's:
	// an agent could write "Read {args.path}" over a call that deletes.
	Summary   string
	Severity  approvals.Severity
	Gate      approvals.Gate  // why the tool itself asks, if it does
	WriteOnly []string        // JSON pointers of arguments that people see as a length only
	Place     approvals.Place // where it would run
	Reason    string          // what the agent says about it; quoted
	// Definition is that of its tool, as in [Spec], if [Runner.Execute] executes the call.
	Definition string
	// External says that the call waits for a result instead of a decision. If the
	// policy asks for it, people decide it like any other.
	External bool
	Metadata json.RawMessage // as in [approvals.Deferral]; of an external call
}

// A RemoteRun is a remote request as it is stored.
type RemoteRun struct {
	Run   Run
	Batch approvals.Batch // of the calls that people are asked about; zero if there are none
	Calls []RuledCall     // all of them, in their order

	begun *claim // on the run that executes the calls, for the caller that was admitted Here
}

// A RuledCall is a call with the ruling that was made when it was handed in. An
// Ask is answered by the batch.
type RuledCall struct {
	approvals.ToolCall

	Place  approvals.Place
	Ruling approvals.Ruling
}

// A Deliverer gives the answers of a settled batch to the executor of its run.
// It may be called again for answers that it has delivered already; where they
// are fetched, there is nothing to do.
type Deliverer func(ctx context.Context, d Delivery) error

// A Delivery is what a [Deliverer] gives to the executor of the run.
type Delivery struct {
	Run Run
	// Answers reads the request and its answers. Where they are fetched, nobody needs
	// them here.
	Answers func(ctx context.Context) (RemoteRun, approvals.DeferredToolResults, error)
}

// RemoteRunID returns the id of the run of a remote request. All that an executor
// does for one agent is in one partition, so that it can be followed as one
// stream of facts.
func RemoteRunID(e approvals.Executor, agent, key string) approvals.RunID {
	return approvals.RunID(approvals.NewID("run", RemotePartition(e, agent), derived("remote", string(e), agent, key)))
}

// RemotePartition returns the partition of every run that this executor hands in
// for the agent.
func RemotePartition(e approvals.Executor, agent string) int {
	return approvals.PartitionOf("remote", string(e), agent)
}

// Submit rules on the calls of a remote request and commits it: its run, its
// messages, and the batch of those calls that people are asked about, all in one
// step. If they are asked about none, the run is completed at once. The same
// request again returns what is stored, without asking the policy; the same key
// with other calls, or for another requester, is [ErrKeyReused]. In the ledger a
// permitted call has its place from now on, and an approved one from its delivery.
func (r *Runner) Submit(ctx context.Context, q RemoteRequest) (RemoteRun, error) {
	if err := q.check(); err != nil {
		return RemoteRun{}, err
	}
	id := RemoteRunID(q.Executor, q.Agent, q.Key)
	return storedOnce(ctx, r.c.Store, id, "submit run "+string(id), func() (RemoteRun, error) {
		found, err := r.Remote(ctx, id)
		if err == nil && !found.same(q) {
			return RemoteRun{}, fmt.Errorf("%w: run %s", ErrKeyReused, id)
		}
		return found, err
	}, func() error { return r.submit(ctx, id, q) })
}

// Remote returns a run that was handed in by [Runner.Submit]. Any other is
// [approvals.ErrNotFound].
func (r *Runner) Remote(ctx context.Context, id approvals.RunID) (RemoteRun, error) {
	run, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return RemoteRun{}, err
	}
	if run.Executor == "" {
		return RemoteRun{}, fmt.Errorf("load run %s: %w", id, approvals.ErrNotFound)
	}
	var b approvals.Batch
	if run.Deferred != "" {
		ctx = r.c.Store.Prefetch(ctx, approvals.Reads{Batches: []approvals.BatchID{run.Deferred}, Messages: messagesOf(run)})
		if b, err = r.c.Store.Batch(ctx, run.Deferred); err != nil {
			return RemoteRun{}, err
		}
	}
	return r.remoteOf(ctx, run, b)
}

// messagesOf are the messages of a run that was handed in.
func messagesOf(run Run) []approvals.MessagesKey {
	return []approvals.MessagesKey{{Thread: string(run.Thread), From: run.From, To: run.To}}
}

// remoteOf returns the run with its batch and its calls.
func (r *Runner) remoteOf(ctx context.Context, run Run, b approvals.Batch) (RemoteRun, error) {
	messages, err := r.c.Store.Messages(ctx, run.Thread, run.From, run.To)
	if err != nil {
		return RemoteRun{}, err
	}
	calls, err := rulingsOf(messages, b)
	if err == nil {
		err = asks(run, b, calls)
	}
	if err != nil {
		return RemoteRun{}, fmt.Errorf("read run %s: %w", run.ID, err)
	}
	return RemoteRun{Run: run, Batch: b, Calls: calls}, nil
}

// asks is nil if the batch is that of the run and asks about calls of it. A call that a
// damaged batch has lost would be taken for a permitted one.
func asks(run Run, b approvals.Batch, calls []RuledCall) error {
	switch {
	case run.Deferred == "" && run.Status == RunDeferred:
		return fmt.Errorf("%w: it waits for no batch", approvals.ErrUnreadable)
	case run.Deferred == "":
		return nil
	case b.ID != run.Deferred || b.Run != run.ID:
		return fmt.Errorf("%w: its batch %s says that it is %s of run %s", approvals.ErrUnreadable, run.Deferred, b.ID, b.Run)
	case len(b.Approvals)+len(b.Calls) == 0:
		return fmt.Errorf("%w: its batch %s has no calls", approvals.ErrUnreadable, b.ID)
	}
	refs := make([]approvals.CallRef, 0, len(b.Approvals)+len(b.Calls))
	for _, a := range b.Approvals {
		refs = append(refs, a.Call)
	}
	for _, c := range b.Calls {
		refs = append(refs, c.Call)
	}
	names := make(map[approvals.ToolCallID]string, len(calls))
	for _, c := range calls {
		names[c.ID] = c.Name
	}
	for _, ref := range refs {
		if name, ok := names[ref.ID]; !ok || name != ref.Name {
			return fmt.Errorf("%w: its batch %s asks about call %q of %q, which it did not make", approvals.ErrUnreadable, b.ID, string(ref.ID), ref.Name)
		}
		delete(names, ref.ID)
	}
	if left := len(calls) - run.Asks; run.Asks > 0 && len(names) != left {
		return fmt.Errorf("%w: its batch %s asks about %d of its calls, not %d", approvals.ErrUnreadable, b.ID, len(calls)-len(names), run.Asks)
	}
	return nil
}

// Deliver gives the answers of a settled batch to the executor of its run, and
// ends that run. It is what the due index calls; a batch that is not settled, or
// whose answers were delivered, is left alone without an error.
func (r *Runner) Deliver(ctx context.Context, id approvals.BatchID) error {
	return retryConflicts(func(int) error { return r.deliver(ctx, id) })
}

func (r *Runner) deliver(ctx context.Context, id approvals.BatchID) error {
	b, err := r.c.Store.Batch(ctx, id)
	if err != nil {
		return err
	}
	if !b.Settled() {
		return nil
	}
	reads := approvals.Reads{Runs: []approvals.RunID{b.Run}, Threads: []string{b.Thread}}
	if r.c.DeliverReads != nil {
		reads.Memos = r.c.DeliverReads(b.Run)
	}
	ctx = r.c.Store.Prefetch(ctx, reads)
	run, err := r.c.Store.Run(ctx, b.Run)
	if err != nil {
		return err
	}
	switch {
	case run.Deferred != id || b.Executor != run.Executor:
		return fmt.Errorf("batch %s is settled, but run %s does not wait for it", id, run.ID)
	case run.Status == RunCompleted:
		return nil
	case run.Status != RunDeferred:
		return fmt.Errorf("batch %s is settled, but run %s is %s", id, run.ID, run.Status)
	}
	deliver := r.c.Deliver[run.Executor]
	if deliver == nil {
		return fmt.Errorf("nothing here delivers to the executor %q of run %s", run.Executor, run.ID)
	}
	answers := func(ctx context.Context) (RemoteRun, approvals.DeferredToolResults, error) {
		return r.answersOf(ctx, run, b)
	}
	if r.tally().counts() {
		if err := r.enterApproved(ctx, answers); err != nil {
			return fmt.Errorf("count the calls of batch %s: %w", id, err)
		}
	}
	if err := deliver(ctx, Delivery{Run: run, Answers: answers}); err != nil {
		return fmt.Errorf("deliver batch %s: %w", id, err)
	}
	thread, err := r.c.Store.Thread(ctx, run.Thread)
	if err != nil {
		return err
	}
	out := Commit{Resumes: &b}
	run.Status = RunCompleted
	if err := endRun(ctx, r.c.Store, &run, &thread, &out, r.c.Now()); err != nil {
		return err
	}
	out.Runs = append(out.Runs, run)
	if err := r.c.Store.Commit(ctx, out); err != nil {
		return fmt.Errorf("end run %s: %w", run.ID, err)
	}
	return nil
}

// answersOf returns a run with its settled batch, and the answers of that.
func (r *Runner) answersOf(ctx context.Context, run Run, b approvals.Batch) (RemoteRun, approvals.DeferredToolResults, error) {
	ctx = r.c.Store.Prefetch(ctx, approvals.Reads{Args: approvedArgs(b), Messages: messagesOf(run)})
	remote, err := r.remoteOf(ctx, run, b)
	if err != nil {
		return RemoteRun{}, approvals.DeferredToolResults{}, err
	}
	answers, err := resultsOf(ctx, r.c.Store, b)
	if err != nil {
		return RemoteRun{}, approvals.DeferredToolResults{}, fmt.Errorf("collect the answers of batch %s: %w", b.ID, err)
	}
	return remote, answers, nil
}

// rulingsOf reads back how the calls of a remote run were ruled on: what has no
// result and is not in the batch was permitted.
func rulingsOf(messages []Message, b approvals.Batch) ([]RuledCall, error) {
	var all []RuledCall
	refusals, rules := map[approvals.ToolCallID]string{}, map[approvals.ToolCallID]string{}
	for _, m := range messages {
		switch m := m.(type) {
		case Response:
			for _, p := range m.Parts {
				if c, ok := p.(CallPart); ok {
					all = append(all, RuledCall{ToolCall: c.ToolCall, Place: c.Place})
					rules[c.ID] = c.Rule
				}
			}
		case Request:
			for _, p := range m.Parts {
				result, ok := p.(ToolReturn)
				if !ok || result.Outcome != OutcomeDenied {
					continue
				}
				words, err := text(result.Content)
				if err != nil {
					return nil, fmt.Errorf("%w: the refusal of call %q", ErrUnreadable, string(result.CallID))
				}
				refusals[result.CallID] = words
			}
		}
	}
	for i, c := range all {
		a, asked := b.Approval(c.ID)
		reason, no := refusals[c.ID]
		switch {
		case asked:
			all[i].Ruling = approvals.Ask{Requirement: a.Requirement, Why: a.Why, Rule: a.Rule, Unjudged: a.Unjudged, Checked: a.Checked}
		case no:
			all[i].Ruling = approvals.Refuse{Reason: reason, Rule: rules[c.ID]}
		default:
			all[i].Ruling = approvals.Permit{Rule: rules[c.ID]}
		}
	}
	return all, nil
}

// same reports whether the stored request is this one: of the same requester, with
// the same calls, byte for byte, for which their tools ask in the same way.
func (r RemoteRun) same(q RemoteRequest) bool {
	if r.Run.Requester != q.Requester || len(r.Calls) != len(q.Calls) {
		return false
	}
	for i, c := range r.Calls {
		a, asked := r.Batch.Approval(c.ID)
		_, permitted := c.Ruling.(approvals.Permit)
		switch is := q.Calls[i]; {
		case c.ID != is.ID, c.Name != is.Name, !bytes.Equal(c.Args, is.Args):
			return false
		case asked && a.Gate != is.Gate, permitted && is.Gate != approvals.GateNone: // no permit lifts a gate
			return false
		}
	}
	return true
}
