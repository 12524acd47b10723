package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/httpapi/format"
	"github.com/countersign/countersign/internal/intake"
)

// The JSON of the API, as openapi.yaml states it.

type wireRequest struct {
	ID         approvals.RunID `json:"id"`
	Status     intake.State    `json:"status"`
	ExternalID string          `json:"external_id,omitempty"`
	Group      string          `json:"group,omitempty"`
	Format     format.Name     `json:"format,omitempty"`
	Calls      []wireCall      `json:"calls"`
	State      json.RawMessage `json:"state,omitempty"`
	CreatedAt  time.Time       `json:"created_at"`
	ExpiresAt  time.Time       `json:"expires_at,omitzero"`
	Trace      string          `json:"traceparent,omitempty"`
	Superseded approvals.RunID `json:"superseded_by,omitempty"`
	Joined     bool            `json:"joined,omitempty"`
}

// wireArgs are the arguments three times: as a value for programs that only read
// them, as the text whose bytes count, and the SHA-256 of these bytes.
type wireArgs struct {
	Args   json.RawMessage `json:"args"`
	Text   string          `json:"args_text"`
	SHA256 string          `json:"args_sha256"`
}

func argsOf(raw json.RawMessage) wireArgs {
	sum := sha256.Sum256(raw)
	a := wireArgs{Args: raw, Text: string(raw), SHA256: hex.EncodeToString(sum[:])}
	if len(raw) == 0 {
		a.Args = json.RawMessage("null")
	}
	return a
}

