package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The stored forms are structs of their own: a field that is renamed in the
// core is not renamed on disk. What is here may gain fields; a change that an
// old document cannot be read with raises schema and keeps the old form. The
// version of a document is no part of it, it is a field of the hash.
const schema = 1

// versioned is what every stored form begins with.
type versioned struct {
	Schema int `json:"v"`
}

func (v versioned) schema() int { return v.Schema }

var current = versioned{schema}

type storedThread struct {
	versioned

	ID       agentrun.ThreadID `json:"id"`
	Origin   storedOrigin      `json:"origin"`
	Active   approvals.RunID   `json:"active,omitempty"`
	Queue    []approvals.RunID `json:"queue,omitempty"`
	Messages int               `json:"messages,omitempty"`
	Closed   string            `json:"closed,omitempty"`
}

type storedOrigin struct {
	Surface string `json:"surface,omitempty"`
	Team    string `json:"team,omitempty"`
	Channel string `json:"channel,omitempty"`
	Root    string `json:"root,omitempty"`
}

type storedRun struct {
	versioned

	ID        approvals.RunID   `json:"id"`
	Thread    agentrun.ThreadID `json:"thread"`
	Origin    storedOrigin      `json:"origin"`
	Parent    approvals.RunID   `json:"parent,omitempty"`
	Batch     approvals.BatchID `json:"batch,omitempty"`
	Deferred  approvals.BatchID `json:"deferred,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Requester approvals.UserID  `json:"requester,omitempty"`
	Prompt    string            `json:"prompt,omitempty"`
	Status    agentrun.Status   `json:"status"`
	Activity  []string          `json:"activity,omitempty"`
	Steps     int               `json:"steps,omitempty"`
	From      int               `json:"from,omitempty"`
	To        int               `json:"to,omitempty"`
	Usage     storedUsage       `json:"usage,omitzero"`
	Output    string            `json:"output,omitempty"`
	Failure   string            `json:"failure,omitempty"`
	Owner     agentrun.Fence    `json:"owner,omitempty"`
	LeaseEnds time.Time         `json:"lease_ends,omitzero"`
	CreatedAt time.Time         `json:"created_at,omitzero"`
	EndedAt   time.Time         `json:"ended_at,omitzero"`

	Supersedes approvals.BatchID  `json:"supersedes,omitempty"`
	Executor   approvals.Executor `json:"executor,omitempty"`
	CallsOnly  bool               `json:"calls_only,omitempty"`
	Via        string             `json:"via,omitempty"`
	Asks       int                `json:"asks,omitempty"`

	Instructions string `json:"instructions,omitempty"`
}

type storedUsage struct {
	Requests     int `json:"requests,omitempty"`
	ToolCalls    int `json:"tool_calls,omitempty"`
	InputTokens  int `json:"input_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`
}

type storedEntry struct {
	versioned

	Run      approvals.RunID      `json:"run"`
	Call     approvals.ToolCallID `json:"call"`
	Tool     string               `json:"tool"`
	State    agentrun.EntryState  `json:"state"`
	Fence    agentrun.Fence       `json:"fence,omitempty"`
	At       time.Time            `json:"at,omitzero"`
	Part     json.RawMessage      `json:"part,omitempty"` // a request with this one part
	Prompt   string               `json:"prompt,omitempty"`
	Aside    agentrun.Aside       `json:"aside,omitempty"`
	Took     time.Duration        `json:"took_ns,omitempty"`
	Unsure   bool                 `json:"unsure,omitempty"`
	Metadata json.RawMessage      `json:"metadata,omitempty"`
	Reason   storedQuote          `json:"reason,omitzero"`
}

func encodeThread(t agentrun.Thread) ([]byte, error) {
	return encode(storedThread{
		current, t.ID, storedOrigin(t.Origin), t.Active, t.Queue, t.Messages, t.Closed,
	})
}

func decodeThread(d []byte) (agentrun.Thread, error) {
	t, err := decode[storedThread](d)
	return agentrun.Thread{
		ID: t.ID, Origin: agentrun.Origin(t.Origin), Active: t.Active, Queue: t.Queue, Messages: t.Messages,
		Closed: t.Closed,
	}, err
}

