package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// deferRun ends the run with what it waits for: the run, its last messages and the batch
// are stored together, or none of them is.
func (s *session) deferRun(ctx context.Context, run Run, plans []*plan, parts []RequestPart, change func(*Run)) error {
	open := OpenBatch{Args: map[approvals.Digest]json.RawMessage{}}
	id, err := batchID(run.ID)
	if err != nil {
		return err
	}
	hide := secretsIn(plans)
	var ask, elsewhere []approvals.Deferral
	for _, raised := range []bool{true, false} {
		for _, p := range plans {
			if p.aside == AsideNone || p.raised != raised {
				continue
			}
			d := approvals.Deferral{Call: p.call, Gate: p.gate, Metadata: p.metadata, EditedBy: p.editedBy, Ask: p.ask}
			d.Hosted = p.request != ""
			d.GateReason, d.Preview = p.reason, p.keepPreview(id, open.Args)
			if p.tool != nil {
				spec := p.tool.Spec()
				d.WriteOnly, d.Summary, d.Severity, d.Definition = spec.WriteOnly, s.agent.summary(spec), spec.Stated(), spec.Definition
			}
			open.Args[p.call.Ref(id).Digest] = p.call.Args
			if p.aside == AsideDoubt {
				d.Doubt = *p.doubt
			}
			if p.aside == AsideApproval || p.aside == AsideDoubt {
				ask = append(ask, d)
			} else {
				elsewhere = append(elsewhere, d)
			}
		}
	}
	participants, err := s.participants(ctx)
	if err != nil {
		return err
	}
	open.Batch, open.Events, err = approvals.Open(approvals.Batch{
		ID: id, Run: run.ID, Thread: string(run.Thread), Agent: run.Agent, Channel: run.Origin.Channel,
		Requester: run.Requester, Participants: participants, SoFar: s.count(parts...), OpenedAt: s.now(),
		Said: approvals.QuoteOf(hide.scrub(s.said())), Prompt: approvals.QuoteOf(hide.scrub(s.lineage.prompt(lastResponse(s.history)))),
	}, ask, elsewhere)
	if err != nil {
		s.log(ctx, slog.LevelError, "batch refused", slog.Any("err", err))
		return s.failWith(ctx, change, notOpened(err, len(ask)), plans, parts...)
	}
	var messages []Message
	if len(parts) > 0 {
		messages = append(messages, s.request(parts...))
	}
	return s.commit(ctx, messages, func(r *Run, _ *Thread, out *Commit) error {
		change(r)
		r.Status, r.Deferred, r.EndedAt = RunDeferred, id, s.now()
		r.Owner, r.LeaseEnds, r.Activity = "", time.Time{}, nil
		out.Opens = &open
		return s.conclude(ctx, out, plans, "")
	})
}

// notOpened says, for people, why nobody can be asked about so many calls.
func notOpened(err error, calls int) string {
	many, ok := errors.AsType[*approvals.TooManyNamedError](err)
	if !ok {
		return "Nobody could be asked to approve the calls, so they were not run."
	}
	advice := "Ask for fewer calls at once, or ask your Countersign admin to name groups of people in the policy."
	if calls == 1 {
		advice = "Your Countersign admin can name groups of people in the policy instead."
	}
	return fmt.Sprintf("Nobody could be asked to approve the calls, so they were not run: the policy asks %d people and groups about them, "+
		"and at most %d can be asked at once. %s", many.Named, approvals.MaxNamed, advice)
}
