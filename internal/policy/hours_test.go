package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestAnAskTakesFromTheDefaultWhatItLeavesOutOfItsTimes(t *testing.T) {
	const uses = "  - {name: u, mode: shadow, tools: [u], ask: {hours: office, quorums: [{name: x, from: {groups: [sre]}}]}}\n" +
		"  - {name: v, mode: shadow, tools: [v], ask: {hours: late, quorums: [{name: x, from: {groups: [sre]}}]}}\n"
	for name, c := range map[string]struct{ ofDefault, ofAsk, want string }{
		"nothing anywhere":                  {"", "", "Sat 16:00"},
		"the default's deadline":            {"within: 2h, ", "", "Fri 18:00"},
		"the default's hours":               {"hours: office, ", "", "Wed 16:00"},
		"both of the default":               {"within: 2h, hours: office, ", "", "Mon 10:00"},
		"its own deadline alone":            {"", "within: 8h, ", "Sat 00:00"},
		"its own deadline, hours of both":   {"hours: office, ", "within: 8h, ", "Mon 16:00"},
		"its own for both, in its hours":    {"within: 1h, hours: office, ", "within: 8h, ", "Mon 16:00"},
		"its own hours, the day of nobody":  {"", "hours: office, ", "Wed 16:00"},
		"its own hours, the default's time": {"within: 8h, ", "hours: office, ", "Mon 16:00"},
		"its own hours, not the default's":  {"within: 3h, hours: office, ", "hours: late, ", "Fri 23:00"},
		"both its own":                      {"within: 1h, hours: office, ", "within: 4h, hours: late, ", "Sat 20:30"},
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(head, "default: {", `
calendars:
  office: {zone: UTC, days: [mon, tue, wed, thu, fri], from: "09:00", to: "17:00"}
  late: {zone: UTC, days: [fri, sat], from: "20:00", to: "23:30"}
default: {`+c.ofDefault, 1)
			p, err := policy.Parse("p.yaml", []byte(src+"rules:\n  - {name: a, tools: [a], ask: {"+c.ofAsk+"quorums: [{name: x, from: {groups: [sre]}}]}}\n"+uses), policy.Options{})
			require.NoError(t, err)
			friday := time.Date(2026, 3, 6, 16, 0, 0, 0, time.UTC)
			deadline := asked(t, p, with(call("a", `{}`), func(q *approvals.Proposal) { q.At = friday })).Requirement.Deadline
			require.Equal(t, c.want, deadline.Format("Mon 15:04"))
		})
	}
}
