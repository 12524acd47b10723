package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// story prints what happened to a run and to those that it resumes and that resume
// it, in order. The id may also be that of a batch, which stands for the run that asked.
func (a admin) story(ctx context.Context, id approvals.RunID, asJSON bool) error {
	if b, err := a.store.Batch(ctx, approvals.BatchID(id)); err == nil {
		id = b.Run
	}
	err := a.known(ctx, id)
	if errors.Is(err, approvals.ErrNotFound) {
		return a.remains(ctx, id, err, asJSON)
	}
	if err != nil {
		return err
	}
	runs, err := a.chain(ctx, id)
	if err != nil {
		return err
	}
	var told story
	for i, r := range runs {
		if err := a.tell(ctx, &told, r, i == len(runs)-1); err != nil {
			return fmt.Errorf("read run %s: %w", r.ID, err)
		}
	}
	parked, err := a.due().Parked(ctx)
	if err != nil {
		return err
	}
	var undated []moment
	for _, p := range parked {
		if at := slices.IndexFunc(runs, func(r agentrun.Run) bool { return p.ID == string(r.ID) || p.ID == string(r.Deferred) }); at >= 0 {
			m := moment{At: p.Since, Kind: workParked, What: givenUp(p), Run: runs[at].ID, Work: p.Kind, Attempts: p.Attempts}
			if p.Since.IsZero() {
				undated = append(undated, m)
			} else {
				told.add(m, []lane{laneBegun + lane(runs[at].ID)})
			}
		}
	}
	all := append(told.moments(), undated...)
	if asJSON {
		return errors.Join(a.sayJSON(all), told.untold())
	}
	var out strings.Builder
	for _, m := range all {
		out.WriteString(m.line())
	}
	last := runs[len(runs)-1]
	fmt.Fprintf(&out, "%s is %s\n", last.ID, last.Status)
	return errors.Join(a.say(out.String()), told.untold())
}

// line describes the moment for people.
func (m moment) line() string {
	where := strings.Fields(string(m.Run) + " " + string(m.Batch) + " " + approvals.VisibleLine(string(m.Call)))
	at := "at an unknown time"
	if !m.At.IsZero() {
		at = m.At.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return tableLine(at, m.What, strings.Join(where, " "))
}

func givenUp(p state.ParkedItem) string {
	after := "after " + counted(p.Attempts, "attempt", "attempts")
	if p.Reason == state.Unreadable {
		after = "and its record cannot be read"
	}
	return fmt.Sprintf("work was given up %s: %s (%s); bot admin retry %s %s", after, p.Kind, p.Reason, p.Kind, p.ID)
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
	for r = all[len(all)-1]; ; all = append(all, r) {
		if r, err = a.after(ctx, r); errors.Is(err, approvals.ErrNotFound) {
			return all, nil // it waits, or its answers are delivered elsewhere
		}
		if err != nil {
			return nil, err
		}
	}
}

// after returns the run that takes up the answers to this one, or executes the calls of
// this request.
func (a admin) after(ctx context.Context, r agentrun.Run) (agentrun.Run, error) {
	var id approvals.RunID
	var err error
	switch {
	case r.Executor != "":
		id, err = agentrun.ExecutionRunID(r.ID)
	case r.Deferred != "":
		id, err = agentrun.ResumeRunID(r.Deferred)
	default:
		err = approvals.ErrNotFound
	}
	if err != nil {
		return agentrun.Run{}, err
	}
	return a.store.Run(ctx, id)
}

// tell adds what happened to one run and to what it waited for, each after what it
// follows from. last says that no run takes up the answers to it.
func (a admin) tell(ctx context.Context, to *story, r agentrun.Run, last bool) error {
	messages, err := a.store.Messages(ctx, r.Thread, r.From, r.To)
	if err = to.except(err); err != nil {
		return err
	}
	journal, err := a.store.Journal(ctx, r.ID)
	if err = to.except(err); err != nil {
		return err
	}
	var facts []approvals.Event
	rules := map[approvals.ToolCallID]string{}
	if r.Deferred != "" {
		if facts, err = a.facts(ctx, r.Deferred); err != nil {
			return err
		}
		b, err := a.store.Batch(ctx, r.Deferred)
		if err != nil && !errors.Is(err, approvals.ErrNotFound) && !errors.Is(err, approvals.ErrUnreadable) {
			return err
		}
		for _, x := range b.Approvals { // none of a batch that is damaged
			rules[x.Call.ID] = x.Rule
		}
	}
	ruled, err := a.ruled(ctx, r)
	if err != nil {
		return err
	}
	t := teller{story: to, run: r, journal: journal, rules: rules, ruled: ruled}
	t.tell(messages, facts, last)
	return a.delivered(ctx, &t)
}

// facts returns the facts of a batch in their order.
func (a admin) facts(ctx context.Context, id approvals.BatchID) (of []approvals.Event, err error) {
	n, err := approvals.Partition(string(id))
	if err != nil {
		return nil, err
	}
	for e, err := range state.NewFeed(a.store).Events(ctx, n) {
		if err != nil {
			return nil, err
		}
		if approvals.BatchOf(e.Event) == id {
			of = append(of, e.Event)
		}
	}
	return of, nil
}

// delivered adds the webhook messages about the run.
func (a admin) delivered(ctx context.Context, t *teller) error {
	if t.run.Executor == "" {
		return nil
	}
	o, err := a.outbox()
	if err != nil {
		return err
	}
	list, err := o.Deliveries(ctx, string(t.run.ID))
	for _, d := range list {
		sent := laneWebhook + lane(d.ID)
		m := moment{At: d.At, Kind: webhookMade, What: fmt.Sprintf("a message %s for the webhook %s was made", d.Type, d.Endpoint), Webhook: d.Endpoint, Type: d.Type}
		t.add(m, []lane{t.begun()}, sent)
		if !d.Last.IsZero() {
			m.At, m.Kind, m.State, m.Attempts = d.Last, webhookTried, d.State, d.Attempts
			m.What = fmt.Sprintf("the webhook %s: %s after %s", d.Endpoint, d.State, counted(d.Attempts, "attempt", "attempts"))
			t.add(m, []lane{sent})
		}
	}
	return err
}