func encodeRun(r agentrun.Run) ([]byte, error) {
	return encode(storedRun{
		current, r.ID, r.Thread, storedOrigin(r.Origin), r.Parent, r.Batch, r.Deferred, r.Agent, r.Requester,
		r.Prompt, r.Status, r.Activity, r.Steps, r.From, r.To, storedUsage(r.Usage), r.Output, r.Failure,
		r.Owner, r.LeaseEnds.UTC(), r.CreatedAt.UTC(), r.EndedAt.UTC(), r.Supersedes, r.Executor, r.CallsOnly, r.Via, r.Asks, r.Instructions,
	})
}

func decodeRun(d []byte) (agentrun.Run, error) {
	r, err := decode[storedRun](d)
	return agentrun.Run{
		ID: r.ID, Thread: r.Thread, Origin: agentrun.Origin(r.Origin), Parent: r.Parent, Batch: r.Batch,
		Deferred: r.Deferred, Agent: r.Agent, Requester: r.Requester, Prompt: r.Prompt, Status: r.Status,
		Activity: r.Activity, Steps: r.Steps, From: r.From, To: r.To, Usage: agentrun.Usage(r.Usage),
		Output: r.Output, Failure: r.Failure, Owner: r.Owner, LeaseEnds: r.LeaseEnds, CreatedAt: r.CreatedAt,
		EndedAt: r.EndedAt, Supersedes: r.Supersedes, Executor: r.Executor, CallsOnly: r.CallsOnly, Via: r.Via,
		Asks: r.Asks, Instructions: r.Instructions,
	}, err
}

func encodeEntry(e agentrun.Entry) ([]byte, error) {
	var part json.RawMessage
	if e.Finish.Part != nil {
		var err error
		part, err = agentrun.EncodeMessage(agentrun.Request{Parts: []agentrun.RequestPart{e.Finish.Part}})
		if err != nil {
			return nil, err
		}
	}
	return encode(storedEntry{
		current, e.Run, e.Call, e.Tool, e.State, e.Fence, e.At.UTC(), part, e.Finish.Prompt, e.Finish.Aside,
		e.Finish.Took, e.Finish.Unsure, e.Finish.Metadata, storedQuote(e.Finish.Reason),
	})
}

func decodeEntry(d []byte) (agentrun.Entry, error) {
	e, err := decode[storedEntry](d)
	if err != nil {
		return agentrun.Entry{}, err
	}
	out := agentrun.Entry{
		Run: e.Run, Call: e.Call, Tool: e.Tool, State: e.State, Fence: e.Fence, At: e.At,
		Finish: agentrun.Finish{
			Prompt: e.Prompt, Aside: e.Aside, Metadata: e.Metadata, Took: e.Took, Unsure: e.Unsure, Reason: approvals.Quote(e.Reason),
		},
	}
	if e.Part == nil {
		return out, nil
	}
	m, err := agentrun.DecodeMessage(e.Part)
	if err != nil {
		return agentrun.Entry{}, err
	}
	r, ok := m.(agentrun.Request)
	if !ok || len(r.Parts) != 1 {
		return agentrun.Entry{}, fmt.Errorf("the part of a journal entry is not one")
	}
	out.Finish.Part = r.Parts[0]
	return out, nil
}

// encode returns a stored form as it is stored, packed.
func encode(doc any) ([]byte, error) {
	p := packers.Get().(*packer)
	defer p.done()
	e := json.NewEncoder(&p.json)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(p.json.Bytes(), []byte("\n"))
	if short, ok := p.packed(text); ok {
		text = short
	}
	return bytes.Clone(text), nil
}

// decode reads a stored form of the schema that this program knows. A document
// of a newer program is an error: what it means cannot be guessed.
// decode reads a document with the implementation of encoding/json that Go has from 1.27 on,
// which takes half the time. On Go 1.26 jsonv1 is a module of its own with that.
func decode[T interface{ schema() int }](d []byte) (T, error) {
	var doc T
	p := packers.Get().(*packer)
	defer p.done()
	d, err := p.unpack(d)
	if err != nil {
		return doc, fmt.Errorf("decode document: %w", err)
	}
	err = jsonv1.Unmarshal(d, &doc)
	v := versioned{doc.schema()}
	if err != nil && jsonv1.Unmarshal(d, &v) != nil {
		return doc, fmt.Errorf("decode document: %w", err)
	}
	if v.Schema < 1 || v.Schema > schema {
		return *new(T), fmt.Errorf("decode document: schema %d is not one of ours (1 to %d)", v.Schema, schema)
	}
	return doc, wrap(err, "decode document")
}
