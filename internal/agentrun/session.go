package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A session is the state of a claimed run in its worker: the agent and its
// tools, what was said in the thread, and which executions the run began
// before. Messages and journal are read from the store or committed to it.
//
// Only history and authors change after the first step has begun. They belong to
// the goroutine that takes the steps. The goroutines that execute calls use the
// other fields, and the claim has a lock of its own.
type session struct {
	claim   *claim
	agent   Agent
	tools   toolset
	journal journal
	lineage lineage

	later struct { // what goes into the journal with the next commit
		mu      sync.Mutex
		entries []Entry
	}

	history []Message          // of the whole thread
	authors []approvals.UserID // whose words a request of this step has
}

// load reads what the store has of the run and its thread.
func (s *session) load(ctx context.Context) error {
	if made := s.claim.made; made != nil {
		s.history, s.lineage, s.journal = made.history, made.lineage, journal{}
		return nil
	}
	run := s.claim.snapshot()
	history, err := s.claim.store.Messages(ctx, run.Thread, 0, run.To)
	if err != nil {
		return err
	}
	if len(history) != run.To {
		return fmt.Errorf("load messages of %s: %d of %d are there", run.Thread, len(history), run.To)
	}
	entries, err := s.claim.store.Journal(ctx, run.ID)
	if err != nil {
		return err
	}
	if s.lineage, err = lineageOf(ctx, s.claim.store, run); err != nil {
		return err
	}
	s.history, s.journal = history, journalOf(entries)
	return nil
}

func (s *session) now() time.Time { return s.claim.now() }

// log writes a line with the id of the run.
func (s *session) log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("run", string(s.claim.id)))
	s.claim.log.LogAttrs(ctx, level, msg, attrs...) //nolint:sloglint // the callers' messages are static
}

// logCall is log for a call. Its tool is named only if it exists: any other name is the
// model's own words.
func (s *session) logCall(ctx context.Context, level slog.Level, msg string, p *plan, attr slog.Attr) {
	attrs := []slog.Attr{slog.String("call", string(p.call.ID)), attr}
	if p.tool != nil {
		attrs = append(attrs, slog.String("tool", p.call.Name))
	}
	s.log(ctx, level, msg, attrs...)
}

// request returns a request of this run, with the words of this step's authors.
func (s *session) request(parts ...RequestPart) Request {
	return Request{Parts: parts, Authors: append([]approvals.UserID{}, s.authors...), RunID: s.claim.id, At: s.now()}
}

// ask asks the model to answer the history. The provider is to run the calls that are
// approved. With an error the response has the calls that the provider made all the
// same, and nothing else.
func (s *session) ask(ctx context.Context, history []Message, approved []approvals.ToolCallID, written func(Delta)) (Response, error) {
	response, err := s.agent.Model.Request(ctx, ModelRequest{
		Instructions: instructions(s.agent, s.claim.snapshot()),
		Messages:     callable(forModel(history)),
		Tools:        definitions(s.agent.Tools),
		Approved:     approved,
		Written:      written,
	})
	if err != nil {
		if context.Cause(ctx) == nil {
			s.log(ctx, slog.LevelWarn, "model failed", slog.String("err", modelClass(err)))
		}
		response = Response{FinishReason: FinishError, RunID: s.claim.id, At: s.now()}
		if known, ok := errors.AsType[*ModelError](err); ok {
			for _, c := range known.Ran {
				response.Parts = append(response.Parts, c)
			}
		}
		return response, err
	}
	response = s.tools.called(response)
	response.RunID, response.At = s.claim.id, s.now()
	return response, nil
}

// charge counts a request to the model.
func charge(response Response) func(*Run) {
	used := response.Usage
	return func(r *Run) {
		r.Steps++
		r.Usage.Requests++
		r.Usage.InputTokens += used.InputTokens
		r.Usage.OutputTokens += used.OutputTokens
	}
}

