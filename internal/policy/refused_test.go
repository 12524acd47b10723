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

// A deny that is added in an emergency takes effect at once, although the rules that it
// outranks decide nothing any more: that is a warning for each of them.
func TestADenyThatOutranksOtherRulesIsAWarning(t *testing.T) {
	const rules = "rules:\n" +
		"  - {name: reads, tools: [read_file], allow: true}\n" +
		"  - {name: writes, tools: [write_file], ask: {why: x}}\n" +
		"  - {name: passwords, tools: [read_file], when: args.path == '/etc/passwd', deny: never}\n"
	before := parse(t, rules, policy.Options{})
	require.Empty(t, before.Warnings())
	require.NotContains(t, say(t, before, call("read_file", `{"path":"/a"}`)), "emergency")

	first, last := strings.Replace(rules, "rules:\n", "rules:\n  - {name: stop, deny: emergency}\n", 1), rules+"  - {name: stop, deny: emergency}\n"
	for text, covered := range map[string]int{first: 3, last: 2} { // a deny above it still decides
		p := parse(t, text, policy.Options{})
		require.Contains(t, say(t, p, call("read_file", `{"path":"/a"}`)), "emergency")
		require.Len(t, p.Warnings(), covered)
		require.Regexp(t, `^policy\.yaml:\d+:5: rules\[\d\]: never decides: stop \(policy\.yaml:\d+:5\) denies every call that it could match`, p.Warnings()[0])
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

// Each rule may name few enough people, and all together more than can be asked at once.
// A call that no rule can judge needs every quorum, so that is an error. Whether one
// request ever needs several rules with their escalations is not known: that is a warning.
func TestRulesThatTogetherNameTooManyPeople(t *testing.T) {
	load := func(people int, rule string) ([]string, error) {
		var known []string
		named := map[int][]string{}
		for n := range people {
			known = append(known, fmt.Sprintf("p%d: U%09d", n, n))
			named[n/300] = append(named[n/300], fmt.Sprint("p", n))
		}
		text := "people: {" + strings.Join(known, ", ") + "}\ndefault:\n" +
			"  quorums: [{name: operations, need: 1, from: {people: [" + strings.Join(named[0], ", ") + "]}}]\n" +
			"rules: [{name: more, tools: [x], ask: {" + strings.ReplaceAll(rule, "MORE", strings.Join(named[1], ", ")) + "}}]\n"
		p, err := policy.Parse("p.yaml", []byte(text), policy.Options{})
		if err != nil {
			return nil, err
		}
		return p.Warnings(), nil
	}
	const quorum = "quorums: [{name: more, need: 1, from: {people: [p0, MORE]}}]"
	const escalation = "quorums: [{name: more, need: 1, from: {people: [p0, p1]}}], escalate: [{after: 1h, quorum: more, add: {people: [MORE]}}]"
	for _, rule := range []string{quorum, escalation} {
		warnings, err := load(500, rule)
		require.NoError(t, err)
		require.Empty(t, warnings)
	}
	_, err := load(501, quorum)
	require.EqualError(t, err, "p.yaml:3:3: default: a call for which a condition can't be evaluated needs every quorum in the file, and together they name 501 people and groups, "+
		"but at most 500 can be asked at once; name groups of people instead")
	warnings, err := load(501, escalation)
	require.NoError(t, err)
	require.Equal(t, []string{"p.yaml:1:1: rules: all rules together name 501 people and groups, with their vetoes and escalations, and at most 500 can be asked at once: " +
		"where the calls of one request name more, nobody is asked and none of them runs; name groups of people instead"}, warnings)
}
