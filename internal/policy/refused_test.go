package policy_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const company = "../../examples/company/"

func companyTools(tb testing.TB) []policy.Tool {
	tb.Helper()
	tools, err := policy.ReadTools(company + "tools.json")
	require.NoError(tb, err)
	return tools
}

func companyRoster(tb testing.TB) *policy.Roster {
	tb.Helper()
	roster, err := policy.ReadRoster(company + "roster.yaml")
	require.NoError(tb, err)
	return roster
}

// Every file of testdata/refused is refused with exactly the messages of the
// .txt beside it. Those that begin with a comment are read with a roster.
func TestWhatCannotWorkIsRefusedWithItsPlaceAndAHint(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 40)
	tools, roster := companyTools(t), companyRoster(t)
	roster.Groups["S0NOBODY01"], roster.Groups["S0GONE0001"] = []approvals.UserID{"U0JUDY0001"}, nil
	roster.Groups["C0GUESTS01"] = []approvals.UserID{"U0JUDY0001", "U0ALICE001"}
	roster.People["U0GONE0001"] = policy.Gone
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			o := policy.Options{Tools: tools}
			if strings.HasPrefix(string(src), "# with the roster") {
				o.Roster = roster
			}
			_, err = policy.Parse(filepath.Base(file), src, o)
			require.Error(t, err)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			want, readErr := os.ReadFile(golden)
			require.NoError(t, readErr)
			require.Equal(t, string(want), err.Error()+"\n")
		})
	}
}

// A request is on a list of each person and group that its rule names, in one commit.
func TestARuleNamesNoMorePeopleThanACommitHolds(t *testing.T) {
	load := func(people int) error {
		var known, named, added []string
		for n := range people - 1 {
			known = append(known, fmt.Sprintf("p%d: U%09d", n, n))
			named = append(named, fmt.Sprint("p", n))
		}
		named, added = named[:200], named[199:] // one is in both
		text := "groups: {sre: S0SRE00001}\npeople: {" + strings.Join(known, ", ") + "}\ndefault:\n" +
			"  quorums: [{name: operations, need: 1, from: {groups: [sre], people: [" + strings.Join(named, ", ") + "]}}]\n" +
			"  escalate: [{after: 1h, quorum: operations, add: {people: [" + strings.Join(added, ", ") + "]}}]\n"
		_, err := policy.Parse("p.yaml", []byte(text), policy.Options{})
		return err
	}
	require.NoError(t, load(400))
	require.EqualError(t, load(401), "p.yaml:4:3: default: names 401 people and groups, and at most 400 are allowed; name a group of people instead")
}
