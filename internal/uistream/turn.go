package uistream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A turn is one assistant message: what a message of the user has led to, over
// the runs that resume each other.
type turn struct {
	head  approvals.RunID // names it, also before the run is there
	began time.Time       // zero before that
	by    approvals.UserID
	run   approvals.RunID  // the last run
	asker approvals.UserID // who asked for the last run
	at    int              // the place in the thread after the messages of the last run
	steps []*step
	ended []*call // calls of the turn before, which the message of this one has ended

	waits   bool   // the last run is deferred, and its calls are not all decided
	people  bool   // people are asked about one of these calls
	over    bool   // nothing follows any more
	moved   bool   // it is over because the user has written something new
	failure string // why it ended without an answer
}

// A step is one response of the model, with what became of its calls.
type step struct {
	response agentrun.Response
	calls    []*call
	by       approvals.UserID // who asked for its run
	unseen   bool             // it has calls that the reader does not see
}

// A call is one call of a step.
type call struct {
	id        approvals.ToolCallID
	name      string
	args      json.RawMessage // that count: as proposed, or as they were changed
	writeOnly []string
	hosted    bool            // the provider of the model runs it
	batch     approvals.Batch // the last in which people were asked about it
	asked     *approvals.Approval
	result    agentrun.RequestPart // nil while there is none
}

// input is what the user sees of the arguments.
func (c *call) input() json.RawMessage { return shownInput(c.args, c.writeOnly) }

// approval names what people are or were asked; it is empty if they were not.
func (c *call) approval() string {
	if c.asked == nil {
		return ""
	}
	return approvalID(c.batch.ID, c.asked.Call.Digest)
}

// pending reports whether it can be approved or denied. A call in doubt cannot: to
// approve it would mean to run it again.
func (c *call) pending(now time.Time) bool {
	return c.asked != nil && c.result == nil && c.asked.OpenAt(now) && !c.asked.InDoubt()
}

// ahead reports whether it is decided while other calls of its batch are not. A client
// sends the answers of a step once each call in it was asked about and answered, so it
// has to be told of this one too.
func (c *call) ahead() bool {
	return c.asked != nil && c.result == nil && c.asked.Status.Settled() && !c.batch.Settled() && !c.asked.InDoubt()
}

// find returns the call with the id.
func (t *turn) find(id approvals.ToolCallID) *call {
	for _, s := range t.steps {
		for _, c := range s.calls {
			if c.id == id {
				return c
			}
		}
	}
	return nil
}

// turns assembles turns from what is stored.
type turns struct {
	runs  Runs
	desk  Desk
	tools Tools
	now   func() time.Time
}

// headOf returns the first run of the turn that a run belongs to.
func (ts turns) headOf(ctx context.Context, id approvals.RunID) (approvals.RunID, error) {
	for {
		run, err := ts.runs.Run(ctx, id)
		if err != nil {
			return "", err
		}
		if run.Supersedes != "" && (run.Status == agentrun.RunWaiting || run.Status == agentrun.RunMerged) {
			return agentrun.ResumeRunID(run.Supersedes)
		}
		if run.Parent == "" {
			return id, nil
		}
		b, err := ts.desk.Batch(ctx, run.Batch)
		if err != nil {
			return "", err
		}
		if superseded(b) {
			return id, nil
		}
		id = run.Parent
	}
}

// superseded reports whether a message of the user has ended the batch: the run
// that takes up its answers begins a new turn.
func superseded(b approvals.Batch) bool {
	return slices.ContainsFunc(b.Approvals, approvals.Approval.Superseded) || slices.ContainsFunc(b.Calls, approvals.External.Superseded)
}

// load assembles the turn with this first run, which need not be there yet.
func (ts turns) load(ctx context.Context, head approvals.RunID) (*turn, error) {
	t := &turn{head: head}
	run, err := ts.runs.Run(ctx, head)
	if errors.Is(err, approvals.ErrNotFound) {
		return t, nil
	}
	for {
		if err != nil {
			return nil, err
		}
		if t.began.IsZero() {
			t.began, t.by = run.CreatedAt, run.Requester
			if err := ts.endedBy(ctx, t, run); err != nil {
				return nil, err
			}
		}
		if err := ts.messages(ctx, t, run, true); err != nil {
			return nil, err
		}
		t.run, t.asker, t.at = run.ID, run.Requester, run.To
		next, err := ts.deferred(ctx, t, run)
		if err != nil {
			return nil, err
		}
		if next == nil {
			t.end(run)
			return t, nil
		}
		if t.moved {
			t.over = next.To > next.From || !next.EndedAt.IsZero() // what became of the calls is there
			return t, ts.messages(ctx, t, *next, false)
		}
		run = *next
	}
}

// endedBy notes the calls that the message of the turn has ended. No chunk can be
// about them any more: they are calls of another message.
func (ts turns) endedBy(ctx context.Context, t *turn, head agentrun.Run) error {
	if head.Batch == "" {
		return nil
	}
	b, err := ts.desk.Batch(ctx, head.Batch)
	if err != nil {
		return err
	}
	for i, a := range b.Approvals {
		now, err := ts.desk.Call(ctx, b, a.Call.ID)
		if err != nil {
			return err
		}
		t.ended = append(t.ended, &call{id: a.Call.ID, name: a.Call.Name, args: now.Args, writeOnly: a.WriteOnly, batch: b, asked: &b.Approvals[i]})
	}
	return nil
}