// plan returns the plan of a call that has no result. A call that the provider would
// run is of a hosted tool or of none, and any other is never of a hosted one.
func (s *session) plan(c approvals.ToolCall) *plan {
	p := &plan{call: c, tool: s.tools[c.Name]}
	for _, part := range s.history[lastResponse(s.history)].(Response).Parts {
		if of, ok := part.(CallPart); ok && of.ID == c.ID {
			p.request = of.ApprovalRequest
		}
	}
	if p.tool != nil && (p.tool.Spec().Kind == KindHosted) != (p.request != "") {
		p.tool = nil
	}
	return p
}

// append commits messages at the end of the thread, with a change of the run.
func (s *session) append(ctx context.Context, change func(*Run), messages ...Message) error {
	return s.commit(ctx, messages, func(r *Run, _ *Thread, _ *Commit) error {
		if change != nil {
			change(r)
		}
		return nil
	})
}

// commit adds messages to the thread and moves the run in one step.
func (s *session) commit(ctx context.Context, messages []Message, change func(*Run, *Thread, *Commit) error) error {
	s.later.mu.Lock()
	defer s.later.mu.Unlock()
	err := s.claim.commit(ctx, func(r *Run, t *Thread, out *Commit) error {
		out.Entries = append(out.Entries, s.later.entries...)
		if len(messages) > 0 {
			out.Append = &Append{Thread: t.ID, At: r.To, Messages: messages}
			r.To += len(messages)
			t.Messages = r.To
			out.Thread = t
		}
		return change(r, t, out)
	})
	if err == nil {
		s.history = append(s.history, messages...)
		s.later.entries = nil
	}
	return err
}

// release gives the run back, for any worker to take from then on; the zero time means
// at once. What is to be in the journal is stored with it: the next worker need not make
// those calls again, and people can read that they ran. After a conflict it is left out,
// because a commit whose answer was lost may have stored it.
func (s *session) release(ctx context.Context, from time.Time, as Status) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.claim.lease)
	defer cancel()
	conflict := false
	return s.commit(ctx, nil, func(r *Run, _ *Thread, out *Commit) error {
		if conflict {
			out.Entries = nil
		}
		conflict = true
		r.Status, r.Owner, r.LeaseEnds, r.Activity = as, "", from, nil
		return nil
	})
}

// journalLater has the entry stored with the next commit of the step.
func (s *session) journalLater(e Entry) {
	s.later.mu.Lock()
	defer s.later.mu.Unlock()
	s.later.entries = append(s.later.entries, e)
}

// metadata returns what a tool said when it set a call aside, if it can be kept.
func (s *session) metadata(ctx context.Context, c approvals.ToolCall, m json.RawMessage) json.RawMessage {
	kept := object(m)
	if kept == nil && m != nil {
		s.log(ctx, slog.LevelWarn, "metadata is not an object", slog.String("call", string(c.ID)))
	}
	return kept
}

// succeeded is how a call ended that took effect.
func (s *session) succeeded(ctx context.Context, c approvals.ToolCall, r Result) Finish {
	part := returned(c, OutcomeSuccess, "", s.now())
	part.Content, part.Metadata, part.Parts = value(r.Value), s.metadata(ctx, c, r.Metadata), bounded(r.Parts)
	return Finish{Part: part, Prompt: cut(r.Content)}
}

// said is what the model wrote beside the calls that are pending.
func (s *session) said() string {
	last := lastResponse(s.history)
	if last < 0 {
		return ""
	}
	return s.history[last].(Response).text()
}

// count returns what the request has led to by now, with these results of the
// current step. It looks only at what is committed, so that a worker who takes
// over counts the same.
func (s *session) count(results ...RequestPart) approvals.SoFar {
	messages := s.history[min(s.lineage.from, len(s.history)):]
	if len(results) > 0 {
		messages = append(slices.Clip(messages), Request{Parts: results})
	}
	return SoFar(messages, s.lineage.lapsed)
}
