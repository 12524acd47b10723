package agentrun

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A Previewer computes what a call of a tool would change, for the people who
// are asked about it. It runs before anyone has approved anything, with
// arguments that a model chose, and what it finds leaves the place where it was.
// So it runs only where the agent may read the same without approval.
type Previewer struct {
	// Reads names the call that the preview amounts to: an agent that may make it
	// may know whatever Compute may find. Only name and arguments of it count. The
	// preview is made if the agent has this tool, the tool accepts the arguments
	// and asks for no approval, and the policy permits the call.
	Reads func(c Call) (approvals.ToolCall, error)
	// Compute looks, and changes nothing.
	Compute func(ctx context.Context, c Call) (Preview, error)
	// Checks says that Execute compares [Call].Precondition itself, on the very
	// thing that it then changes, and returns [*PreconditionFailed] if it is
	// another. Without it, Compute is called once more before the call begins,
	// and its precondition must be the same bytes: something can still change
	// between the two.
	Checks bool
	// Timeout is how long Compute may take; 0 means [DefaultPreviewTimeout], and
	// more than [MaxPreviewTimeout] is that.
	Timeout time.Duration
}

// How long a preview may take: people wait for the card meanwhile.
const (
	DefaultPreviewTimeout = 5 * time.Second
	MaxPreviewTimeout     = 30 * time.Second
)

// MaxReasks is how often people are asked about a call once more because what it
// would change is not what they saw. Then the run stops: something else keeps
// changing the same thing, and people cannot win that race.
const MaxReasks = 2

// A Preview is what a tool finds that a call would change.
type Preview struct {
	// Facts are a few sizes, counts and times in the tool's own words; nothing in
	// them is copied from what the tool read. Those beyond [approvals.MaxFacts]
	// are dropped.
	Facts []approvals.Fact
	// Content is what only those may see who may read the arguments, such as a
	// unified diff. It is cut to [approvals.MaxPreviewContent].
	Content string
	// Precondition, at most [approvals.MaxPrecondition] bytes, says what must still
	// be so when the call runs, such as the digest of a file. Nil: nothing.
	Precondition []byte
}

// PreconditionFailed is what Execute returns if what it would change is not what
// [Call].Precondition says. Nothing was done. People are asked again.
type PreconditionFailed struct{} //nolint:errname // as [ApprovalRequired]

func (*PreconditionFailed) Error() string { return "precondition failed" }

func (p *Previewer) timeout() time.Duration {
	if p.Timeout <= 0 {
		return DefaultPreviewTimeout
	}
	return min(p.Timeout, MaxPreviewTimeout)
}

// compute calls Compute, whatever it does.
func (p *Previewer) compute(ctx context.Context, c Call) (Preview, error) {
	got, err, late := guard(ctx, p.timeout(), func(ctx context.Context) (Preview, error) { return p.Compute(ctx, c) })
	if err == nil && late {
		err = context.DeadlineExceeded
	}
	if err == nil && len(got.Precondition) > approvals.MaxPrecondition {
		err = fmt.Errorf("a precondition of %d bytes", len(got.Precondition))
	}
	return got, err
}
