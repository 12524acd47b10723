package agentrun

import (
	"context"

	"github.com/countersign/countersign/internal/approvals"
)

// SoFar counts what a request has led to, from its messages: those of a run and
// of the runs that it resumes. lapsed are the calls that expired or were
// withdrawn: the history has a denial for them, though nobody denied them.
//
//   - Steps counts the model's answers, also those that could not be used, and
//     with the one that makes the proposals.
//   - Executed counts the calls that ran, here or elsewhere, approved or not, also those that
//     failed: it is often unknown how far such a call came.
//   - Failed counts those of them that failed.
//   - Denied counts what people or the policy denied.
//
// A call that the model is asked to correct counts as none of these, and so does
// one without a result.
func SoFar(messages []Message, lapsed map[approvals.ToolCallID]bool) approvals.SoFar {
	var s approvals.SoFar
	for _, m := range messages {
		request, ok := m.(Request)
		if !ok {
			s.Steps++
			for _, c := range providerCalls(m.(Response)) {
				s.Executed = more(s.Executed, c.Name)
			}
			continue
		}
		for _, p := range request.Parts {
			if isRefusal(p) {
				s.Steps++ // an answer that was not kept
			}
			result, ok := p.(ToolReturn)
			if !ok {
				continue
			}
			switch result.Outcome {
			case OutcomeSuccess:
				s.Executed = more(s.Executed, result.ToolName)
			case OutcomeFailed:
				s.Executed = more(s.Executed, result.ToolName)
				s.Failed = more(s.Failed, result.ToolName)
			case OutcomeDenied:
				if !lapsed[result.CallID] {
					s.Denied = more(s.Denied, result.ToolName)
				}
			case OutcomeInterrupted:
			}
		}
	}
	return s
}

func more(count map[string]int, tool string) map[string]int {
	if count == nil {
		count = map[string]int{}
	}
	count[tool]++
	return count
}

// Lapsed returns the calls of a batch that ended without anyone's verdict.
func Lapsed(b approvals.Batch) []approvals.ToolCallID {
	var ids []approvals.ToolCallID
	for _, a := range b.Approvals {
		if a.Status == approvals.Expired || a.Status == approvals.Withdrawn {
			ids = append(ids, a.Call.ID)
		}
	}
	return ids
}

// A lineage is what the run works at: the request that began it, as far as the
// committed documents tell.
type lineage struct {
	from   int // the first message of the request in the thread
	lapsed map[approvals.ToolCallID]bool
	began  []beginning // of the run and of those that it resumes, the newest first
}

// A beginning is where a run began in the thread, and what a person wrote then.
type beginning struct {
	from   int
	prompt string
}

// prompt returns the newest message of a person that the model had read when it
// made the response at this place of the thread.
func (l lineage) prompt(response int) string {
	for _, b := range l.began {
		if b.prompt != "" && b.from < response {
			return b.prompt
		}
	}
	return ""
}

// lineageOf follows a run to the one that began it.
func lineageOf(ctx context.Context, store Store, run Run) (lineage, error) {
	l := lineage{lapsed: map[approvals.ToolCallID]bool{}}
	for run.Parent != "" {
		l.began = append(l.began, beginning{run.From, run.Prompt})
		if run.Batch != "" { // else nobody was asked about the calls of a remote run
			b, err := store.Batch(ctx, run.Batch)
			if err != nil {
				return l, err
			}
			for _, id := range Lapsed(b) {
				l.lapsed[id] = true
			}
		}
		parent, err := store.Run(ctx, run.Parent)
		if err != nil {
			return l, err
		}
		run = parent
	}
	l.from, l.began = run.From, append(l.began, beginning{run.From, run.Prompt})
	return l, nil
}
