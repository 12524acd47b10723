package uistream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/summary"
)

// approvalData is what a `data-approval` chunk says of one call: everything that
// the chunks of the protocol have no place for.
type approvalData struct {
	ApprovalID string           `json:"approvalId,omitempty"`
	ToolCallID string           `json:"toolCallId"`
	ToolName   string           `json:"toolName,omitempty"`
	Status     approvalStatus   `json:"status"`
	Progress   string           `json:"progress,omitempty"`  // "1 of 2"
	Quorums    []quorumData     `json:"quorums,omitempty"`   // who is asked
	Decisions  []decisionData   `json:"decisions,omitempty"` // in their order
	Summary    string           `json:"summary,omitempty"`   // what the call does, in one line
	Arguments  string           `json:"arguments,omitempty"` // exactly, as JSON text: clients round long numbers
	Why        string           `json:"why,omitempty"`
	Check      *checkData       `json:"check,omitempty"` // of the rule
	Severity   string           `json:"severity,omitempty"`
	ExpiresAt  time.Time        `json:"expiresAt,omitzero"`
	Edited     bool             `json:"edited,omitempty"`  // a person changed the arguments
	Yours      string           `json:"yours,omitempty"`   // the reader's own decision: approve or deny
	Message    string           `json:"message,omitempty"` // for the reader
	Reason     string           `json:"reason,omitempty"`  // why it was denied or withdrawn
	Execution  string           `json:"execution,omitempty"`
	Digest     approvals.Digest `json:"digest,omitzero"`
}

// checkData is the answer of the check of the rule: ok, ask or failed.
type checkData struct {
	Name   string                `json:"name"`
	Answer approvals.CheckAnswer `json:"answer"`
	Says   string                `json:"says,omitempty"` // in its words
}

// An approvalStatus says where a call stands.
type approvalStatus string

// The statuses. All but waiting and in_doubt are final.
const (
	statusWaiting    approvalStatus = "waiting"
	statusApproved   approvalStatus = "approved"
	statusDenied     approvalStatus = "denied"
	statusExpired    approvalStatus = "expired"
	statusWithdrawn  approvalStatus = "withdrawn"
	statusSuperseded approvalStatus = "superseded" // by a newer message of the user
	statusInDoubt    approvalStatus = "in_doubt"   // it began, and whether it took effect is not known: people say so in Slack
	statusConfirmed  approvalStatus = "confirmed"  // a person said that it took effect
	statusRefused    approvalStatus = "refused"    // by the policy; nobody was asked
	statusUnknown    approvalStatus = "unknown"    // there is no such request
)

// A quorumData is one group of people who must approve.
type quorumData struct {
	Name   string              `json:"name,omitempty"`
	Need   int                 `json:"need"`
	By     []approvals.UserID  `json:"by,omitempty"` // who has approved
	Users  []approvals.UserID  `json:"users,omitempty"`
	Groups []approvals.GroupID `json:"groups,omitempty"`
}

type decisionData struct {
	By      approvals.UserID  `json:"by"`
	Verdict approvals.Verdict `json:"verdict"`
	Reason  string            `json:"reason,omitempty"`
	At      time.Time         `json:"at"`
}

