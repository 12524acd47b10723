package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// changed is the company's policy with a text replaced.
func changed(tb testing.TB, old, by string) *policy.Policy {
	tb.Helper()
	src, err := os.ReadFile(company + "policy.yaml")
	require.NoError(tb, err)
	text, _, _ := strings.Cut(string(src), "\nexamples:")
	require.Contains(tb, text, old)
	p, err := policy.Parse("policy.yaml", []byte(strings.Replace(text, old, by, 1)), policy.Options{Tools: companyTools(tb), Roster: companyRoster(tb)})
	require.NoError(tb, err)
	return p
}

func TestAReplayShowsExactlyWhatAChangeChanges(t *testing.T) {
	calls, err := os.ReadFile(company + "calls.jsonl")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		old, by string
		want    []string
	}{
		"nothing": {"allow: true", "allow: true", nil},
		"how many": {"need: 2, from: {groups: [sre]}", "need: 3, from: {groups: [sre]}", []string{
			"2 - needs operations: 2 of sre", "2 + needs operations: 3 of sre", "3 - needs operations: 2 of sre", "3 + needs operations: 3 of sre",
			"14 - needs operations: 2 of sre", "14 + needs operations: 3 of sre", "15 - needs operations: 2 of sre", "15 + needs operations: 3 of sre",
		}},
		"who": {"veto:\n        - {name: security, need: 1, from: {groups: [security]}}", "veto:\n        - {name: security, need: 1, from: {people: [carol]}}", []string{
			"2 - veto by security: 1 of security", "2 + veto by security: 1 of carol", "3 - veto by security: 1 of security", "3 + veto by security: 1 of carol",
			"14 - veto by security: 1 of security", "14 + veto by security: 1 of carol", "15 - veto by security: 1 of security", "15 + veto by security: 1 of carol",
		}},
		"until when": {"within: 4h", "within: 5h", []string{"11 - until 2026-03-02 14:00:00 UTC", "11 + until 2026-03-02 15:00:00 UTC"}},
		"what people read": {"Restart {args.service}{", "Restart the service {args.service}{", []string{
			`10 - summary: Restart {args.service}{if args.force " by force"}`, `10 + summary: Restart the service {args.service}{if args.force " by force"}`,
		}},
		"whether at all": {`startsWith("prod")`, `startsWith("scratch")`, []string{
			"6 - -> is refused (deny): Databases of production are dropped by hand, with two people at the keyboard.",
			"6 + -> needs approval (default): It changes something, and no rule is about it.", "6 +    needs operations: 1 of sre", "6 +    until 2026-03-03 10:00:00 UTC",
			"7 - -> needs approval (default): It changes something, and no rule is about it.", "7 -    needs operations: 1 of sre", "7 -    until 2026-03-03 10:00:00 UTC",
			"7 + -> is refused (deny): Databases of production are dropped by hand, with two people at the keyboard.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			sum, err := policy.Replay(t.Context(), companyPolicy(t), changed(t, c.old, c.by), bytes.NewReader(calls), func(d policy.Difference) {
				for _, line := range d.Changes {
					line = strings.Replace(line, "    ", " ", 1)
					got = append(got, fmt.Sprintf("%d %s", d.Line, line))
				}
			})
			require.NoError(t, err)
			require.Equal(t, 16, sum.Calls)
			for i := range c.want {
				c.want[i] = strings.Replace(c.want[i], "    ", " ", 1)
			}
			require.Equal(t, c.want, got)
			if name == "whether at all" {
				require.Equal(t, 2, sum.Different)
				require.Equal(t, 1, sum.Moved[policy.KindDeny][policy.KindAsk])
				require.Equal(t, 1, sum.Moved[policy.KindAsk][policy.KindDeny])
			}
		})
	}
}

func TestAReplayEndsAtALineThatIsNoCall(t *testing.T) {
	p := companyPolicy(t)
	good := `{"tool":"x","at":"2026-03-02T10:00:00Z"}` + "\n\n"
	for _, bad := range []string{"{", `{"tool":"x"}`, `{"at":"2026-03-02T10:00:00Z"}`, `{"tool":"x","at":"2026-03-02T10:00:00Z","secret":1}`, "[]"} {
		sum, err := policy.Replay(t.Context(), p, p, strings.NewReader(good+bad), nil)
		require.ErrorContains(t, err, "line 3: is not a recorded call")
		require.Equal(t, 1, sum.Calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := policy.Replay(ctx, p, p, strings.NewReader(good), nil)
	require.ErrorIs(t, err, context.Canceled)
}

// manyCalls are recorded calls as a company makes them.
func manyCalls(tb testing.TB, n int) []byte {
	tb.Helper()
	calls := companyCalls(tb)
	var b bytes.Buffer
	for i := range n {
		c := calls[i%len(calls)]
		c.At = c.At.Add(time.Duration(i) * time.Second)
		line, err := json.Marshal(c)
		require.NoError(tb, err)
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

func BenchmarkReplay100000(b *testing.B) {
	calls := manyCalls(b, 100_000)
	before, after := companyPolicy(b), changed(b, "within: 4h", "within: 5h")
	b.ReportAllocs()
	for b.Loop() {
		sum, err := policy.Replay(b.Context(), before, after, bytes.NewReader(calls), func(policy.Difference) {})
		require.NoError(b, err)
		require.Equal(b, 6_250, sum.Different)
	}
	b.ReportMetric(100_000/(b.Elapsed().Seconds()/float64(b.N)), "calls/s")
}

func BenchmarkLoad(b *testing.B) {
	tools, roster := companyTools(b), companyRoster(b)
	for b.Loop() {
		_, err := policy.Load(company+"policy.yaml", policy.Options{Tools: tools, Roster: roster})
		require.NoError(b, err)
	}
}