// wirePlace is where a call would run, in the words of its caller.
type wirePlace struct {
	Server     string `json:"server,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
}

func placeOf(p approvals.Place) wirePlace {
	return wirePlace{Server: p.Server, Cwd: p.Cwd, Repository: p.Repository, Branch: p.Branch}
}

type wireCall struct {
	ID   approvals.ToolCallID `json:"id"`
	Tool string               `json:"tool"`
	wirePlace
	Outcome     intake.Outcome `json:"outcome"`
	Digest      string         `json:"digest"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	wireArgs
	Edited      bool               `json:"edited,omitempty"`
	External    bool               `json:"external,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	By          []approvals.UserID `json:"approvers,omitempty"`
	Rule        string             `json:"rule,omitempty"`
	DecidedAt   time.Time          `json:"decided_at,omitzero"`
	UsableUntil time.Time          `json:"usable_until,omitzero"`
	ClaimedAt   time.Time          `json:"claimed_at,omitzero"`
	Report      *wireReport        `json:"report,omitempty"`
	Result      json.RawMessage    `json:"result,omitempty"`
	Receipt     string             `json:"receipt,omitempty"`
}

type wireReport struct {
	State   approvals.ExecutionState `json:"state"`
	Took    int64                    `json:"took_ms,omitempty"`
	Words   string                   `json:"words,omitempty"`
	Excerpt string                   `json:"excerpt,omitempty"`
	At      time.Time                `json:"at,omitzero"`
}

type wireClaim struct {
	Call      approvals.ToolCallID `json:"call"`
	Tool      string               `json:"tool"`
	Digest    string               `json:"digest"`
	ClaimedAt time.Time            `json:"claimed_at"`
	wireArgs
	Receipt string `json:"receipt,omitempty"`
}

// wireWaiting is a call that waits for its result.
type wireWaiting struct {
	Approval approvals.RunID      `json:"approval"`
	Call     approvals.ToolCallID `json:"call"`
	Agent    string               `json:"agent"`
	Tool     string               `json:"tool"`
	Digest   string               `json:"digest"`
	wireArgs
	wirePlace
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Since    time.Time       `json:"since"`
}

func waitingOf(w intake.WaitingCall) wireWaiting {
	return wireWaiting{
		Approval: w.Request, Call: w.Call, Agent: w.Agent, Tool: w.Tool, Digest: digest(w.Digest), wireArgs: argsOf(w.Args), Metadata: w.Metadata,
		wirePlace: placeOf(w.Place), Since: w.Since.UTC(),
	}
}

type wireEvent struct {
	Type     string               `json:"type"`
	Approval approvals.RunID      `json:"approval"`
	Call     approvals.ToolCallID `json:"call,omitempty"`
	At       time.Time            `json:"at"`
}

// wireListed is a request in a list: what it is and how it stands, without its
// arguments and its state.
type wireListed struct {
	ID         approvals.RunID  `json:"id"`
	Status     intake.State     `json:"status"`
	ExternalID string           `json:"external_id,omitempty"`
	Group      string           `json:"group,omitempty"`
	Calls      []wireListedCall `json:"calls"`
	CreatedAt  time.Time        `json:"created_at"`
	ExpiresAt  time.Time        `json:"expires_at,omitzero"`
}

type wireListedCall struct {
	ID        approvals.ToolCallID `json:"id"`
	Tool      string               `json:"tool"`
	Outcome   intake.Outcome       `json:"outcome"`
	ClaimedAt time.Time            `json:"claimed_at,omitzero"`
}

func listed(q intake.Request) wireListed {
	out := wireListed{
		ID: q.ID, Status: q.State, ExternalID: q.ExternalID, Group: q.Group, Calls: []wireListedCall{},
		CreatedAt: q.CreatedAt.UTC(), ExpiresAt: q.ExpiresAt.UTC(),
	}
	for _, c := range q.Calls {
		out.Calls = append(out.Calls, wireListedCall{ID: c.ID, Tool: c.Tool, Outcome: c.Outcome, ClaimedAt: c.ClaimedAt.UTC()})
	}
	return out
}

// requestOf is the request as its client sees it, and the form that was kept to
// answer in its format.
func requestOf(q intake.Request) (wireRequest, format.Form, error) {
	kept, err := unpack(q.StateDoc)
	if err != nil {
		return wireRequest{}, format.Form{}, fmt.Errorf("request %s: %w", q.ID, err)
	}
	out := wireRequest{
		ID: q.ID, Status: q.State, ExternalID: q.ExternalID, Group: q.Group, Format: kept.Form.Format, Calls: []wireCall{}, State: kept.State,
		CreatedAt: q.CreatedAt.UTC(), ExpiresAt: q.ExpiresAt.UTC(), Trace: q.Trace, Superseded: q.SupersededBy, Joined: q.Joined,
	}
	for _, c := range q.Calls {
		w, err := callOf(c)
		if err != nil {
			return wireRequest{}, format.Form{}, fmt.Errorf("request %s: %w", q.ID, err)
		}
		out.Calls = append(out.Calls, w)
	}
	return out, kept.Form, nil
}

func callOf(c intake.CallStatus) (wireCall, error) {
	w := wireCall{
		ID: c.ID, Tool: c.Tool, wirePlace: placeOf(c.Place), Outcome: c.Outcome, Digest: digest(c.Digest), Fingerprint: c.Fingerprint, wireArgs: argsOf(c.Args), Edited: c.Edited, External: c.External,
		Reason: c.Reason, By: usersOf(c.By), Rule: c.Rule, DecidedAt: c.DecidedAt.UTC(), UsableUntil: c.UsableUntil.UTC(), ClaimedAt: c.ClaimedAt.UTC(), Receipt: c.Receipt,
	}
	if r := c.Report; r != nil {
		w.Report = &wireReport{State: r.State, Took: r.Took.Milliseconds(), Words: r.Words, Excerpt: r.Excerpt, At: r.At.UTC()}
	}
	if c.Result != nil {
		all, err := json.Marshal(approvals.DeferredToolResults{Calls: map[approvals.ToolCallID]approvals.CallResult{"r": c.Result}})
		if err != nil {
			return w, fmt.Errorf("write the result of call %q: %w", string(c.ID), err)
		}
		var doc struct {
			Calls map[string]json.RawMessage `json:"calls"`
		}
		if err := json.Unmarshal(all, &doc); err != nil {
			return w, fmt.Errorf("write the result of call %q: %w", string(c.ID), err)
		}
		w.Result = doc.Calls["r"]
	}
	return w, nil
}

func usersOf(by []approvals.Seat) []approvals.UserID {
	var all []approvals.UserID
	for _, s := range by {
		all = append(all, s.User)
	}
	return all
}

func digest(d approvals.Digest) string { return "sha256:" + d.String() }

// kept is what a request stores as its state: that of the caller, and how to
// answer it.
type kept struct {
	Form  format.Form     `json:"form"`
	State json.RawMessage `json:"state,omitempty"`
}

func (k kept) pack() (json.RawMessage, error) {
	raw, err := json.Marshal(kept{Form: k.Form})
	if err != nil || k.State == nil {
		return raw, err
	}
	// The state is put in as it stands: an encoder would take out white space.
	return bytes.Join([][]byte{raw[:len(raw)-1], []byte(`,"state":`), k.State, []byte("}")}, nil), nil
}

func unpack(raw json.RawMessage) (kept, error) {
	var k kept
	if len(raw) == 0 {
		return k, nil
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, fmt.Errorf("read how to answer: %w", err)
	}
	return k, nil
}

// encode writes a document without escaping what only HTML needs escaped.
func encode(doc any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return out.Bytes(), nil
}
