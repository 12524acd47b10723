package agentrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Mention is a person asking an agent for something.
type Mention struct {
	Event     string // unique to the message, the key by which a repeated delivery is known for 25 hours
	Origin    Origin
	Agent     string
	Requester approvals.UserID
	Text      string
	Via       string // the surface at which it was written, if that is not the origin's

	// Instructions go to the model after those of the agent, in all that the mention
	// leads to. A surface that lets its clients write them says how long they may be.
	Instructions string
}

// MaxQueue is how many runs may wait for a thread.
const MaxQueue = 20

// keepMention is how long a repeated delivery of a mention is known.
const keepMention = 25 * time.Hour

// ThreadIDOf returns the id of the thread with this origin.
func ThreadIDOf(o Origin) ThreadID {
	partition := approvals.PartitionOf(o.Surface, o.Team, o.Channel, o.Root)
	return ThreadID(approvals.NewID("thread", partition, derived("thread", o.Surface, o.Team, o.Channel, o.Root)))
}

// MentionRunID returns the id of the run that a mention with this event makes, or has
// made.
func MentionRunID(id ThreadID, event string) (approvals.RunID, error) {
	partition, err := approvals.Partition(string(id))
	if err != nil {
		return "", err
	}
	return approvals.RunID(approvals.NewID("run", partition, derived("mention", string(id), event))), nil
}

// Mention commits a run for m: queued if its thread is free, otherwise waiting
// behind what is going on there. What it does while calls of the thread are
// pending the agent's [PendingRule] says. The same event again returns the same
// run. A thread for which [MaxQueue] runs wait takes no more: [ErrQueueFull].
// Neither does one that is closed: [ErrThreadClosed].
func (r *Runner) Mention(ctx context.Context, m Mention) (Run, error) {
	if m.Event == "" || m.Requester == "" || m.Origin.Channel == "" {
		return Run{}, fmt.Errorf("%w: a mention has an event, a person and a channel", approvals.ErrInvalid)
	}
	threadID := ThreadIDOf(m.Origin)
	id, err := MentionRunID(threadID, m.Event)
	if err != nil {
		return Run{}, err
	}
	return storedOnce(ctx, r.c.Store, id, "mention in "+string(threadID), func() (Run, error) { return r.c.Store.Run(ctx, id) },
		func() error { return r.mention(ctx, id, threadID, m) })
}

// storedOnce returns what read finds of the run, once that is durable. If it finds nothing,
// commit tries to store it.
func storedOnce[T any](ctx context.Context, s Store, id approvals.RunID, what string, read func() (T, error), commit func() error) (T, error) {
	var none T
	durable := false // what is read next
	for range maxConflicts {
		found, err := read()
		switch {
		case err == nil && durable, err != nil && !errors.Is(err, approvals.ErrNotFound):
			return found, err
		case err == nil:
			// An earlier request has stored it, and was perhaps told that it may be lost.
			// The server that confirms may lack it.
			err = s.Confirm(ctx, string(id))
		default:
			err = commit()
		}
		durable = err == nil
		if err != nil && !errors.Is(err, approvals.ErrConflict) {
			return none, err
		}
	}
	return none, fmt.Errorf("%s: %w", what, approvals.ErrConflict)
}

// mention tries once to commit the run.
func (r *Runner) mention(ctx context.Context, id approvals.RunID, threadID ThreadID, m Mention) error {
	thread, err := r.c.Store.Thread(ctx, threadID)
	if errors.Is(err, approvals.ErrNotFound) {
		thread, err = Thread{ID: threadID, Origin: m.Origin}, nil
	}
	if err != nil {
		return err
	}
	if thread.Closed != "" {
		return ErrThreadClosed
	}
	run := Run{
		ID: id, Thread: threadID, Origin: m.Origin, Agent: m.Agent, Requester: m.Requester, Prompt: m.Text, Via: m.Via,
		Instructions: m.Instructions, Status: RunWaiting, CreatedAt: r.c.Now(),
	}
	out := Commit{Request: approvals.RequestID("mention:" + string(id)), Keep: keepMention, Thread: &thread}
	if thread.Active == "" {
		run.Status, run.From, run.To = RunQueued, thread.Messages, thread.Messages
		thread.Active = id
		out.Runs = []Run{run}
		return r.c.Store.Commit(ctx, out)
	}
	if out.Moves, err = r.supersede(ctx, thread, run); err != nil {
		return err
	}
	switch {
	case out.Moves != nil: // it is taken up before anything that waits
		run.Supersedes = out.Moves.Batch.ID
		thread.Queue = slices.Insert(slices.Clone(thread.Queue), 0, id)
	case len(thread.Queue) >= MaxQueue:
		return ErrQueueFull
	default:
		thread.Queue = append(slices.Clip(thread.Queue), id)
	}
	out.Runs = []Run{run}
	return r.c.Store.Commit(ctx, out)
}
