package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// FuzzParse: no file makes the reader panic, and one that is accepted is
// accepted again, rules without an error and never has an empty requirement.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	require.NoError(f, err)
	for _, file := range append(files, company+"policy.yaml", "testdata/shell.yaml") {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	f.Add([]byte(head + "rules:\n  - {name: a, when: args.?x.orValue(false), allow: true}\n"))
	tools := companyTools(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, o := range []policy.Options{{}, {Tools: tools}} {
			p, err := policy.Parse("p.yaml", src, o)
			if err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			_, err = policy.Parse("p.yaml", src, o)
			require.NoError(t, err)
			require.NotEmpty(t, p.Strictest(monday).Quorums)
			r, err := p.Rule(t.Context(), call("delete_file", `{"path":"/a"}`))
			require.NoError(t, err)
			if ask, ok := r.(approvals.Ask); ok {
				require.NotEmpty(t, ask.Requirement.Quorums)
				require.True(t, ask.Requirement.Deadline.After(monday))
			}
		}
	})
}

// FuzzArguments: whatever the arguments are, a rule that cannot be judged asks
// everyone; the call runs only if its condition was judged to be true.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"n":1}`, `{"n":1e400}`, `{"n":"x"}`, `{"n":null}`, `[`, `{"n":9007199254740993}`, `{"n":1,"l":[[[]]]}`, ``, `{"n":true,"s":"a"}`} {
		f.Add([]byte(s))
	}
	p, err := policy.Parse("p.yaml", []byte(head+`rules:
  - {name: yes, tools: [x], when: args.n + 1 > 3 && args.s.matches("^a+$"), allow: true}
`), policy.Options{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, args []byte) {
		r, err := p.Rule(t.Context(), call("x", string(args)))
		require.NoError(t, err)
		switch r := r.(type) {
		case approvals.Permit:
			var a struct {
				N float64 `json:"n"`
				S string  `json:"s"`
			}
			require.NoError(t, json.Unmarshal(args, &a))
			require.Greater(t, a.N, 2.0)
			require.NotEmpty(t, a.S)
		case approvals.Ask:
			require.NotEmpty(t, r.Requirement.Quorums)
		case approvals.Refuse:
			t.Fatal("nothing denies")
		}
	})
}

// An allow, put anywhere, never lifts a deny, and never a broken rule's.
func TestAnAllowAnywhereNeverLiftsADeny(t *testing.T) {
	rules := []string{
		"  - {name: a, tools: [x], when: args.n == 1, deny: one}\n",
		"  - {name: b, tools: [x], when: args.missing == 1 && args.n == 2, deny: two}\n",
		"  - {name: c, tools: [x], when: args.n == 3, ask: {why: three}}\n",
		"  - {name: d, tools: [x], when: args.n == 4, allow: true}\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.Permutation(rules).Draw(t, "rules")
		at := rapid.IntRange(0, len(list)).Draw(t, "at")
		when := rapid.SampledFrom([]string{"args.n > 0", "args.n == 1 || args.n == 2", "!has(args.other)"}).Draw(t, "when")
		allow := "  - {name: new, tools: [x], when: '" + when + "', allow: true}\n"
		without, err := policy.Parse("p.yaml", []byte(head+"rules:\n"+strings.Join(list, "")), policy.Options{})
		require.NoError(t, err)
		more, err := policy.Parse("p.yaml", []byte(head+"rules:\n"+strings.Join(slices.Insert(slices.Clone(list), at, allow), "")), policy.Options{})
		require.NoError(t, err)
		for _, args := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4,"missing":1}`, `{"n":1,"missing":2}`, `{}`} {
			before, err := without.Rule(t.Context(), call("x", args))
			require.NoError(t, err)
			after, err := more.Rule(t.Context(), call("x", args))
			require.NoError(t, err)
			if _, denied := before.(approvals.Refuse); denied {
				require.Equal(t, unnamed(before), unnamed(after))
			}
			if ask, asks := before.(approvals.Ask); asks && strings.Contains(ask.Why, "could not be judged") && strings.Contains(ask.Why, "rule b ") {
				require.IsType(t, approvals.Ask{}, after)
			}
		}
	})
}