// messages adds what a run has said and done. Without whole, only the results
// count, of calls that the turn has already.
func (ts turns) messages(ctx context.Context, t *turn, run agentrun.Run, whole bool) error {
	if run.To == run.From {
		return nil
	}
	all, err := ts.runs.Messages(ctx, run.Thread, run.From, run.To)
	if err != nil {
		return fmt.Errorf("load messages of %s: %w", run.ID, err)
	}
	for _, m := range all {
		switch m := m.(type) {
		case agentrun.Response:
			if whole {
				t.steps = append(t.steps, ts.step(run, m))
			}
		case agentrun.Request:
			for _, p := range m.Parts {
				t.result(p)
			}
		}
	}
	return nil
}

func (ts turns) step(run agentrun.Run, r agentrun.Response) *step {
	s := &step{response: r, by: run.Requester}
	for _, p := range r.Parts {
		var made *call
		switch c := p.(type) {
		case agentrun.CallPart:
			made = &call{id: c.ID, name: c.Name, args: c.Args, hosted: c.ApprovalRequest != ""}
		case agentrun.ProviderCall:
			made = &call{id: c.ID, name: c.Name, args: c.Args, hosted: true, result: providerResult(c)}
		case agentrun.Text, agentrun.Thinking:
			continue
		}
		if spec, known := ts.tools.ToolSpec(run.Agent, made.name); known {
			made.writeOnly = spec.WriteOnly
		} else {
			made.writeOnly = []string{""} // what it hid is not known
		}
		s.calls = append(s.calls, made)
	}
	return s
}

// providerResult returns the result of a call that the provider made without approval.
func providerResult(c agentrun.ProviderCall) agentrun.ToolReturn {
	r := agentrun.ToolReturn{ToolName: c.Name, CallID: c.ID, Outcome: agentrun.OutcomeSuccess}
	if c.Failed {
		r.Outcome = agentrun.OutcomeFailed
	}
	r.Content, _ = json.Marshal(c.Output) // a text always has a JSON form
	return r
}

// result notes what became of a call.
func (t *turn) result(p agentrun.RequestPart) {
	var id approvals.ToolCallID
	switch p := p.(type) {
	case agentrun.ToolReturn:
		id = p.CallID
	case agentrun.RetryPrompt:
		id = p.CallID
	case agentrun.UserPrompt:
	}
	if c := t.find(id); c != nil && id != "" {
		c.result = p
	}
}

// deferred notes what people are asked, if the run waits for that, and returns
// the run that takes up the answers, if it is there.
func (ts turns) deferred(ctx context.Context, t *turn, run agentrun.Run) (*agentrun.Run, error) {
	if run.Status != agentrun.RunDeferred {
		return nil, nil
	}
	b, err := ts.current(ctx, run.Deferred)
	if err != nil {
		return nil, err
	}
	for i, a := range b.Approvals {
		c := t.find(a.Call.ID)
		if c == nil {
			continue
		}
		c.batch, c.asked, c.writeOnly = b, &b.Approvals[i], a.WriteOnly
		if a.Call.Digest == a.Proposed {
			continue
		}
		now, err := ts.desk.Call(ctx, b, a.Call.ID)
		if err != nil {
			return nil, err
		}
		c.args = now.Args
	}
	t.waits = !b.Settled()
	t.people = slices.ContainsFunc(b.Approvals, func(a approvals.Approval) bool { return a.Status == approvals.Pending })
	t.moved = superseded(b)
	id, err := agentrun.ResumeRunID(b.ID)
	if err != nil {
		return nil, err
	}
	next, err := ts.runs.Run(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, nil
	}
	return &next, err
}

// current is a batch in which what is overdue has expired. Until that is stored, nobody can
// decide such a call and no client may show it as decided, so a client that loads the turn
// meanwhile would never send the answers to the other calls of its step.
func (ts turns) current(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	b, err := ts.desk.Batch(ctx, id)
	now := ts.now()
	if err != nil || !slices.ContainsFunc(b.Approvals, func(a approvals.Approval) bool { return a.StatusAt(now) != a.Status }) {
		return b, err
	}
	if ts.desk.Tick(ctx, id) != nil {
		return b, nil //nolint:nilerr // what cannot be stored now can still be read
	}
	return ts.desk.Batch(ctx, id)
}

// end notes how the last run stands.
func (t *turn) end(run agentrun.Run) {
	switch run.Status {
	case agentrun.RunCompleted, agentrun.RunMerged:
		t.over = true
	case agentrun.RunFailed, agentrun.RunParked:
		t.over, t.failure = true, run.Failure
	case agentrun.RunWaiting, agentrun.RunQueued, agentrun.RunRunning, agentrun.RunDeferred:
	}
}
