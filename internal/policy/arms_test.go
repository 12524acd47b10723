package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/policy"
)

// TestAnArmThatIsNeverTrueIsRefused: the rule would not match what its author
// wrote there. One that is true of some call is not.
func TestAnArmThatIsNeverTrueIsRefused(t *testing.T) {
	for when, says := range map[string]string{
		`args.a == 1 || args.b > 5 && args.b < 3`:                      "whatever args.b is",
		`args.a == 1 || args.c == 2 || args.b == "x" && args.b == "y"`: "whatever args.b is",
		`args.z && (args.a == 1 || args["b"] == "x" && args.b == "y")`: "whatever args.b is",
		`args.a == 1 || size(args.b) < 0`:                              "whatever size(args.b) is",
		`args.a == 1 || args.b > 3 && args.b < 5`:                      "",
		`args.a == 1 || args.a == 2`:                                   "",
		`!(args.a == 1 || args.b == 2)`:                                "",
		`args.a == 1 && (args.a == 1 || args.b == 2)`:                  "",
	} {
		_, err := policy.Parse("policy.yaml", []byte(head+"rules:\n  - {name: r, tools: [a], deny: no, when: '"+when+"'}\n"), policy.Options{})
		if says == "" {
			require.NoError(t, err, when)
			continue
		}
		require.ErrorContains(t, err, "(||) that is never true", when)
		require.ErrorContains(t, err, says, when)
	}
}
