package approvals

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Limits of what is kept of a preview.
const (
	MaxFacts          = 8        // of one preview
	MaxFactText       = 120      // characters of a label, and of a value
	MaxPreviewContent = 64 << 10 // bytes; what is longer is cut
	MaxPrecondition   = 4 << 10  // bytes
)

// A Preview is what a tool said that a call would change, before people were
// asked about it. It is about the arguments that the call has now: an [Amend]
// drops it.
//
// Facts are the tool's own words and hold none of what is stored where the call
// acts, so they may be shown wherever the call is. The content may hold all of
// it: it is for those who may read the arguments.
type Preview struct {
	Status       PreviewStatus
	Reads        string // the tool whose call the preview amounts to, such as read_file
	Facts        []Fact
	Content      Content
	Precondition []byte    // what must still hold when the call runs; only the tool understands it, and it is never shown
	CheckedAt    time.Time // when the tool looked

	// Again counts how often people were asked about the call once more because,
	// when it was to run, what it would change was not what they had seen.
	// Before is what they had seen the last time.
	Again  int
	Before Before
}

// PreviewStatus says whether there is a preview, and otherwise why not. It is
// stored.
type PreviewStatus string

// The statuses of a preview.
const (
	PreviewNone         PreviewStatus = ""              // the tool has none
	PreviewMade         PreviewStatus = "made"          // the only one with facts, content and a precondition
	PreviewReadAsks     PreviewStatus = "read_asks"     // reading the same needs approval itself
	PreviewReadRefused  PreviewStatus = "read_refused"  // the policy refuses to read the same, or the agent has no tool for it
	PreviewReadUnjudged PreviewStatus = "read_unjudged" // the policy could not judge whether the same may be read
	PreviewFailed       PreviewStatus = "failed"        // the tool could not say, or not in time
	PreviewEdited       PreviewStatus = "edited"        // a person has changed the arguments
)

// A Fact is one thing that a preview says, such as "Size" and "4.2 KB". It has a
// value or a time; a surface shows times as its readers like them.
type Fact struct {
	Label string
	Value string
	At    time.Time
}

// Content describes the content of a preview. The batch holds only this; the content
// itself is stored beside the batch, like arguments, see [Desk.PreviewContent].
type Content struct {
	Digest Digest // zero: there is none
	Size   int    // bytes that are kept
	Left   int    // bytes that were left out
}

// Before is what people saw in an earlier batch.
type Before struct {
	Batch     BatchID // it is where the content is
	Facts     []Fact
	Content   Content
	CheckedAt time.Time
}

// PreviewDigest is under which digest the content of a preview is stored beside
// its batch. It is never that of arguments.
func PreviewDigest(batch BatchID, call ToolCallID, content string) Digest {
	return TupleDigest("countersign.preview.v1", string(batch), string(call), content)
}

// PreviewContent returns the content of the preview of a call, and that of the
// preview that people had seen before, where there is one. It holds what the
// call acts on: the caller shows it only to people who may read the arguments.
func (d *Desk) PreviewContent(ctx context.Context, b Batch, call ToolCallID) (now, before string, err error) {
	i, err := b.approval(call)
	if err != nil {
		return "", "", err
	}
	p := b.Approvals[i].Preview
	if now, err = d.content(ctx, b.ID, call, p.Content); err != nil {
		return "", "", err
	}
	before, err = d.content(ctx, p.Before.Batch, call, p.Before.Content)
	return now, before, err
}

func (d *Desk) content(ctx context.Context, id BatchID, call ToolCallID, c Content) (string, error) {
	if c.Digest.IsZero() {
		return "", nil
	}
	raw, err := d.store.Args(ctx, id, c.Digest)
	if err != nil {
		return "", fmt.Errorf("preview of call %q: %w", string(call), err)
	}
	if PreviewDigest(id, call, string(raw)) != c.Digest {
		return "", fmt.Errorf("call %q: stored preview: %w", string(call), ErrStale)
	}
	return string(raw), nil
}

func (p Preview) clone() Preview {
	p.Facts, p.Precondition, p.Before.Facts = slices.Clone(p.Facts), slices.Clone(p.Precondition), slices.Clone(p.Before.Facts)
	p.CheckedAt, p.Before.CheckedAt = plain(p.CheckedAt), plain(p.Before.CheckedAt)
	for _, facts := range [][]Fact{p.Facts, p.Before.Facts} {
		for i := range facts {
			facts[i].At = plain(facts[i].At)
		}
	}
	return p
}

// edited is what is left of a preview once its call has other arguments.
func (p Preview) edited() Preview {
	if p.Status == PreviewNone {
		return p
	}
	return Preview{Status: PreviewEdited, Again: p.Again}
}
