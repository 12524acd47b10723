package agentrun

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
)

// Ruled is how the policy has just ruled on the calls of a remote request, so that it
// is not asked twice about one question.
type Ruled struct{ rulings []approvals.Ruling }

// An Admission is a remote request that the policy permits without asking anyone, as
// it is once [Runner.Admit] has stored it.
type Admission struct {
	RemoteRun

	Memos  []MemoChange // what its executor stores with it
	commit Commit
}

// Permit rules on the calls of a remote request of which nothing is stored yet, and
// stores nothing. Without an admission the request is one for [Runner.Submit], with
// the rulings: people are to be asked, a call is refused or waits for a result, or
// the policy counts calls, whose ledger is not in the partition of the run.
func (r *Runner) Permit(ctx context.Context, q RemoteRequest) (*Admission, Ruled, error) {
	if r.tally().counts() {
		return nil, Ruled{}, nil
	}
	if err := q.check(); err != nil {
		return nil, Ruled{}, err
	}
	c, ruled, err := r.draft(ctx, RemoteRunID(q.Executor, q.Agent, q.Key), q)
	if err != nil || c.Opens != nil || len(c.Append.Messages) != 1 {
		return nil, ruled, err
	}
	a := &Admission{RemoteRun: RemoteRun{Run: c.Runs[0]}, commit: c}
	a.Run.Version++
	a.commit.Request = ""
	if a.Calls, err = rulingsOf(c.Append.Messages, approvals.Batch{}); err == nil && q.Here {
		err = r.beginHere(ctx, a)
	}
	return a, ruled, err
}

// beginHere has the run that executes the calls stored with the admission, claimed by
// this process for [Runner.Continue]. If that does not come, its lease ends, and the run
// waits for a caller like any other of its kind.
func (r *Runner) beginHere(ctx context.Context, a *Admission) error {
	now, err := r.readClocks(ctx)
	if err != nil {
		return fmt.Errorf("claim the execution of run %s: %w", a.Run.ID, err)
	}
	thread := *a.commit.Thread
	run, err := r.executionOf(a.RemoteRun, thread)
	if err != nil {
		return err
	}
	thread.Active = run.ID
	c := r.newClaim(run.ID)
	run = c.on(run, now)
	a.commit.Thread, a.commit.Runs = &thread, append(a.commit.Runs, run)
	stored := thread
	stored.Version++
	c.taken(run, stored, now)
	c.made = &made{history: a.commit.Append.Messages, lineage: lineage{began: []beginning{{from: run.From}, {}}}}
	a.begun = c
	return nil
}

// Admit stores admissions, all of one executor and agent, with a memo of theirs: all
// in one step, or none. If one of them is stored already, or what its memos rely on
// has changed, that is a [*PartError]; any other [approvals.ErrConflict] is about the
// memo.
func (r *Runner) Admit(ctx context.Context, memo MemoChange, all ...*Admission) error {
	c := Commit{Memos: []MemoChange{memo}}
	for _, a := range all {
		part := a.commit
		part.Memos = a.Memos
		c.With = append(c.With, part)
	}
	if err := r.c.Store.Commit(ctx, c); err != nil {
		return fmt.Errorf("admit %d requests: %w", len(all), err)
	}
	return nil
}
