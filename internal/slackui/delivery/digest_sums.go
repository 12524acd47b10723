package delivery

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
)

func (d Digest) sums() card.DigestTotals {
	s := card.DigestTotals{Decided: d.Decided, Tools: map[string]int{}, Agents: map[string]int{}, Risks: map[approvals.Severity]int{}}
	for _, r := range d.Requests {
		s.Decided += r.Decided
		if !r.Open() {
			continue
		}
		s.Requests++
		if r.Reminded {
			s.Again++
		}
		for severity, n := range r.Risks {
			s.Risks[severity] += n
		}
		for tool, n := range r.Tools {
			s.Calls += n
			s.Tools[tool] += n
			s.Agents[r.Agent] += n
		}
		if s.Oldest.IsZero() || r.Opened.Before(s.Oldest) {
			s.Oldest = r.Opened
		}
		if !r.Deadline.IsZero() && (s.Deadline.IsZero() || r.Deadline.Before(s.Deadline)) {
			s.Deadline = r.Deadline
		}
	}
	return s
}
