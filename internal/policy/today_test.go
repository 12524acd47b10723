package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// A book has what went ahead, or is broken.
type book struct {
	entries []approvals.LedgerEntry
	err     error
}

func (b book) Entries(context.Context, approvals.UserID) ([]approvals.LedgerEntry, error) {
	return b.entries, b.err
}

const twoADay = `
zone: Europe/Berlin
rules:
  - {name: two-a-day, tools: [refund], when: 'today.executed["refund"] >= 2', deny: Two a day.}
  - {name: refunds, tools: [refund], allow: true}
`

// TestCallsOfADayAreCounted: since midnight in the zone of the file, of this
// tool, and only those that were entered before the call itself.
func TestCallsOfADayAreCounted(t *testing.T) {
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return when
	}
	refund := func(key, when string) approvals.LedgerEntry {
		return approvals.LedgerEntry{Key: key, Tool: "refund", At: at(when)}
	}
	morning := refund("a", "2026-03-02T08:00:00Z")
	for name, c := range map[string]struct {
		ledger policy.Ledger
		entry  string
		want   string
	}{
		"one before":                        {book{entries: []approvals.LedgerEntry{morning}}, "", "runs"},
		"two before":                        {book{entries: []approvals.LedgerEntry{morning, refund("b", "2026-03-02T09:00:00Z")}}, "", "refused: Two a day."},
		"the second after midnight there":   {book{entries: []approvals.LedgerEntry{refund("b", "2026-03-01T23:00:00Z"), morning}}, "", "refused: Two a day."},
		"the first before midnight there":   {book{entries: []approvals.LedgerEntry{refund("b", "2026-03-01T22:59:59Z"), morning}}, "", "runs"},
		"another tool":                      {book{entries: []approvals.LedgerEntry{morning, {Key: "b", Tool: "other", At: monday}}}, "", "runs"},
		"itself is not counted":             {book{entries: []approvals.LedgerEntry{morning, refund("me", "2026-03-02T09:00:00Z")}}, "me", "runs"},
		"nor what was entered after it":     {book{entries: []approvals.LedgerEntry{refund("me", "2026-03-02T09:00:00Z"), morning, refund("b", "2026-03-02T07:00:00Z")}}, "me", "runs"},
		"all, before it is entered":         {book{entries: []approvals.LedgerEntry{morning, refund("b", "2026-03-02T09:00:00Z")}}, "me", "refused: Two a day."},
		"a ledger that cannot be read asks": {book{err: errors.New("no redis")}, "", "strictest: "},
		"no ledger asks":                    {nil, "", "strictest: "},
	} {
		p := parse(t, twoADay, policy.Options{Ledger: c.ledger})
		require.True(t, p.CountsToday())
		got := say(t, p, with(call("refund", `{}`), func(q *approvals.Proposal) { q.Entry = c.entry }))
		require.Contains(t, got, c.want, name)
		if c.want == "strictest: " {
			require.Contains(t, got, "the calls of today could not be counted", name)
		}
	}
	require.False(t, parse(t, "", policy.Options{}).CountsToday())
}

// TestARecordedCallIsCountedByItsRecord: what is in the ledger now says nothing
// of the day of a recorded call.
func TestARecordedCallIsCountedByItsRecord(t *testing.T) {
	p := parse(t, twoADay, policy.Options{Ledger: book{}})
	for line, want := range map[string]string{
		`{"tool":"refund","requester":"U0ALICE001","at":"2026-03-02T10:00:00Z","today":{"executed":{"refund":2}}}`: "is refused",
		`{"tool":"refund","requester":"U0ALICE001","at":"2026-03-02T10:00:00Z","today":{}}`:                        "runs without approval",
		`{"tool":"refund","requester":"U0ALICE001","at":"2026-03-02T10:00:00Z"}`:                                   "could not be counted",
	} {
		var r policy.Recorded
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Contains(t, p.ExplainRecorded(t.Context(), r).Text(), want, line)
	}
	r := policy.Record(call("refund", `{}`))
	require.Contains(t, p.ExplainCall(t.Context(), r).Text(), "runs without approval")
	r.Today = &policy.RecordedToday{Executed: map[string]int{"refund": 2}}
	require.Contains(t, p.ExplainCall(t.Context(), r).Text(), "is refused")
}

func TestCountsOfADayAreCheckedWhenTheFileIsRead(t *testing.T) {
	tools := policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "refund"}}}
	for written, says := range map[string]string{
		"zone: Europe/Berlin\n": "no condition uses today",
		"zone: Mars\nrules: [{name: r, when: 'today.executed[tool] > 1', deny: no}]\n":                                              `"Mars" is not a time zone`,
		"rules: [{name: r, tools: [refund], when: 'today.executed[\"refnd\"] > 1', deny: no}]\n":                                    `there is no tool "refnd"; did you mean refund?`,
		"rules: [{name: r, tools: [refund], when: 'today.executed[\"refund\"] == \"5\"', deny: no}]\n":                              "== can't be used with int and string",
		"rules: [{name: r, tools: [refund], when: 'today.executed[\"refund\"] > 5 && today.executed[\"refund\"] < 5', deny: no}]\n": "never true",
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+written), tools)
		require.ErrorContains(t, err, says)
	}
}
