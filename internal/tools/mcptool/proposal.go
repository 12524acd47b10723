package mcptool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/countersign/countersign/internal/approvals"
)

// A Proposal is how what a server lists differs from what was accepted, as the
// owners of its agent are asked about it. One without a new or changed tool asks
// nothing.
type Proposal struct {
	Place

	// Digest stands for all of it, and for how often people have accepted something
	// of the server: what they decided once about a change says nothing about the
	// same change later.
	Digest string
	Tools  []Proposed
	// TooLarge says that the definitions were left out, so that nothing of it can be
	// accepted.
	TooLarge bool
}

// Proposed is one tool of a [Proposal]. The definitions are bytes, because
// encoding JSON within JSON would change them.
type Proposed struct {
	Name   string     `json:"name"`
	Kind   ChangeKind `json:"kind"`
	Before []byte     `json:"before,omitempty"`
	After  []byte     `json:"after,omitempty"`
	Why    string     `json:"why,omitempty"` // of [ToolUnusable]
}

// maxProposal is how many bytes of definitions one proposal may have.
const maxProposal = 512 << 10

// Asks reports whether there is anything to decide.
func (p Proposal) Asks() bool {
	return slices.ContainsFunc(p.Tools, func(t Proposed) bool { return t.Kind == ToolNew || t.Kind == ToolChanged })
}

// Propose returns how what a server lists differs from the pins.
func (p Pins) Propose(s Server, live []Listed) Proposal {
	at := Place{s.Agent, s.Name}
	out := Proposal{Place: at}
	sum, size := sha256.New(), 0
	part := func(b []byte) { _, _ = fmt.Fprintf(sum, "%d:%s", len(b), b) } // a hash takes every write
	part([]byte(at.Agent))
	part([]byte(at.Server))
	part(fmt.Append(nil, p.acceptances(at)))
	for _, c := range p.Compare(s, live) {
		one := Proposed{Name: c.Tool, Kind: c.Kind, Before: c.Before, After: c.After}
		if c.Why != nil {
			one.Why = c.Why.Error()
		}
		if c.Kind == ToolUnusable {
			one.Before, one.After = nil, nil // it cannot be accepted
		}
		part([]byte(one.Name))
		part([]byte(one.Kind))
		part(one.Before)
		part(one.After)
		size += len(one.Before) + len(one.After)
		out.Tools = append(out.Tools, one)
	}
	out.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if size > maxProposal {
		out.TooLarge = true
		for i := range out.Tools {
			out.Tools[i].Before, out.Tools[i].After = nil, nil
		}
	}
	return out
}

// A Verdict is what was decided about a [Proposal].
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Blocked  Verdict = "blocked" // the tools stay unavailable
)

// A Decision is who decided what about the tools of a server, and when. All of
// them are kept.
type Decision struct {
	Agent   string           `json:"agent"`
	Server  string           `json:"server"`
	Digest  string           `json:"digest,omitempty"` // of the proposal; empty for an operator
	Verdict Verdict          `json:"verdict"`
	By      approvals.UserID `json:"by,omitempty"` // empty: an operator, with bot mcp pins accept
	At      time.Time        `json:"at"`
	Tools   []DecidedTool    `json:"tools"`
}

// A DecidedTool is a tool by the digests of its definitions.
type DecidedTool struct {
	Tool   string     `json:"tool"`
	Kind   ChangeKind `json:"kind"`
	Before string     `json:"before,omitempty"`
	After  string     `json:"after,omitempty"`
}

// Decisions are what people have decided, the oldest first.
func (p Pins) Decisions() []Decision { return slices.Clone(p.decisions) }

// Decided returns what was decided about a proposal.
func (p Pins) Decided(at Place, digest string) (Decision, bool) {
	for _, d := range slices.Backward(p.decisions) {
		if d.Agent == at.Agent && d.Server == at.Server && d.Digest == digest && digest != "" {
			return d, true
		}
	}
	return Decision{}, false
}

func (p Pins) acceptances(at Place) (n int) {
	for _, d := range p.decisions {
		if d.Agent == at.Agent && d.Server == at.Server && d.Verdict == Accepted {
			n++
		}
	}
	return n
}

// Decide returns the pins after a decision about a proposal, and that decision. It
// is [approvals.ErrSettled], with the earlier decision, if there is one, and
// [approvals.ErrStale] if the proposal is not about these pins.
func (p Pins) Decide(about Proposal, v Verdict, by approvals.UserID, now time.Time) (Pins, Decision, error) {
	if before, ok := p.Decided(about.Place, about.Digest); ok {
		return p, before, approvals.ErrSettled
	}
	d := Decision{Agent: about.Agent, Server: about.Server, Digest: about.Digest, Verdict: v, By: by, At: now.UTC()}
	if about.TooLarge && v == Accepted {
		return p, d, fmt.Errorf("%w: the proposal is too large", approvals.ErrInvalid)
	}
	if !p.Knows(about.Place) {
		return p, d, approvals.ErrStale
	}
	tools := maps.Clone(p.accepted[about.Place])
	for _, t := range about.Tools {
		after, err := t.definition()
		switch {
		case t.Kind == ToolUnusable:
			continue
		case err != nil && !about.TooLarge:
			return p, d, fmt.Errorf("the proposal cannot be read: %w", err)
		case !bytes.Equal(t.Before, p.accepted[about.Place][t.Name].Raw) && !about.TooLarge:
			return p, d, approvals.ErrStale
		case t.Kind == ToolGone:
			delete(tools, t.Name)
		case t.Kind == ToolNew, t.Kind == ToolChanged:
			tools[t.Name] = after
		default:
			return p, d, fmt.Errorf("%w: a tool of the proposal has the unknown kind %q", approvals.ErrInvalid, t.Kind)
		}
		d.Tools = append(d.Tools, DecidedTool{Tool: t.Name, Kind: t.Kind, Before: p.accepted[about.Place][t.Name].Digest, After: after.Digest})
	}
	next := Pins{accepted: maps.Clone(p.accepted), decisions: append(slices.Clone(p.decisions), d)}
	if v == Accepted {
		next.accepted[about.Place] = tools
	}
	return next, d, nil
}

// ByOperator is the decision of an operator who accepts the proposal.
func (p Proposal) ByOperator(now time.Time) Decision {
	d := Decision{Agent: p.Agent, Server: p.Server, Digest: p.Digest, Verdict: Accepted, At: now.UTC()}
	for _, t := range p.Tools {
		if t.Kind != ToolUnusable {
			d.Tools = append(d.Tools, DecidedTool{Tool: t.Name, Kind: t.Kind, Before: digestOf(t.Before), After: digestOf(t.After)})
		}
	}
	return d
}

func digestOf(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Note adds what an operator decided.
func (p *Pins) Note(d Decision) { p.decisions = append(slices.Clone(p.decisions), d) }

// definition is what the server sends now; none if the tool is gone.
func (t Proposed) definition() (Definition, error) {
	if t.Kind != ToolNew && t.Kind != ToolChanged {
		return Definition{}, nil
	}
	d, err := readDefinition(t.After)
	if err == nil && d.Name != t.Name {
		err = errors.New("the definition is of another tool")
	}
	return d, err
}

// Digest is that of the definition that the server sends now; empty if there is
// none.
func (t Proposed) Digest() string {
	d, _ := t.definition() // then it is empty
	return d.Digest
}

// Diff is the difference of two definitions in the unified form, an indented line
// for each value, and otherwise as the server sent them.
func Diff(before, after json.RawMessage) string {
	return udiff.Unified("accepted", "listed", indented(before), indented(after))
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String() + "\n"
}
