package agentrun

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/summary"
)

// What a remote request may hold at most, besides its calls.
const (
	maxName         = 512 // bytes of each
	maxParticipants = 1000
)

// check refuses what could not be answered unambiguously later.
func (q RemoteRequest) check() error {
	if q.Executor == "" || q.Key == "" || q.Agent == "" || q.Requester == "" {
		return fmt.Errorf("%w: a remote request has an executor, a key, an agent and a requester", approvals.ErrInvalid)
	}
	names := []string{string(q.Executor), q.Key, q.Agent, string(q.Requester), q.Channel}
	for _, u := range q.Participants {
		names = append(names, string(u))
	}
	for _, c := range q.Calls {
		names = append(names, c.Name)
	}
	// Ids are derived from text; other bytes would be replaced there, so that two
	// keys could be one.
	if slices.ContainsFunc(names, func(s string) bool { return len(s) > maxName || !utf8.ValidString(s) }) {
		return fmt.Errorf("%w: the names of a remote request are text of at most %d bytes", approvals.ErrInvalid, maxName)
	}
	if len(q.Participants) > maxParticipants {
		return fmt.Errorf("%w: a remote request has at most %d participants", approvals.ErrInvalid, maxParticipants)
	}
	if len(q.Calls) == 0 || len(q.Calls) > MaxCalls {
		return fmt.Errorf("%w: a remote request has between 1 and %d calls", approvals.ErrInvalid, MaxCalls)
	}
	used := map[approvals.ToolCallID]bool{}
	for _, c := range q.Calls {
		switch {
		case c.ID == "" || len(c.ID) > MaxCallID || !utf8.ValidString(string(c.ID)):
			return fmt.Errorf("%w: a call of %q has no usable id", approvals.ErrInvalid, c.Name)
		case c.Name == "":
			return fmt.Errorf("%w: call %q names no tool", approvals.ErrInvalid, string(c.ID))
		case used[c.ID]:
			return fmt.Errorf("%w: two calls have the id %q", approvals.ErrInvalid, string(c.ID))
		}
		used[c.ID] = true
		if err := approvals.CheckArgs(c.Args); err != nil {
			return fmt.Errorf("call %q: %w", string(c.ID), err)
		}
		if _, err := summary.Parse(c.Summary); c.Summary != "" && err != nil {
			return fmt.Errorf("%w: the summary of call %q: %w", approvals.ErrInvalid, string(c.ID), err)
		}
	}
	return nil
}

// origin is where the request came from. The channel in which it is shown may
// change, so it is no part of what names the thread.
func (q RemoteRequest) origin() Origin {
	return Origin{Surface: string(q.Executor), Team: q.Agent, Root: q.Key}
}

// thread is the id of a thread of the request's own. It is derived from the
// origin like any other, and in the partition of the agent.
func (q RemoteRequest) thread() ThreadID {
	return ThreadID(approvals.NewID("thread", RemotePartition(q.Executor, q.Agent), derived("thread", string(q.Executor), q.Agent, q.Key)))
}

// submit tries once to commit the request.
func (r *Runner) submit(ctx context.Context, id approvals.RunID, q RemoteRequest) error {
	out, _, err := r.draft(ctx, id, q)
	if err != nil {
		return err
	}
	return r.c.Store.Commit(ctx, out)
}

