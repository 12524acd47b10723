package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

type storedBatch struct {
	Schema    int               `json:"v"`
	ID        approvals.BatchID `json:"id"`
	Run       approvals.RunID   `json:"run"`
	Thread    string            `json:"thread,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Channel   string            `json:"channel,omitempty"`
	Requester approvals.UserID  `json:"requester,omitempty"`
	SoFar     storedSoFar       `json:"so_far,omitzero"`
	OpenedAt  time.Time         `json:"opened_at,omitzero"`
	Approvals []storedApproval  `json:"approvals,omitempty"`
	Calls     []storedExternal  `json:"calls,omitempty"`

	Participants []approvals.UserID `json:"participants,omitempty"`
	Executor     approvals.Executor `json:"executor,omitempty"`

	Limits storedLimits `json:"limits,omitzero"`

	Said   storedQuote `json:"said,omitzero"`
	Prompt storedQuote `json:"prompt,omitzero"`
}

type storedLimits struct {
	NoEdits   bool `json:"no_edits,omitempty"`
	NoReasons bool `json:"no_reasons,omitempty"`
}

type storedPlace struct {
	Cwd        string `json:"cwd,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Server     string `json:"server,omitempty"`
}

type storedQuote struct {
	Text string `json:"text"`
	Left int    `json:"left,omitempty"`
}

type storedSoFar struct {
	Steps    int            `json:"steps,omitempty"`
	Executed map[string]int `json:"executed,omitempty"`
	Failed   map[string]int `json:"failed,omitempty"`
	Denied   map[string]int `json:"denied,omitempty"`
}

type storedApproval struct {
	Call        storedRef         `json:"call"`
	Proposed    string            `json:"proposed"`
	Why         string            `json:"why,omitempty"`
	Rule        string            `json:"rule,omitempty"`
	Unjudged    bool              `json:"unjudged,omitempty"`
	Gate        approvals.Gate    `json:"gate,omitempty"`
	Metadata    json.RawMessage   `json:"metadata,omitempty"`
	WriteOnly   []string          `json:"write_only,omitempty"`
	Summary     string            `json:"summary,omitempty"`
	Requirement storedRequirement `json:"requirement"`
	Status      approvals.Status  `json:"status"`
	Decisions   []storedDecision  `json:"decisions,omitempty"`
	Amendments  []storedAmendment `json:"amendments,omitempty"`
	Climbed     int               `json:"climbed,omitempty"`
	Ending      storedEnding      `json:"ending,omitzero"`
	Execution   storedExecution   `json:"execution,omitzero"`

	EditedBy []approvals.UserID `json:"edited_by,omitempty"`

	GateReason storedQuote        `json:"gate_reason,omitzero"`
	Preview    storedPreview      `json:"preview,omitzero"`
	Severity   approvals.Severity `json:"severity,omitempty"`
	Place      storedPlace        `json:"place,omitzero"`
	Doubt      storedDoubt        `json:"doubt,omitzero"`
}

type storedDoubt struct {
	Began    time.Time         `json:"began,omitzero"`
	Key      string            `json:"key,omitempty"`
	Approved approvals.BatchID `json:"approved,omitempty"`
	Unsure   bool              `json:"unsure,omitempty"`
	Said     storedQuote       `json:"said,omitzero"`
	Late     storedExecution   `json:"late,omitzero"`
}

