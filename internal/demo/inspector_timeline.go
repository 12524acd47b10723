package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// The tones of the timeline.
const (
	toneGood = "good"
	toneBad  = "bad"
	toneWait = "wait"
)

// teller tells what happened, in a visitor's words.
type teller struct {
	store   *state.Store
	names   map[string]string
	batches map[approvals.BatchID]approvals.Batch
	told    []slacksim.InspectionEvent
}

// timeline merges the runs, their journals and the facts of all partitions.
func (h *inspector) timeline(ctx context.Context, store *state.Store, places []state.Place) ([]slacksim.InspectionEvent, error) {
	t := &teller{store: store, names: h.names, batches: map[approvals.BatchID]approvals.Batch{}}
	var runs []agentrun.Run
	for _, p := range places {
		if p.Run == "" || len(runs) >= mostRunsRead {
			continue
		}
		r, err := store.Run(ctx, p.Run)
		if errors.Is(err, approvals.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b agentrun.Run) int { return a.CreatedAt.Compare(b.CreatedAt) })
	runs = runs[max(0, len(runs)-mostRuns):]
	for _, r := range runs {
		t.begun(r)
		if err := t.journal(ctx, r.ID); err != nil {
			return nil, err
		}
	}
	for n := range approvals.Partitions {
		if err := t.facts(ctx, n, runs); err != nil {
			return nil, err
		}
	}
	for _, r := range runs {
		t.ended(r)
	}
	slices.SortStableFunc(t.told, func(a, b slacksim.InspectionEvent) int { return a.At.Compare(b.At) })
	return t.told, nil
}

func (t *teller) say(at time.Time, run approvals.RunID, tone, detail, format string, args ...any) {
	t.told = append(t.told, slacksim.InspectionEvent{At: at, Run: string(run), What: fmt.Sprintf(format, args...), Detail: short(detail), Tone: tone})
}

func (t *teller) who(id approvals.UserID) string {
	if name := t.names[string(id)]; name != "" {
		return name
	}
	return string(id)
}

// begun tells how a run came about.
func (t *teller) begun(r agentrun.Run) {
	if r.Parent != "" {
		t.say(r.CreatedAt, r.ID, "", "DeferredToolResults of run "+string(r.Parent), "A new run resumed with the answers")
		return
	}
	t.say(r.CreatedAt, r.ID, "", r.Prompt, "%s asked, and a run began", t.who(r.Requester))
}

// ended tells where a run is. Where it deferred, the facts say more.
func (t *teller) ended(r agentrun.Run) {
	switch r.Status {
	case agentrun.RunWaiting:
		t.say(r.CreatedAt, r.ID, toneWait, "Another run of the thread comes first.", "Run waits for its turn")
	case agentrun.RunQueued:
		t.say(r.CreatedAt, r.ID, toneWait, "The next free worker takes it.", "Run is queued")
	case agentrun.RunRunning:
		detail := fmt.Sprintf("Answers of the model so far: %d. %s", r.Steps, strings.Join(r.Activity, ", "))
		t.say(r.CreatedAt, r.ID, toneWait, strings.TrimSpace(detail), "Run is working")
	case agentrun.RunCompleted:
		t.say(r.EndedAt, r.ID, toneGood, r.Output, "Run completed")
	case agentrun.RunFailed:
		t.say(r.EndedAt, r.ID, toneBad, r.Failure, "Run failed")
	case agentrun.RunParked:
		t.say(r.CreatedAt, r.ID, toneBad, r.Failure, "Run is parked: an operator must look")
	case agentrun.RunMerged:
		t.say(r.EndedAt, r.ID, "", "It superseded the pending calls.", "The message continues in their resume run")
	case agentrun.RunDeferred:
	}
}

// journal tells which calls ran.
func (t *teller) journal(ctx context.Context, run approvals.RunID) error {
	entries, err := t.store.Journal(ctx, run)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.State == agentrun.EntryStarted:
			t.say(e.At, run, toneWait, "It never starts a second time.", "%s started", e.Tool)
		case e.State == agentrun.EntryFinished && e.Finish.Part != nil:
			t.say(e.At, run, "", "", "%s ran", e.Tool)
		}
	}
	return nil
}

// facts tells the latest facts of a partition that are about these runs.
func (t *teller) facts(ctx context.Context, partition int, runs []agentrun.Run) error {
	if len(runs) == 0 {
		return nil
	}
	after := strconv.FormatInt(runs[0].CreatedAt.Add(-time.Minute).UnixMilli(), 10)
	var latest []approvals.StoredEvent
	for {
		facts, err := state.NewFeed(t.store).Facts(ctx, partition, after, mostFacts)
		if err != nil {
			return err
		}
		latest = append(latest, facts...)
		latest = latest[max(0, len(latest)-mostFacts):]
		if len(facts) < mostFacts {
			break
		}
		after = facts[len(facts)-1].ID
	}
	for _, f := range latest {
		if err := t.fact(ctx, f.Event); err != nil {
			return err
		}
	}
	return nil
}

