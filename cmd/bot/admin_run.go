package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
)

func adminRun(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, args []string) error {
		return a.story(ctx, approvals.RunID(args[0]), *asJSON)
	})
}

// A moment is something that happened to a run. It has no arguments and nothing
// that people or models wrote.
type moment struct {
	At    time.Time            `json:"at"`
	What  string               `json:"what"`
	Run   approvals.RunID      `json:"run"`
	Batch approvals.BatchID    `json:"batch,omitempty"`
	Call  approvals.ToolCallID `json:"call,omitempty"`
	Tool  string               `json:"tool,omitempty"`
	By    approvals.UserID     `json:"by,omitempty"`
}

// story prints what happened to a run and to those that it resumes and that resume
// it, in order.
func (a admin) story(ctx context.Context, id approvals.RunID, asJSON bool) error {
	runs, err := a.chain(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return fmt.Errorf("read run %s: %w: a conversation that nobody has used for retention.threads is removed with its runs; "+
			"what people decided in it stays among the facts", id, err)
	}
	if err != nil {
		return fmt.Errorf("read run %s: %w", id, err)
	}
	all := []moment{}
	for _, r := range runs {
		of, err := a.moments(ctx, r)
		if err != nil {
			return fmt.Errorf("read run %s: %w", r.ID, err)
		}
		all = append(all, of...)
	}
	parked, err := a.due().Parked(ctx)
	if err != nil {
		return fmt.Errorf("list what is parked: %w", err)
	}
	for _, p := range parked {
		if at := slices.IndexFunc(runs, func(r agentrun.Run) bool { return p.ID == string(r.ID) || p.ID == string(r.Deferred) }); at >= 0 {
			what := fmt.Sprintf("work was given up after %s: %s (%s); bot admin retry %s %s", counted(p.Attempts, "attempt", "attempts"), p.Kind, p.Reason, p.Kind, p.ID)
			all = append(all, moment{At: p.Since, What: what, Run: runs[at].ID})
		}
	}
	slices.SortStableFunc(all, func(x, y moment) int { return x.At.Compare(y.At) })
	if asJSON {
		return a.sayJSON(all)
	}
	var out strings.Builder
	for _, m := range all {
		where := strings.Fields(string(m.Run) + " " + string(m.Batch) + " " + string(m.Call))
		fmt.Fprintf(&out, "%s\t%s\t%s\n", m.At.UTC().Format("2006-01-02T15:04:05.000Z"), m.What, strings.Join(where, " "))
	}
	last := runs[len(runs)-1]
	fmt.Fprintf(&out, "%s is %s\n", last.ID, last.Status)
	return a.say(out.String())
}