// draft rules on the calls of the request, unless that is done, and returns what is
// to be committed.
func (r *Runner) draft(ctx context.Context, id approvals.RunID, q RemoteRequest) (Commit, Ruled, error) {
	now, origin := r.c.Now(), q.origin()
	thread := Thread{ID: q.thread(), Origin: origin}
	thread.Origin.Channel = q.Channel
	run := Run{
		ID: id, Thread: thread.ID, Origin: thread.Origin, Agent: q.Agent, Executor: q.Executor, Requester: q.Requester,
		Status: RunCompleted, Steps: 1, CreatedAt: now, EndedAt: now,
	}
	batch, err := batchID(id)
	if err != nil {
		return Commit{}, Ruled{}, err
	}
	var ruled Ruled
	open := OpenBatch{Args: map[approvals.Digest]json.RawMessage{}}
	response := Response{RunID: id, At: now, FinishReason: FinishToolCall}
	var asked, elsewhere []approvals.Deferral
	var refusals, counted []RequestPart // counted: what the policy knows of the calls before
	for i, c := range q.Calls {
		response.Parts = append(response.Parts, CallPart{ToolCall: c.ToolCall, Place: c.Place})
		soFar := SoFar([]Message{response, Request{Parts: counted}}, nil)
		deferral := approvals.Deferral{
			Call: c.ToolCall, Gate: c.Gate, WriteOnly: c.WriteOnly, Summary: c.Summary, Severity: c.Severity, Place: c.Place,
			Definition: c.Definition,
		}
		if len(q.Ruled.rulings) == len(q.Calls) {
			ruled = q.Ruled
		} else {
			ruled.rulings = append(ruled.rulings, r.ruleRemote(ctx, run, approvals.Proposal{
				Call: c.ToolCall, Gate: c.Gate, Agent: q.Agent, Requester: q.Requester, Channel: q.Channel, Place: c.Place, SoFar: soFar, At: now,
			}))
		}
		switch ruling := ruled.rulings[i].(type) {
		case approvals.Permit:
			response.Parts[i] = CallPart{ToolCall: c.ToolCall, Place: c.Place, Rule: ruling.Rule}
			if c.External {
				deferral.Metadata = c.Metadata
				open.Args[c.Ref(batch).Digest] = c.Args
				elsewhere = append(elsewhere, deferral)
				continue
			}
			counted = append(counted, returned(c.ToolCall, OutcomeSuccess, "", now))
		case approvals.Refuse:
			response.Parts[i] = CallPart{ToolCall: c.ToolCall, Place: c.Place, Rule: ruling.Rule}
			refusals = append(refusals, refused(c.ToolCall, ruling, now))
			counted = append(counted, refusals[len(refusals)-1])
		case approvals.Ask:
			open.Args[c.Ref(batch).Digest] = c.Args
			deferral.Ask = ruling
			deferral.Ask.Requirement = ruling.Requirement.EndingBy(q.Until)
			asked = append(asked, deferral)
		}
	}
	messages := []Message{response}
	if len(refusals) > 0 {
		messages = append(messages, Request{Parts: refusals, Authors: []approvals.UserID{}, RunID: id, At: now})
	}
	out := Commit{Request: approvals.RequestID("submit:" + string(id)), Append: &Append{Thread: thread.ID, Messages: messages}}
	if len(asked)+len(elsewhere) > 0 {
		open.Batch, open.Events, err = approvals.Open(approvals.Batch{
			ID: batch, Run: id, Thread: string(thread.ID), Agent: q.Agent, Channel: q.Channel, Executor: q.Executor,
			Requester: q.Requester, Participants: q.Participants, Limits: q.Limits, Untold: q.Untold, Said: q.said(), Prompt: approvals.QuoteOf(q.Prompt),
			SoFar: SoFar([]Message{response, Request{Parts: counted}}, nil), OpenedAt: now,
		}, asked, elsewhere)
		if err != nil {
			return Commit{}, Ruled{}, fmt.Errorf("open the batch of run %s: %w", id, err)
		}
		run.Status, run.Deferred, thread.Active, out.Opens = RunDeferred, batch, id, &open
		run.Asks = len(asked) + len(elsewhere)
	}
	run.To, thread.Messages = len(messages), len(messages)
	out.Thread, out.Runs = &thread, []Run{run}
	return out, ruled, nil
}

// enterApproved enters the approved calls in the ledger, once each.
func (r *Runner) enterApproved(ctx context.Context, of func(context.Context) (RemoteRun, approvals.DeferredToolResults, error)) error {
	remote, answers, err := of(ctx)
	if err != nil {
		return err
	}
	for _, c := range remote.Calls {
		if _, approved := answers.Approvals[c.ID].(approvals.ToolApproved); !approved {
			continue
		}
		if _, err := r.tally().enter(ctx, remote.Run, c.ToolCall, r.c.Now(), time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) tally() tally { return tally{policy: r.c.Policy, ledger: r.c.Ledger} }

// ruleRemote rules on a call of a remote request, like one that runs here.
func (r *Runner) ruleRemote(ctx context.Context, run Run, q approvals.Proposal) approvals.Ruling {
	t := r.tally()
	q = t.propose(run, q)
	return t.rule(ctx, run, q.Call, func() time.Time { return q.At }, r.c.Log, func() approvals.Ruling {
		ruling, err := ruled(ctx, t.policy, q)
		if err != nil {
			r.c.Log.ErrorContext(ctx, "policy failed", slog.String("run", string(run.ID)), slog.String("call", string(q.Call.ID)), slog.String("err", class(err)))
		}
		return ruling
	})
}
