package state

import (
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// The stored forms of a preview. Its content is not among them: it is stored
// beside the batch, as arguments are.
type storedPreview struct {
	Status       approvals.PreviewStatus `json:"status,omitempty"`
	Reads        string                  `json:"reads,omitempty"`
	Facts        []storedFact            `json:"facts,omitempty"`
	Content      *storedContent          `json:"content,omitempty"`
	Precondition []byte                  `json:"precondition,omitempty"`
	CheckedAt    time.Time               `json:"checked_at,omitzero"`
	Again        int                     `json:"again,omitempty"`
	Before       *storedBefore           `json:"before,omitempty"`
}

type storedFact struct {
	Label string    `json:"label"`
	Value string    `json:"value,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

type storedContent struct {
	Digest string `json:"digest"`
	Size   int    `json:"size"`
	Left   int    `json:"left,omitempty"`
}

type storedBefore struct {
	Batch     approvals.BatchID `json:"batch"`
	Facts     []storedFact      `json:"facts,omitempty"`
	Content   *storedContent    `json:"content,omitempty"`
	CheckedAt time.Time         `json:"checked_at,omitzero"`
}

// IsZero says that there is nothing to store.
func (p storedPreview) IsZero() bool {
	return p.Status == "" && p.Reads == "" && p.Facts == nil && p.Content == nil && p.Precondition == nil &&
		p.CheckedAt.IsZero() && p.Again == 0 && p.Before == nil
}

func storePreview(p approvals.Preview) storedPreview {
	out := storedPreview{
		Status: p.Status, Reads: p.Reads, Facts: storeFacts(p.Facts), Content: storeContent(p.Content),
		Precondition: p.Precondition, CheckedAt: p.CheckedAt.UTC(), Again: p.Again,
	}
	if b := p.Before; b.Batch != "" {
		out.Before = &storedBefore{b.Batch, storeFacts(b.Facts), storeContent(b.Content), b.CheckedAt.UTC()}
	}
	return out
}

func storeFacts(facts []approvals.Fact) []storedFact {
	var out []storedFact
	for _, f := range facts {
		out = append(out, storedFact{f.Label, f.Value, f.At.UTC()})
	}
	return out
}

func storeContent(c approvals.Content) *storedContent {
	if c.Digest.IsZero() {
		return nil
	}
	return &storedContent{c.Digest.String(), c.Size, c.Left}
}

func (r *reader) preview(s storedPreview) approvals.Preview {
	out := approvals.Preview{
		Status: s.Status, Reads: s.Reads, Facts: facts(s.Facts), Content: r.content(s.Content),
		Precondition: s.Precondition, CheckedAt: s.CheckedAt, Again: s.Again,
	}
	if b := s.Before; b != nil {
		out.Before = approvals.Before{Batch: b.Batch, Facts: facts(b.Facts), Content: r.content(b.Content), CheckedAt: b.CheckedAt}
	}
	return out
}

func facts(stored []storedFact) []approvals.Fact {
	var out []approvals.Fact
	for _, f := range stored {
		out = append(out, approvals.Fact(f))
	}
	return out
}

func (r *reader) content(s *storedContent) approvals.Content {
	if s == nil {
		return approvals.Content{}
	}
	return approvals.Content{Digest: r.digest(s.Digest), Size: s.Size, Left: s.Left}
}
