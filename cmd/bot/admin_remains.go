package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

// remains prints what the facts say of runs that were removed, in the order in which
// the facts were committed. If they say nothing, it returns the error unknown.
func (a admin) remains(ctx context.Context, id approvals.RunID, unknown error, asJSON bool) error {
	n, err := approvals.Partition(string(id))
	if err != nil {
		return unknown
	}
	var asked asking
	for e, err := range state.NewFeed(a.store).Events(ctx, n) {
		if err != nil {
			return fmt.Errorf("read the facts about run %s: %w", id, err)
		}
		asked.note(e.Event)
	}
	of := asked.chain(id)
	if len(of) == 0 {
		return unknown
	}
	var told []moment
	for m, err := range a.factsOf(ctx, n) {
		if err != nil {
			return fmt.Errorf("read the facts about run %s: %w", id, err)
		}
		if of[m.Batch] {
			told = append(told, m)
		}
	}
	if asJSON {
		return a.sayJSON(told)
	}
	var out strings.Builder
	for _, m := range told {
		out.WriteString(m.line())
	}
	fmt.Fprintf(&out, "%s was removed after retention.threads: these are the facts about it, and no others are left\n", id)
	return a.say(out.String())
}

// An asking says which runs of a partition asked people, by its facts.
type asking struct {
	asked  map[approvals.RunID]approvals.BatchID
	before map[approvals.RunID]approvals.RunID // by the run that would take up the answers or execute the calls, that which asked
}

func (a *asking) note(e approvals.Event) {
	opened, ok := e.(approvals.Opened)
	if !ok {
		return
	}
	if a.asked == nil {
		a.asked, a.before = map[approvals.RunID]approvals.BatchID{}, map[approvals.RunID]approvals.RunID{}
	}
	a.asked[opened.Run] = opened.Batch
	for _, next := range afterAsking(opened.Run, opened.Batch) {
		a.before[next] = opened.Run
	}
}

// chain returns what the run asked, and those before and after it. The id may also be that
// of a batch.
func (a *asking) chain(id approvals.RunID) map[approvals.BatchID]bool {
	for run, batch := range a.asked {
		if string(batch) == string(id) {
			id = run
		}
	}
	for before, ok := a.before[id]; ok; before, ok = a.before[id] {
		id = before
	}
	all := map[approvals.BatchID]bool{}
	for next := []approvals.RunID{id}; len(next) > 0; {
		run := next[0]
		next = next[1:]
		if batch, ok := a.asked[run]; ok && !all[batch] {
			all[batch] = true
			next = append(next, afterAsking(run, batch)...)
		}
	}
	return all
}

// afterAsking returns the ids that the runs after one that asked would have.
func afterAsking(run approvals.RunID, batch approvals.BatchID) (next []approvals.RunID) {
	if id, err := agentrun.ResumeRunID(batch); err == nil {
		next = append(next, id)
	}
	if id, err := agentrun.ExecutionRunID(run); err == nil {
		next = append(next, id)
	}
	return next
}
