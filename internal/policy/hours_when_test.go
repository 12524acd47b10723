package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// TestAConditionLooksAtACalendar: by the clocks of its zone, with its holidays,
// and with the end of the day outside.
func TestAConditionLooksAtACalendar(t *testing.T) {
	p := parse(t, `
calendars: {office: {zone: Europe/Berlin, days: [mon, tue, wed, thu, fri], from: "09:00", to: "17:30", holidays: ["2026-12-25"]}}
rules:
  - {name: closed, tools: [deploy], when: "!hours.office", deny: Only in office hours.}
  - {name: deploys, tools: [deploy], allow: true}
`, policy.Options{})
	for at, want := range map[string]string{
		"2026-03-02T08:59:59+01:00": "refused: Only in office hours.",
		"2026-03-02T09:00:00+01:00": "runs",
		"2026-03-02T17:29:59+01:00": "runs",
		"2026-03-02T17:30:00+01:00": "refused: Only in office hours.",
		"2026-03-07T12:00:00+01:00": "refused: Only in office hours.", // Saturday
		"2026-12-25T12:00:00+01:00": "refused: Only in office hours.",
		"2026-07-01T07:30:00Z":      "runs", // 09:30 in summer
	} {
		when, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		require.Equal(t, want, say(t, p, with(call("deploy", `{}`), func(q *approvals.Proposal) { q.At = when })), at)
	}
}

func TestACalendarThatIsNotThereIsRefused(t *testing.T) {
	for when, says := range map[string]string{
		"hours.ofice":                          `there is no calendar "ofice" under calendars; did you mean office?`,
		`!hours["ofice"]`:                      `there is no calendar "ofice" under calendars`,
		"hours.office == 9":                    "== can't be used with bool and int",
		"hours.office && !hours.office":        "never true",
		`args.x == "a" || hours["office"] > 1`: "> can't be used with bool and int",
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+`
calendars: {office: {zone: Europe/Berlin, days: [mon], from: "09:00", to: "17:30"}}
rules:
  - {name: r, tools: [a], when: '`+when+`', deny: no}
`), policy.Options{})
		require.ErrorContains(t, err, says, when)
	}
	_, err := policy.Parse("policy.yaml", []byte(head+`
calendars: {office: {zone: Europe/Berlin, days: [mon], from: "09:00", to: "17:30"}}
`), policy.Options{})
	require.ErrorContains(t, err, "this calendar is not used")
}

// TestADayWithoutAMidnightBeginsWhenTheClocksAreMoved: where they skip it, the day
// before lasts to its end, and no hour of it belongs to the next.
func TestADayWithoutAMidnightBeginsWhenTheClocksAreMoved(t *testing.T) {
	const always = `{zone: ZONE, days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00"}`
	for zone, moved := range map[string]string{
		"America/Santiago": "2024-09-08T01:00:00-03:00",
		"America/Havana":   "2024-03-10T01:00:00-04:00",
		"Africa/Cairo":     "2024-04-26T01:00:00+03:00",
		"Asia/Beirut":      "2024-03-31T01:00:00+03:00",
	} {
		at, err := time.Parse(time.RFC3339, moved)
		require.NoError(t, err)
		entered := book{entries: []approvals.LedgerEntry{
			{Key: "a", Tool: "refund", At: at.Add(-time.Second)}, {Key: "b", Tool: "refund", At: at},
		}}
		p := parse(t, strings.ReplaceAll(`
zone: ZONE
calendars: {always: `+always+`}
rules:
  - {name: never, tools: [refund], when: "!hours.always", deny: Closed.}
  - {name: one-a-day, tools: [refund], when: 'today.executed["refund"] >= 2', deny: One a day.}
  - {name: refunds, tools: [refund], allow: true}
`, "ZONE", zone), policy.Options{Ledger: entered})
		for _, after := range []time.Duration{-90 * time.Minute, -30 * time.Minute, -time.Second, 0, time.Minute, time.Hour} {
			q := with(call("refund", `{}`), func(q *approvals.Proposal) { q.At, q.Entry = at.Add(after), "a" })
			require.Equal(t, "runs", say(t, p, q), "%s %s", zone, after)
		}
		late := with(call("refund", `{}`), func(q *approvals.Proposal) { q.At = at.Add(time.Hour) })
		require.Equal(t, "runs", say(t, p, late), "%s: one of them was made the day before", zone)
	}
}
