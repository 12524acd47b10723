package slackui_test

import (
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
)

// terminal is what Claude Code asks before it runs a command: the card of
// docs/coding-agents.md.
func terminal(tb testing.TB) card.Card {
	tb.Helper()
	d := until(call("c1", "Bash", `{"command":"git push origin fix-rounding && make deploy ENV=staging","description":"Push the branch and deploy it to staging"}`, sre), noon.Add(9*time.Minute), true)
	d.Summary = "Run {args.command}"
	d.Severity = approvals.SeverityHigh
	d.Ask.Why, d.Ask.Rule = "A deployment is seen by customers.", "deploys@0123abcd"
	d.Place = approvals.Place{Cwd: "/home/ann/src/shop", Repository: "acme/shop", Branch: "fix-rounding"}
	c := drawn(tb, []approvals.Deferral{d})
	c.Batch.Agent, c.Batch.Executor = "claude-code", "client"
	return c
}