// chain returns the run with those before and after it, in order.
func (a admin) chain(ctx context.Context, id approvals.RunID) ([]agentrun.Run, error) {
	r, err := a.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	all := []agentrun.Run{r}
	for r.Parent != "" {
		if r, err = a.store.Run(ctx, r.Parent); err != nil {
			return nil, err
		}
		all = append([]agentrun.Run{r}, all...)
	}
	for r = all[len(all)-1]; r.Deferred != ""; all = append(all, r) {
		next, err := agentrun.ResumeRunID(r.Deferred)
		if err != nil {
			return nil, err
		}
		r, err = a.store.Run(ctx, next)
		if errors.Is(err, approvals.ErrNotFound) {
			break // it waits, or its answers are delivered elsewhere
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// moments are what happened to one run and to what it waited for.
func (a admin) moments(ctx context.Context, r agentrun.Run) ([]moment, error) {
	var all []moment
	add := func(m moment) {
		m.Run = r.ID
		all = append(all, m)
	}
	created := "was asked for"
	switch {
	case r.Parent != "":
		created = "takes up the answers"
	case r.Executor != "":
		created = "asked from elsewhere"
	}
	if r.Instructions != "" {
		created += fmt.Sprintf(", with %d characters of instructions from a client", utf8.RuneCountInString(r.Instructions))
	}
	add(moment{At: r.CreatedAt, What: fmt.Sprintf("agent %s %s", r.Agent, created), Batch: r.Batch, By: r.Requester})
	messages, err := a.store.Messages(ctx, r.Thread, r.From, r.To)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		spoken(m, add)
	}
	journal, err := a.store.Journal(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	for _, e := range journal {
		executed(e, add)
	}
	if r.Deferred != "" {
		err := a.facts(ctx, r.Deferred, func(e approvals.Event) { factOf(e, add) })
		if err != nil {
			return nil, err
		}
	}
	if !r.EndedAt.IsZero() {
		add(moment{At: r.EndedAt, What: strings.TrimSpace(fmt.Sprintf("the run is %s. %s", r.Status, r.Failure)), Batch: r.Deferred})
	}
	return all, a.delivered(ctx, r, add)
}

// spoken adds what a message is, without its words.
func spoken(m agentrun.Message, add func(moment)) {
	switch m := m.(type) {
	case agentrun.Request:
		for _, part := range m.Parts {
			switch p := part.(type) {
			case agentrun.UserPrompt:
				add(moment{At: m.At, What: "the model was given a prompt"})
			case agentrun.ToolReturn:
				add(moment{At: m.At, What: fmt.Sprintf("the model was given the result of %s: %s", p.ToolName, p.Outcome), Call: p.CallID, Tool: p.ToolName})
			case agentrun.RetryPrompt:
				add(moment{At: m.At, What: "the model was asked to try again", Call: p.CallID, Tool: p.ToolName})
			}
		}
	case agentrun.Response:
		if m.ModelName != "" || m.Usage != (agentrun.Usage{}) { // else an agent elsewhere handed in its calls
			what := fmt.Sprintf("the model %s answered (%d tokens read, %d written)", m.ModelName, m.Usage.InputTokens, m.Usage.OutputTokens)
			add(moment{At: m.At, What: strings.Replace(what, "model  ", "model ", 1)})
		}
		for _, part := range m.Parts {
			if p, ok := part.(agentrun.CallPart); ok {
				add(moment{At: m.At, What: "it calls " + p.Name, Call: p.ID, Tool: p.Name})
			}
		}
	}
}

// executed adds what the journal says of a call.
func executed(e agentrun.Entry, add func(moment)) {
	m := moment{At: e.At, Call: e.Call, Tool: e.Tool}
	if e.Unapproved() {
		m.What = "the model provider ran " + e.Tool + " without approval"
		if e.Finish.Unsure {
			m.What += "; whether it took effect is not known"
		}
		add(m)
		return
	}
	switch e.State {
	case agentrun.EntryClaimed:
		m.What = e.Tool + " is about to begin"
	case agentrun.EntryStarted:
		m.What = e.Tool + " began, and its outcome is not known"
	case agentrun.EntryFinished:
		began := m
		began.At, began.What = e.At.Add(-e.Finish.Took), e.Tool+" began"
		add(began)
		m.What = fmt.Sprintf("%s ended after %s", e.Tool, e.Finish.Took.Round(time.Millisecond))
		if e.Finish.Unsure {
			m.What += "; whether it took effect is not known"
		}
	}
	add(m)
}

// factOf adds a fact of a batch.
func factOf(e approvals.Event, add func(moment)) {
	b := approvals.BatchOf(e)
	switch e := e.(type) {
	case approvals.Opened:
		for _, c := range e.Approvals {
			what := "people are asked about " + c.Name
			if i := slices.IndexFunc(e.Checked, func(k approvals.CheckedCall) bool { return k.Call == c.ID }); i >= 0 {
				what += fmt.Sprintf(" (check %s: %s)", e.Checked[i].Check, e.Checked[i].Answer)
			}
			add(moment{At: e.At, What: what, Batch: b, Call: c.ID, Tool: c.Name})
		}
		for _, c := range e.Calls {
			add(moment{At: e.At, What: c.Name + " waits for a result from elsewhere", Batch: b, Call: c.ID, Tool: c.Name})
		}
	case approvals.Decided:
		add(moment{At: e.At, What: fmt.Sprintf("%s decided: %s", e.By.User, e.Verdict), Batch: b, Call: e.Call, By: e.By.User})
	case approvals.Retracted:
		add(moment{At: e.At, What: fmt.Sprintf("%s took their decision back", e.By.User), Batch: b, Call: e.Call, By: e.By.User})
	case approvals.Amended:
		add(moment{At: e.At, What: fmt.Sprintf("%s changed the arguments", e.By.User), Batch: b, Call: e.Call, By: e.By.User})
	case approvals.Reminded:
		add(moment{At: e.At, What: "a reminder was due", Batch: b, Call: e.Call})
	case approvals.Escalated:
		add(moment{At: e.At, What: "more people were asked", Batch: b, Call: e.Call})
	case approvals.Fulfilled:
		add(moment{At: e.At, What: "the result came from elsewhere", Batch: b, Call: e.Call, By: e.By})
	case approvals.Settled:
		add(moment{At: e.At, What: "the call is " + string(e.Status), Batch: b, Call: e.Call, By: e.By})
	case approvals.Concluded:
		add(moment{At: e.At, What: "what became of the call: " + string(e.State), Batch: b, Call: e.Call})
	case approvals.Reported:
		add(moment{At: e.At, What: "a worker that had been stopped reports: " + string(e.State), Batch: b, Call: e.Call})
	case approvals.Resolved:
		add(moment{At: e.At, What: "everything is decided", Batch: b})
	}
}

// facts calls f with the facts of a batch in their order.
func (a admin) facts(ctx context.Context, id approvals.BatchID, f func(approvals.Event)) error {
	n, err := approvals.Partition(string(id))
	if err != nil {
		return err
	}
	feed := state.NewFeed(a.store)
	for after := ""; ; {
		page, err := feed.Facts(ctx, n, after, 1000)
		if err != nil {
			return err
		}
		for _, e := range page {
			after = e.ID
			if approvals.BatchOf(e.Event) == id {
				f(e.Event)
			}
		}
		if len(page) < 1000 {
			return nil
		}
	}
}

// delivered adds the webhook messages about the run.
func (a admin) delivered(ctx context.Context, r agentrun.Run, add func(moment)) error {
	if r.Executor == "" {
		return nil
	}
	o, err := a.outbox()
	if err != nil {
		return err
	}
	list, err := o.Deliveries(ctx, string(r.ID))
	for _, d := range list {
		add(moment{At: d.At, What: fmt.Sprintf("a message %s for the webhook %s was made", d.Type, d.Endpoint)})
		if !d.Last.IsZero() {
			add(moment{At: d.Last, What: fmt.Sprintf("the webhook %s: %s after %s", d.Endpoint, d.State, counted(d.Attempts, "attempt", "attempts"))})
		}
	}
	return err
}
