package policy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func companyPolicy(tb testing.TB) *policy.Policy {
	tb.Helper()
	p, err := policy.Load(company+"policy.yaml", policy.Options{Tools: companyTools(tb), Roster: companyRoster(tb)})
	require.NoError(tb, err)
	return p
}

func companyCalls(tb testing.TB) []policy.Recorded {
	tb.Helper()
	b, err := os.ReadFile(company + "calls.jsonl")
	require.NoError(tb, err)
	var calls []policy.Recorded
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var c policy.Recorded
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &c))
		calls = append(calls, c)
	}
	return calls
}

// explained.txt is what the company's policy says of its recorded calls.
func TestTheExampleIsExplained(t *testing.T) {
	p := companyPolicy(t)
	require.Len(t, p.Rules(), 10)
	var b strings.Builder
	for _, c := range companyCalls(t) {
		fmt.Fprintf(&b, "%s %s\n", c.Call, c.At.Format("Mon 2006-01-02 15:04 MST"))
		b.WriteString(p.ExplainRecorded(t.Context(), c).Text() + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(company+"explained.txt", []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(company + "explained.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestAnExplanationIsTheRuling(t *testing.T) {
	p := companyPolicy(t)
	for _, c := range companyCalls(t) {
		e := p.ExplainRecorded(t.Context(), c)
		decided := 0
		for _, s := range e.Steps {
			if s.Outcome == policy.Decided {
				decided++
				require.Equal(t, s.Rule+"@"+p.Version(), e.By)
			}
		}
		require.LessOrEqual(t, decided, 1)
		if ask, ok := e.Ruling.(approvals.Ask); ok {
			require.Equal(t, ask.Rule, e.By)
		}
	}
}

// A call that is recorded and read back is the same proposal.
func TestAProposalSurvivesItsRecord(t *testing.T) {
	for _, c := range companyCalls(t) {
		b, err := json.Marshal(policy.Record(c.Proposal()))
		require.NoError(t, err)
		var back policy.Recorded
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, c.Proposal(), back.Proposal())
	}
}
