package state

import (
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

type storedSheet struct {
	versioned

	ID          approvals.SheetID     `json:"id"`
	By          approvals.UserID      `json:"by"`
	Verdict     approvals.Verdict     `json:"verdict"`
	Reason      string                `json:"reason,omitempty"`
	Origin      string                `json:"origin,omitempty"`
	CreatedAt   time.Time             `json:"created_at,omitzero"`
	ExpiresAt   time.Time             `json:"expires_at,omitzero"`
	Lines       []storedLine          `json:"lines,omitempty"`
	Seal        string                `json:"seal"`
	Status      approvals.SheetStatus `json:"status"`
	Request     approvals.RequestID   `json:"request,omitempty"`
	SubmittedAt time.Time             `json:"submitted_at,omitzero"`
	Principal   storedPrincipal       `json:"principal,omitzero"`
	Owner       string                `json:"owner,omitempty"`
	LeaseEnds   time.Time             `json:"lease_ends,omitzero"`
}

type storedLine struct {
	Batch   approvals.BatchID     `json:"batch"`
	Call    approvals.ToolCallID  `json:"call"`
	Digest  string                `json:"digest"`
	Tool    string                `json:"tool"`
	Risky   bool                  `json:"risky,omitempty"`
	Chosen  bool                  `json:"chosen,omitempty"`
	Outcome approvals.LineOutcome `json:"outcome,omitempty"`
	Why     approvals.Why         `json:"why,omitempty"`
}

func encodeSheet(s approvals.Sheet) ([]byte, error) {
	out := storedSheet{
		versioned: current, ID: s.ID, By: s.By, Verdict: s.Verdict, Reason: s.Reason, Origin: s.Origin,
		CreatedAt: s.CreatedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(), Seal: s.Seal.String(), Status: s.Status,
		Request: s.Request, SubmittedAt: s.SubmittedAt.UTC(), Principal: storePrincipal(s.Principal),
		Owner: s.Owner, LeaseEnds: s.LeaseEnds.UTC(),
	}
	for _, l := range s.Lines {
		out.Lines = append(out.Lines, storedLine{
			l.Batch, l.Call, l.Digest.String(), l.Tool, l.Risky, l.Chosen, l.Outcome, l.Why,
		})
	}
	return encode(out)
}

func decodeSheet(doc []byte) (approvals.Sheet, error) {
	in, err := decode[storedSheet](doc)
	if err != nil {
		return approvals.Sheet{}, err
	}
	var r reader
	s := approvals.Sheet{
		ID: in.ID, By: in.By, Verdict: in.Verdict, Reason: in.Reason, Origin: in.Origin,
		CreatedAt: in.CreatedAt, ExpiresAt: in.ExpiresAt, Seal: r.digest(in.Seal), Status: in.Status,
		Request: in.Request, SubmittedAt: in.SubmittedAt, Principal: in.Principal.principal(),
		Owner: in.Owner, LeaseEnds: in.LeaseEnds,
	}
	for _, l := range in.Lines {
		s.Lines = append(s.Lines, approvals.Line{
			Batch: l.Batch, Call: l.Call, Digest: r.digest(l.Digest), Tool: l.Tool, Risky: l.Risky,
			Chosen: l.Chosen, Outcome: l.Outcome, Why: l.Why,
		})
	}
	return s, r.err
}