type storedExternal struct {
	Call      storedRef       `json:"call"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	WriteOnly []string        `json:"write_only,omitempty"`
	Summary   string          `json:"summary,omitempty"`
	Place     storedPlace     `json:"place,omitzero"`
	Result    *storedResult   `json:"result,omitempty"`
	Ending    storedEnding    `json:"ending,omitzero"`
}

type storedRef struct {
	ID     approvals.ToolCallID `json:"id"`
	Name   string               `json:"name"`
	Digest string               `json:"digest"`
	Size   int                  `json:"size"`
}

type storedRequirement struct {
	Quorums       []storedQuorum `json:"quorums,omitempty"`
	Deny          int            `json:"deny,omitempty"`
	Vetoes        []storedQuorum `json:"vetoes,omitempty"`
	Separation    bool           `json:"separation,omitempty"`
	EditorMaySign bool           `json:"editor_may_sign,omitempty"`
	Delegation    bool           `json:"delegation,omitempty"`
	ReasonNeeded  bool           `json:"reason_needed,omitempty"`
	Direct        bool           `json:"direct,omitempty"` // everyone: older documents have only this
	Deadline      time.Time      `json:"deadline,omitzero"`
	Ladder        []storedRung   `json:"ladder,omitempty"`

	ParticipantsMaySign bool                     `json:"participants_may_sign,omitempty"`
	DirectTo            approvals.DirectMessages `json:"direct_to,omitempty"` // if not everyone
	ClaimWithin         time.Duration            `json:"claim_within_ns,omitempty"`
}

type storedQuorum struct {
	Name   string              `json:"name,omitempty"`
	Need   int                 `json:"need"`
	Users  []approvals.UserID  `json:"users,omitempty"`
	Groups []approvals.GroupID `json:"groups,omitempty"`
	Stage  int                 `json:"stage,omitempty"`
	Choice int                 `json:"choice,omitempty"`
	Option int                 `json:"option,omitempty"`
}

type storedRung struct {
	At      time.Time           `json:"at,omitzero"`
	Kind    approvals.RungKind  `json:"kind"`
	Quorum  string              `json:"quorum,omitempty"`
	Users   []approvals.UserID  `json:"users,omitempty"`
	Groups  []approvals.GroupID `json:"groups,omitempty"`
	Channel string              `json:"channel,omitempty"`
}

type storedAbsent struct {
	User   approvals.UserID    `json:"user"`
	Groups []approvals.GroupID `json:"groups,omitempty"`
	Until  time.Time           `json:"until,omitzero"`
	Via    []approvals.UserID  `json:"via,omitempty"`
}

type storedPrincipal struct {
	User     approvals.UserID    `json:"user"`
	Groups   []approvals.GroupID `json:"groups,omitempty"`
	GroupsAt time.Time           `json:"groups_at,omitzero"`
	For      []storedAbsent      `json:"for,omitempty"`
}

type storedDecision struct {
	Call    approvals.ToolCallID `json:"call"`
	By      storedPrincipal      `json:"by"`
	Verdict approvals.Verdict    `json:"verdict"`
	Digest  string               `json:"digest"`
	Reason  string               `json:"reason,omitempty"`
	At      time.Time            `json:"at,omitzero"`
}

type storedAmendment struct {
	By      storedPrincipal    `json:"by"`
	From    string             `json:"from"`
	To      string             `json:"to"`
	Cleared []approvals.UserID `json:"cleared,omitempty"`
	At      time.Time          `json:"at,omitzero"`
}

type storedEnding struct {
	At     time.Time        `json:"at,omitzero"`
	By     approvals.UserID `json:"by,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

type storedExecution struct {
	State   approvals.ExecutionState `json:"state"`
	At      time.Time                `json:"at,omitzero"`
	Took    time.Duration            `json:"took_ns,omitempty"`
	Words   string                   `json:"words,omitempty"`
	Excerpt string                   `json:"excerpt,omitempty"`
	By      string                   `json:"by,omitempty"`
}

// storedResult is a sealed [approvals.CallResult]; the kinds are upstream's.
type storedResult struct {
	Kind     string          `json:"kind"`
	Message  string          `json:"message,omitempty"`
	Value    json.RawMessage `json:"return_value,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

const (
	kindDenied = "tool-denied"
	kindReturn = "tool-return"
	kindFailed = "tool-failed"
	kindRetry  = "model-retry"
)

func encodeBatch(b approvals.Batch) ([]byte, error) {
	out := storedBatch{
		Schema: schema, ID: b.ID, Run: b.Run, Thread: b.Thread, Agent: b.Agent, Channel: b.Channel,
		Requester: b.Requester, Executor: b.Executor, Participants: b.Participants, SoFar: storedSoFar(b.SoFar), OpenedAt: b.OpenedAt.UTC(),
		Limits: storedLimits(b.Limits), Said: storedQuote(b.Said), Prompt: storedQuote(b.Prompt),
	}
	for _, a := range b.Approvals {
		s := storedApproval{
			Call: storeRef(a.Call), Proposed: a.Proposed.String(), Why: a.Why, Metadata: a.Metadata,
			Rule: a.Rule, Unjudged: a.Unjudged, Gate: a.Gate, WriteOnly: a.WriteOnly, Requirement: storeRequirement(a.Requirement), Status: a.Status,
			EditedBy: a.EditedBy, Severity: a.Severity, Climbed: a.Climbed, Ending: storeEnding(a.Ending),
			Execution: storeExecution(a.Execution), Summary: a.Summary,
			GateReason: storedQuote(a.GateReason), Preview: storePreview(a.Preview), Place: storedPlace(a.Place),
			Doubt: storedDoubt{
				a.Doubt.Began.UTC(), a.Doubt.Key, a.Doubt.Approved, a.Doubt.Unsure, storedQuote(a.Doubt.Said), storeExecution(a.Doubt.Late),
			},
		}
		for _, d := range a.Decisions {
			s.Decisions = append(s.Decisions, storedDecision{
				d.Call, storePrincipal(d.By), d.Verdict, d.Digest.String(), d.Reason, d.At.UTC(),
			})
		}
		for _, m := range a.Amendments {
			s.Amendments = append(s.Amendments, storedAmendment{
				storePrincipal(m.By), m.From.String(), m.To.String(), m.Cleared, m.At.UTC(),
			})
		}
		out.Approvals = append(out.Approvals, s)
	}
	for _, c := range b.Calls {
		out.Calls = append(out.Calls, storedExternal{
			storeRef(c.Call), c.Metadata, c.WriteOnly, c.Summary, storedPlace(c.Place), storeResult(c.Result), storeEnding(c.Ending),
		})
	}
	return encode(out)
}

func decodeBatch(doc []byte) (approvals.Batch, error) {
	in, err := decode[storedBatch](doc)
	if err != nil {
		return approvals.Batch{}, err
	}
	var r reader
	b := approvals.Batch{
		ID: in.ID, Run: in.Run, Thread: in.Thread, Agent: in.Agent, Channel: in.Channel,
		Requester: in.Requester, Executor: in.Executor, Participants: in.Participants, SoFar: approvals.SoFar(in.SoFar), OpenedAt: in.OpenedAt,
		Limits: approvals.Limits(in.Limits), Said: approvals.Quote(in.Said), Prompt: approvals.Quote(in.Prompt),
	}
	for _, s := range in.Approvals {
		a := approvals.Approval{
			Call: r.ref(s.Call), Proposed: r.digest(s.Proposed), Why: s.Why, Metadata: s.Metadata,
			Rule: s.Rule, Unjudged: s.Unjudged, Gate: s.Gate, WriteOnly: s.WriteOnly, Requirement: requirement(s.Requirement), Status: s.Status,
			EditedBy: s.EditedBy, Severity: s.Severity, Climbed: s.Climbed, Ending: approvals.Ending(s.Ending),
			Execution: approvals.Execution(s.Execution), Summary: s.Summary,
			GateReason: approvals.Quote(s.GateReason), Preview: r.preview(s.Preview), Place: approvals.Place(s.Place),
			Doubt: approvals.Doubt{
				Began: s.Doubt.Began, Key: s.Doubt.Key, Approved: s.Doubt.Approved,
				Unsure: s.Doubt.Unsure, Said: approvals.Quote(s.Doubt.Said), Late: approvals.Execution(s.Doubt.Late),
			},
		}
		for _, d := range s.Decisions {
			a.Decisions = append(a.Decisions, approvals.Decision{
				Call: d.Call, By: d.By.principal(), Verdict: d.Verdict, Digest: r.digest(d.Digest),
				Reason: d.Reason, At: d.At,
			})
		}
		for _, m := range s.Amendments {
			a.Amendments = append(a.Amendments, approvals.Amendment{
				By: m.By.principal(), From: r.digest(m.From), To: r.digest(m.To),
				Cleared: m.Cleared, At: m.At,
			})
		}
		b.Approvals = append(b.Approvals, a)
	}
	for _, c := range in.Calls {
		b.Calls = append(b.Calls, approvals.External{
			Call: r.ref(c.Call), Metadata: c.Metadata, WriteOnly: c.WriteOnly, Summary: c.Summary, Place: approvals.Place(c.Place), Result: r.result(c.Result), Ending: approvals.Ending(c.Ending),
		})
	}
	return b, r.err
}

func storeRef(c approvals.CallRef) storedRef {
	return storedRef{c.ID, c.Name, c.Digest.String(), c.Size}
}

func storePrincipal(p approvals.Principal) storedPrincipal {
	out := storedPrincipal{User: p.User, Groups: p.Groups, GroupsAt: p.GroupsAt.UTC()}
	for _, a := range p.For {
		out.For = append(out.For, storedAbsent{a.User, a.Groups, a.Until.UTC(), a.Via})
	}
	return out
}

func storeEnding(e approvals.Ending) storedEnding {
	return storedEnding{e.At.UTC(), e.By, e.Reason}
}

func storeExecution(e approvals.Execution) storedExecution {
	e.At = e.At.UTC()
	return storedExecution(e)
}

func storeRequirement(r approvals.Requirement) storedRequirement {
	out := storedRequirement{
		Quorums: storeQuorums(r.Quorums), Deny: r.Deny, Vetoes: storeQuorums(r.Vetoes), Separation: r.Separation,
		ParticipantsMaySign: r.ParticipantsMaySign, EditorMaySign: r.EditorMaySign, Delegation: r.Delegation, ReasonNeeded: r.ReasonNeeded,
		Direct: r.Direct == approvals.DirectEveryone, Deadline: r.Deadline.UTC(), ClaimWithin: r.ClaimWithin,
	}
	if !out.Direct {
		out.DirectTo = r.Direct
	}
	for _, g := range r.Ladder {
		out.Ladder = append(out.Ladder, storedRung{g.At.UTC(), g.Kind, g.Quorum, g.Add.Users, g.Add.Groups, g.Channel})
	}
	return out
}

func storeQuorums(quorums []approvals.Quorum) []storedQuorum {
	var out []storedQuorum
	for _, q := range quorums {
		out = append(out, storedQuorum{q.Name, q.Need, q.From.Users, q.From.Groups, q.Stage, q.Choice, q.Option})
	}
	return out
}

func storeResult(r approvals.CallResult) *storedResult {
	switch r := r.(type) {
	case nil:
		return nil
	case approvals.ToolDenied:
		return &storedResult{Kind: kindDenied, Message: r.Message}
	case approvals.ToolReturn:
		return &storedResult{Kind: kindReturn, Value: r.ReturnValue, Content: r.Content, Metadata: r.Metadata}
	case approvals.ToolFailed:
		return &storedResult{Kind: kindFailed, Message: r.Message}
	case approvals.ModelRetry:
		return &storedResult{Kind: kindRetry, Message: r.Message}
	}
	panic(fmt.Sprintf("state: unknown call result %T", r)) // unreachable
}

// A reader keeps the first thing that a stored batch got wrong.
type reader struct{ err error }

func (r *reader) digest(s string) approvals.Digest {
	d, err := approvals.ParseDigest(s)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("decode document: %w", err)
	}
	return d
}

func (r *reader) ref(s storedRef) approvals.CallRef {
	return approvals.CallRef{ID: s.ID, Name: s.Name, Digest: r.digest(s.Digest), Size: s.Size}
}

func requirement(s storedRequirement) approvals.Requirement {
	out := approvals.Requirement{
		Quorums: quorums(s.Quorums), Deny: s.Deny, Vetoes: quorums(s.Vetoes), Separation: s.Separation,
		ParticipantsMaySign: s.ParticipantsMaySign, EditorMaySign: s.EditorMaySign, Delegation: s.Delegation, ReasonNeeded: s.ReasonNeeded,
		Direct: s.DirectTo, Deadline: s.Deadline, ClaimWithin: s.ClaimWithin,
	}
	if s.Direct {
		out.Direct = approvals.DirectEveryone
	}
	for _, g := range s.Ladder {
		out.Ladder = append(out.Ladder, approvals.Rung{
			At: g.At, Kind: g.Kind, Quorum: g.Quorum, Add: approvals.From{Users: g.Users, Groups: g.Groups}, Channel: g.Channel,
		})
	}
	return out
}

func quorums(stored []storedQuorum) []approvals.Quorum {
	var out []approvals.Quorum
	for _, q := range stored {
		out = append(out, approvals.Quorum{
			Name: q.Name, Need: q.Need, From: approvals.From{Users: q.Users, Groups: q.Groups},
			Stage: q.Stage, Choice: q.Choice, Option: q.Option,
		})
	}
	return out
}

func (r *reader) result(s *storedResult) approvals.CallResult {
	if s == nil {
		return nil
	}
	switch s.Kind {
	case kindDenied:
		return approvals.ToolDenied{Message: s.Message}
	case kindReturn:
		return approvals.ToolReturn{ReturnValue: s.Value, Content: s.Content, Metadata: s.Metadata}
	case kindFailed:
		return approvals.ToolFailed{Message: s.Message}
	case kindRetry:
		return approvals.ModelRetry{Message: s.Message}
	}
	if r.err == nil {
		r.err = fmt.Errorf("decode document: a call result of kind %q", s.Kind)
	}
	return nil
}

func (p storedPrincipal) principal() approvals.Principal {
	out := approvals.Principal{User: p.User, Groups: p.Groups, GroupsAt: p.GroupsAt}
	for _, a := range p.For {
		out.For = append(out.For, approvals.Absent(a))
	}
	return out
}