// approvalOf says how a call stands that people are asked about, to one of them.
func approvalOf(b approvals.Batch, a approvals.Approval, args json.RawMessage, reader approvals.UserID, now time.Time) *approvalData {
	o := a.Outcome(now)
	d := &approvalData{
		ApprovalID: approvalID(b.ID, a.Call.Digest), ToolCallID: string(a.Call.ID), ToolName: a.Call.Name, Status: statusOf(o),
		Summary: approvals.Visible(summary.Of(a.Summary, a.Call.Name, args, a.WriteOnly)), Why: a.Why, Severity: string(a.Severity),
		Edited: a.Call.Digest != a.Proposed, Digest: a.Call.Digest, Arguments: exactly(shownInput(args, a.WriteOnly)),
		Execution: string(a.Execution.State),
	}
	if c := a.Checked; c.Check != "" {
		d.Check = &checkData{c.Check, c.Answer, approvals.Visible(c.Said.Text)}
	}
	if o.Status == approvals.Pending {
		d.ExpiresAt = a.Requirement.Deadline
	}
	if o.Status == approvals.Denied || o.Status == approvals.Withdrawn || a.Status == approvals.Expired && o.InDoubt {
		d.Reason = a.Denial().Message
	}
	have, need, fixed := 0, 0, true
	for _, p := range a.Progress() {
		q := quorumData{Name: p.Quorum.Name, Need: p.Quorum.Need, Users: p.Quorum.From.Users, Groups: p.Quorum.From.Groups}
		for _, s := range p.By {
			q.By = append(q.By, s.User)
		}
		have, need, fixed = have+len(p.By), need+max(0, p.Quorum.Need), fixed && p.Quorum.Choice == 0
		d.Quorums = append(d.Quorums, q)
	}
	if fixed && need > 0 {
		d.Progress = fmt.Sprintf("%d of %d", have, need)
	}
	for _, x := range a.Decisions {
		d.Decisions = append(d.Decisions, decisionData{By: x.By.User, Verdict: x.Verdict, Reason: approvals.Visible(x.Reason), At: x.At})
		if x.By.User == reader {
			d.Yours = string(x.Verdict)
		}
	}
	return d
}

func statusOf(o approvals.Outcome) approvalStatus {
	switch o.Status {
	case approvals.Approved:
		return statusApproved
	case approvals.Denied:
		return statusDenied
	case approvals.Expired:
		return statusExpired
	case approvals.Withdrawn:
		if o.Superseded {
			return statusSuperseded
		}
		return statusWithdrawn
	case approvals.Confirmed:
		return statusConfirmed
	case approvals.Pending:
	}
	if o.InDoubt {
		return statusInDoubt
	}
	return statusWaiting
}

// data says how a call stands, if anybody was asked or the policy refused it.
func (c *call) data(reader approvals.UserID, now time.Time) *approvalData {
	if c.asked != nil {
		return approvalOf(c.batch, *c.asked, c.args, reader, now)
	}
	if r, ok := c.refusal(); ok {
		return &approvalData{ToolCallID: string(c.id), ToolName: c.name, Status: statusRefused, Reason: r}
	}
	return nil
}

// refusal returns why the policy refused the call without asking anyone, if it did.
func (c *call) refusal() (why string, refused bool) {
	r, ok := c.result.(agentrun.ToolReturn)
	if c.asked != nil || !ok || r.Outcome != agentrun.OutcomeDenied {
		return "", false
	}
	return words(r.Content), true
}

// decided reports whether the call was approved; known is false until that is stored, and
// if nobody was asked.
func (c *call) decided() (approved, known bool) {
	if c.asked == nil || c.asked.InDoubt() || !c.asked.Status.Settled() {
		return false, false
	}
	return c.asked.Status == approvals.Approved, true
}

// why is the reason that goes with the decision.
func (c *call) why() string {
	if approved, _ := c.decided(); !approved {
		return c.asked.Denial().Message
	}
	var reasons []string
	for _, d := range c.asked.Decisions {
		reasons = append(reasons, approvals.Visible(d.Reason))
	}
	return cmp.Or(slices.Compact(reasons)...)
}

// exactly is the arguments as the text that people decide by. Characters that would not
// show, or would move others, are escape sequences; it is the same JSON.
func exactly(args json.RawMessage) string {
	var b strings.Builder
	s, done := string(args), 0
	for at, r := range approvals.Unseen(s) {
		if r < ' ' {
			continue // there is only space between values
		}
		b.WriteString(s[done:at])
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		done = at + utf8.RuneLen(r)
	}
	return b.String() + s[done:]
}

// words is the text of a result: a text as it is, any other value as JSON.
func words(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	return string(content)
}