// fact tells one event of a batch.
func (t *teller) fact(ctx context.Context, e approvals.Event) error {
	switch e := e.(type) {
	case approvals.Opened:
		n := len(e.Approvals) + len(e.Calls)
		var tools []string
		for _, c := range slices.Concat(e.Approvals, e.Calls) {
			tools = append(tools, c.Name)
		}
		t.say(e.At, e.Run, toneWait, "Waiting: "+strings.Join(tools, ", ")+". No process waits: everything is in Redis.", "Run ended with DeferredToolRequests: %s", calls(n))
	case approvals.Decided:
		return t.decided(ctx, e)
	case approvals.Retracted:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneWait, args, "%s took back a decision on %s", t.who(e.By.User), tool)
		})
	case approvals.Amended:
		return t.shown(ctx, e.Batch, e.Call, e.To, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneWait, args, "%s changed the arguments of %s: earlier decisions no longer count", t.who(e.By.User), tool)
		})
	case approvals.Reminded:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneWait, args, "Approvers of %s are reminded", tool)
		})
	case approvals.Escalated:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneWait, args, "%s is still undecided: more people are asked, or another channel is", tool)
		})
	case approvals.Fulfilled:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneGood, args, "The result of %s arrived", tool)
		})
	case approvals.Settled:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			tone := toneBad
			if e.Status == approvals.Approved {
				tone = toneGood
			}
			t.say(e.At, run, tone, args+reason(e.Reason), "%s is decided: %s", tool, e.Status)
		})
	case approvals.Concluded:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			tone := toneBad
			if e.State == approvals.Ran {
				tone = toneGood
			}
			t.say(e.At, run, tone, args, "The outcome of %s is recorded: %s", tool, e.State)
		})
	case approvals.Reported:
		return t.about(ctx, e.Batch, e.Call, e.At, func(run approvals.RunID, tool, args string) {
			t.say(e.At, run, toneBad, args, "A worker that had been stopped reports about %s: %s", tool, e.State)
		})
	case approvals.Resolved:
		t.say(e.At, e.Run, toneGood, "A resume run is due, in the same commit.", "Every call has its answer")
	}
	return nil
}

func (t *teller) decided(ctx context.Context, e approvals.Decided) error {
	return t.shown(ctx, e.Batch, e.Call, e.Digest, func(run approvals.RunID, tool, args string) {
		if e.Verdict == approvals.Approve {
			t.say(e.At, run, toneGood, args+reason(e.Reason), "%s approved %s", t.who(e.By.User), tool)
			return
		}
		t.say(e.At, run, toneBad, args+reason(e.Reason), "%s denied %s", t.who(e.By.User), tool)
	})
}

// about finds the run, the tool and the arguments that a call had at this time.
func (t *teller) about(ctx context.Context, id approvals.BatchID, call approvals.ToolCallID, at time.Time, f func(run approvals.RunID, tool, args string)) error {
	b, err := t.batch(ctx, id)
	if err != nil {
		return err
	}
	var digest approvals.Digest
	for _, a := range b.Approvals {
		if a.Call.ID == call {
			digest = digestAt(a, at)
		}
	}
	return t.shown(ctx, id, call, digest, f)
}

// digestAt names the arguments that the call had at this time: before an edit,
// those that it replaced.
func digestAt(a approvals.Approval, at time.Time) approvals.Digest {
	for _, m := range a.Amendments {
		if at.Before(m.At) {
			return m.From
		}
	}
	return a.Call.Digest
}

// shown finds the run, the tool and the arguments of this digest. Arguments that
// people are not shown on the card are not shown here.
func (t *teller) shown(ctx context.Context, id approvals.BatchID, call approvals.ToolCallID, digest approvals.Digest, f func(run approvals.RunID, tool, args string)) error {
	b, err := t.batch(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range b.Approvals {
		if a.Call.ID != call {
			continue
		}
		if len(a.WriteOnly) > 0 {
			f(b.Run, a.Call.Name, "")
			return nil
		}
		args, err := t.store.Args(ctx, id, digest)
		if err != nil && !errors.Is(err, approvals.ErrNotFound) {
			return err
		}
		f(b.Run, a.Call.Name, compact(args))
		return nil
	}
	for _, c := range b.Calls {
		if c.Call.ID == call {
			f(b.Run, c.Call.Name, "")
			return nil
		}
	}
	f(b.Run, "call "+string(call), "")
	return nil
}

// batch loads a batch once. One that is gone is empty.
func (t *teller) batch(ctx context.Context, id approvals.BatchID) (approvals.Batch, error) {
	if b, ok := t.batches[id]; ok {
		return b, nil
	}
	b, err := t.store.Batch(ctx, id)
	if err != nil && !errors.Is(err, approvals.ErrNotFound) {
		return b, err
	}
	t.batches[id] = b
	return b, nil
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return " because: " + text
}

func compact(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return ""
	}
	return b.String()
}

// short is the beginning of a text, on one line.
func short(text string) string {
	const most = 240
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return text
}
