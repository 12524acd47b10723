package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state"
)

// ruled returns the calls of a remote request that the policy decided. No facts are about
// those of which it asked nobody. A request whose record is damaged has none.
func (a admin) ruled(ctx context.Context, r agentrun.Run) (map[approvals.ToolCallID]intake.CallStatus, error) {
	if r.Executor != intake.Executor {
		return nil, nil
	}
	s, err := intake.New(intake.Config{
		Store: a.store, Feed: state.NewFeed(a.store), Runner: a.runner(), Desk: approvals.NewDesk(a.store, refuseAll{}, nil, time.Now),
		Now: time.Now, Log: a.log,
	})
	if err != nil {
		return nil, err
	}
	request, err := s.Get(ctx, intake.Client{Name: r.Agent}, r.ID)
	if errors.Is(err, approvals.ErrUnreadable) || errors.Is(err, approvals.ErrNotFound) {
		return nil, nil
	}
	all := map[approvals.ToolCallID]intake.CallStatus{}
	for _, c := range request.Calls {
		if c.Outcome == intake.OutcomeAllowed || c.Outcome == intake.OutcomeRefused {
			all[c.ID] = c
		}
	}
	return all, err
}

// rule adds what the policy said of a call that its agent made. If people were asked about
// the call, a refusal at its claim is a fact.
func (t *teller) rule(id approvals.ToolCallID) {
	c, ok := t.ruled[id]
	if _, asked := t.rules[id]; asked || !ok {
		return
	}
	m := moment{At: c.DecidedAt, Kind: policyPermitted, What: "the policy permits " + c.Tool, Call: c.ID, Tool: c.Tool, Digest: c.Digest, Rule: c.Rule}
	if c.Outcome == intake.OutcomeRefused {
		m.Kind, m.What = policyRefused, "the policy refuses "+c.Tool
	}
	if c.Rule != "" {
		m.What += ", by the rule " + c.Rule
	}
	call := laneCall + lane(c.ID)
	t.add(m, []lane{t.begun(), call}, call)
}

// used adds what became of the calls that the policy permitted. What this program
// executes is in its journal.
func (t *teller) used() {
	for _, id := range slices.Sorted(maps.Keys(t.ruled)) {
		c := t.ruled[id]
		if c.Here {
			continue
		}
		call := laneCall + lane(c.ID)
		m := moment{At: c.ClaimedAt, Kind: factConcluded, Call: c.ID, Tool: c.Tool, State: string(approvals.Claimed)}
		m.What = "what became of the call: " + plainly(m.State)
		if !m.At.IsZero() {
			t.add(m, []lane{call}, call)
		}
		if c.Report != nil {
			m.At, m.State, m.Took = c.Report.At, string(c.Report.State), c.Report.Took.Seconds()
			m.What = "what became of the call: " + plainly(m.State)
			t.add(m, []lane{call}, call)
		}
	}
}
