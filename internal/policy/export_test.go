package policy

import "context"

// ExplainRecorded judges a recorded call as [Replay] does, and says why. The call
// is judged even if it does not fit the present schema of its tool.
func (p *Policy) ExplainRecorded(ctx context.Context, r Recorded) Explanation {
	return p.explain(p.recalled(ctx, r))
}
