package card

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// verdict says why approval is needed and its progress, or how the call ended,
// and what people wrote. Slack folds away none of these groups with another.
func (r row) verdict() [][]blockkit.Para {
	a := r.a
	said := verdict.Reasons(a, r.detail)
	if o := a.Outcome(r.now); o.Status != approvals.Pending {
		return blockkit.Nonempty(append([]blockkit.Para{blockkit.Line(verdict.Outcome(o)...)}, r.became()...), said)
	}
	because, far := why(a, r.detail), verdict.Progress(r.Batch, a)
	if len(because)+len(far)+len(said) <= few {
		return [][]blockkit.Para{slices.Concat(because, far, said)}
	}
	return blockkit.Nonempty(because, far, said)
}

// few is how many paragraphs stay in one group.
const few = 3

func why(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	if strings.TrimSpace(a.Why) == "" {
		return nil
	}
	return []blockkit.Para{blockkit.Line(blockkit.Styled(sayWhy, blockkit.Bold), blockkit.Say(blockkit.Brief(a.Why, d.Words)))}
}
