package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

type storedBatch struct {
	versioned

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
	Untold bool         `json:"untold,omitempty"`

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

// storedChecked is left out where the rule names no check.
type storedChecked struct {
	Check  string                `json:"check"`
	Answer approvals.CheckAnswer `json:"answer"`
	Said   storedQuote           `json:"said,omitzero"`
}

func storeChecked(c approvals.Checked) storedChecked {
	return storedChecked{c.Check, c.Answer, storedQuote(c.Said)}
}

func (s storedChecked) checked() approvals.Checked {
	return approvals.Checked{Check: s.Check, Answer: s.Answer, Said: approvals.Quote(s.Said)}
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

	Checked    storedChecked      `json:"checked,omitzero"`
	GateReason storedQuote        `json:"gate_reason,omitzero"`
	Preview    storedPreview      `json:"preview,omitzero"`
	Severity   approvals.Severity `json:"severity,omitempty"`
	Place      storedPlace        `json:"place,omitzero"`
	Doubt      storedDoubt        `json:"doubt,omitzero"`
	Hosted     bool               `json:"hosted,omitempty"`
	Definition string             `json:"definition,omitempty"`
}

type storedDoubt struct {
	Began    time.Time         `json:"began,omitzero"`
	Key      string            `json:"key,omitempty"`
	Approved approvals.BatchID `json:"approved,omitempty"`
	Unsure   bool              `json:"unsure,omitempty"`
	Said     storedQuote       `json:"said,omitzero"`
	Late     storedExecution   `json:"late,omitzero"`
}

type storedRef struct {
	ID     approvals.ToolCallID `json:"id"`
	Name   string               `json:"name"`
	Digest string               `json:"digest"`
	Size   int                  `json:"size"`
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

func encodeBatch(b approvals.Batch) ([]byte, error) {
	out := storedBatch{
		versioned: current, ID: b.ID, Run: b.Run, Thread: b.Thread, Agent: b.Agent, Channel: b.Channel,
		Requester: b.Requester, Executor: b.Executor, Participants: b.Participants, SoFar: storedSoFar(b.SoFar), OpenedAt: b.OpenedAt.UTC(),
		Limits: storedLimits(b.Limits), Untold: b.Untold, Said: storedQuote(b.Said), Prompt: storedQuote(b.Prompt),
	}
	for _, a := range b.Approvals {
		s := storedApproval{
			Call: storeRef(a.Call), Proposed: a.Proposed.String(), Why: a.Why, Metadata: a.Metadata,
			Rule: a.Rule, Unjudged: a.Unjudged, Gate: a.Gate, WriteOnly: a.WriteOnly, Requirement: storeRequirement(a.Requirement), Status: a.Status,
			EditedBy: a.EditedBy, Severity: a.Severity, Climbed: a.Climbed, Ending: storeEnding(a.Ending),
			Execution: storeExecution(a.Execution), Summary: a.Summary,
			Checked: storeChecked(a.Checked), GateReason: storedQuote(a.GateReason), Preview: storePreview(a.Preview), Place: storedPlace(a.Place), Hosted: a.Hosted,
			Definition: a.Definition,
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
		Limits: approvals.Limits(in.Limits), Untold: in.Untold, Said: approvals.Quote(in.Said), Prompt: approvals.Quote(in.Prompt),
	}
	for _, s := range in.Approvals {
		a := approvals.Approval{
			Call: r.ref(s.Call), Proposed: r.digest(s.Proposed), Why: s.Why, Metadata: s.Metadata,
			Rule: s.Rule, Unjudged: s.Unjudged, Gate: s.Gate, WriteOnly: s.WriteOnly, Requirement: requirement(s.Requirement), Status: s.Status,
			EditedBy: s.EditedBy, Severity: s.Severity, Climbed: s.Climbed, Ending: approvals.Ending(s.Ending),
			Execution: approvals.Execution(s.Execution), Summary: s.Summary,
			Checked: s.Checked.checked(), GateReason: approvals.Quote(s.GateReason), Preview: r.preview(s.Preview), Place: approvals.Place(s.Place), Hosted: s.Hosted,
			Definition: s.Definition,
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

func (p storedPrincipal) principal() approvals.Principal {
	out := approvals.Principal{User: p.User, Groups: p.Groups, GroupsAt: p.GroupsAt}
	for _, a := range p.For {
		out.For = append(out.For, approvals.Absent(a))
	}
	return out
}
