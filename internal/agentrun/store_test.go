package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// memory is a [agentrun.Store] with the semantics of a Commit and nothing else.
// The store that is shipped has a conformance suite of its own.
type memory struct {
	mu       sync.Mutex
	threads  map[agentrun.ThreadID]agentrun.Thread
	runs     map[approvals.RunID]agentrun.Run
	messages map[agentrun.ThreadID][][]byte
	entries  map[string]agentrun.Entry
	batches  map[approvals.BatchID]approvals.Batch
	args     map[string]json.RawMessage
	requests map[approvals.RequestID]bool
	commits  []agentrun.Commit // that were applied, in order

	before func(n int, c agentrun.Commit) error // called before the nth commit of this store is looked at
	after  func(n int, c agentrun.Commit) error // called after it was applied
	n      int

	volatile func() bool // whether what was stored may be lost
}

func newMemory() *memory {
	return &memory{
		threads:  map[agentrun.ThreadID]agentrun.Thread{},
		runs:     map[approvals.RunID]agentrun.Run{},
		messages: map[agentrun.ThreadID][][]byte{},
		entries:  map[string]agentrun.Entry{},
		batches:  map[approvals.BatchID]approvals.Batch{},
		args:     map[string]json.RawMessage{},
		requests: map[approvals.RequestID]bool{},
	}
}

func find[K comparable, V any](m *memory, from map[K]V, id K) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := from[id]
	if !ok {
		return v, fmt.Errorf("%w: %v", approvals.ErrNotFound, id)
	}
	return v, nil
}

func (m *memory) Thread(_ context.Context, id agentrun.ThreadID) (agentrun.Thread, error) {
	return find(m, m.threads, id)
}

func (m *memory) Run(_ context.Context, id approvals.RunID) (agentrun.Run, error) {
	return find(m, m.runs, id)
}

func (m *memory) Batch(_ context.Context, id approvals.BatchID) (approvals.Batch, error) {
	return find(m, m.batches, id)
}

func (m *memory) Args(_ context.Context, id approvals.BatchID, d approvals.Digest) (json.RawMessage, error) {
	return find(m, m.args, argsKey(id, d))
}

func argsKey(id approvals.BatchID, d approvals.Digest) string { return string(id) + d.String() }

func entryKey(run approvals.RunID, call approvals.ToolCallID) string {
	return string(run) + "/" + string(call)
}

func (m *memory) Messages(_ context.Context, id agentrun.ThreadID, from, to int) ([]agentrun.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []agentrun.Message
	for _, raw := range m.messages[id][from:to] {
		msg, err := agentrun.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, msg)
	}
	return out, nil
}

func (m *memory) Journal(_ context.Context, id approvals.RunID) ([]agentrun.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []agentrun.Entry
	for _, e := range m.entries {
		if e.Run == id {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memory) Confirm(context.Context, string) error {
	if m.volatile != nil && m.volatile() {
		return approvals.ErrNotDurable
	}
	return nil
}

func (m *memory) Commit(ctx context.Context, c agentrun.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	m.n++
	n := m.n
	m.mu.Unlock()
	if m.before != nil {
		if err := m.before(n, c); err != nil {
			return err
		}
	}
	if err := m.apply(c); err != nil {
		return err
	}
	if m.after != nil {
		return m.after(n, c)
	}
	return nil
}

func (m *memory) apply(c agentrun.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Request == "" {
		return errors.New("a commit without a request")
	}
	if m.requests[c.Request] {
		return nil
	}
	if err := m.check(c); err != nil {
		return err
	}
	m.requests[c.Request] = true
	m.commits = append(m.commits, c)
	m.write(c)
	return nil
}

func (m *memory) check(c agentrun.Commit) error {
	if c.Owner != nil && m.runs[c.Owner.Run].Owner != c.Owner.Fence {
		return fmt.Errorf("%w: owner of %s", approvals.ErrConflict, c.Owner.Run)
	}
	if c.Thread != nil && m.threads[c.Thread.ID].Version != c.Thread.Version {
		return fmt.Errorf("%w: thread %s", approvals.ErrConflict, c.Thread.ID)
	}
	for _, r := range c.Runs {
		if m.runs[r.ID].Version != r.Version {
			return fmt.Errorf("%w: run %s", approvals.ErrConflict, r.ID)
		}
	}
	if c.Append != nil && len(m.messages[c.Append.Thread]) != c.Append.At {
		return fmt.Errorf("%w: messages of %s", approvals.ErrConflict, c.Append.Thread)
	}
	for _, e := range c.Entries {
		if m.entries[entryKey(e.Run, e.Call)].Version != e.Version {
			return fmt.Errorf("%w: entry %s", approvals.ErrConflict, e.Call)
		}
	}
	if c.Opens != nil {
		if _, there := m.batches[c.Opens.Batch.ID]; there {
			return fmt.Errorf("%w: batch %s", approvals.ErrConflict, c.Opens.Batch.ID)
		}
	}
	if v := c.Moves; v != nil && (v.Before.Version == 0 || m.batches[v.Batch.ID].Version != v.Before.Version) {
		return fmt.Errorf("%w: batch %s", approvals.ErrConflict, v.Batch.ID)
	}
	if c.Resumes != nil && m.batches[c.Resumes.ID].Version != c.Resumes.Version {
		return fmt.Errorf("%w: batch %s", approvals.ErrConflict, c.Resumes.ID)
	}
	return nil
}

func (m *memory) write(c agentrun.Commit) {
	if c.Thread != nil {
		t := *c.Thread
		t.Queue, t.Version = slices.Clone(t.Queue), t.Version+1
		m.threads[t.ID] = t
	}
	for _, r := range c.Runs {
		r.Activity, r.Version = slices.Clone(r.Activity), r.Version+1
		m.runs[r.ID] = r
	}
	if a := c.Append; a != nil {
		for _, msg := range a.Messages {
			raw, err := agentrun.EncodeMessage(msg)
			if err != nil {
				panic(err)
			}
			m.messages[a.Thread] = append(m.messages[a.Thread], raw)
		}
	}
	for _, e := range c.Entries {
		e.Version++
		if e.Finish.Part != nil {
			raw, err := agentrun.EncodeRequestPart(e.Finish.Part)
			if err != nil {
				panic(err)
			}
			if e.Finish.Part, err = agentrun.DecodeRequestPart(raw); err != nil {
				panic(err)
			}
		}
		m.entries[entryKey(e.Run, e.Call)] = e
	}
	if v := c.Moves; v != nil {
		m.batches[v.Batch.ID] = v.Batch
	}
	if o := c.Opens; o != nil {
		m.batches[o.Batch.ID] = o.Batch
		for d, raw := range maps.All(o.Args) {
			m.args[argsKey(o.Batch.ID, d)] = slices.Clone(raw)
		}
	}
}

// opened is how many batches there are.
func (m *memory) opened() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.batches)
}

// move applies commands to a batch, as the desk would.
func (m *memory) move(id approvals.BatchID, args json.RawMessage, cmds ...approvals.Command) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batches[id]
	for _, cmd := range cmds {
		next, _, err := b.Apply(cmd)
		if err != nil {
			return err
		}
		if amend, ok := cmd.(approvals.Amend); ok {
			for _, a := range next.Approvals {
				if a.Call.ID == amend.Call {
					m.args[argsKey(id, a.Call.Digest)] = slices.Clone(args)
				}
			}
		}
		b = next
	}
	m.batches[id] = b
	return nil
}
