package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sre(need int) policy.Quorum {
	return policy.Quorum{Name: "sre", Need: need, From: policy.From{Groups: []approvals.GroupID{"S0SRE"}}}
}

func security() policy.Quorum {
	return policy.Quorum{Name: "security", Need: 1, From: policy.From{Users: []approvals.UserID{"U0CAROL"}}}
}

func file() policy.File {
	return policy.File{
		Default: policy.Rule{Quorums: []policy.Quorum{sre(1)}, Why: "It changes something."},
		Tools: map[string]policy.Rule{
			"delete_file":   {Quorums: []policy.Quorum{sre(2), security()}, Within: time.Hour, Deny: 2, RequesterMaySign: true, Why: "Gone is gone."},
			"drop_database": {Refuse: "By hand only."},
			"read_secret":   {Quorums: []policy.Quorum{security()}},
		},
	}
}

func TestRulings(t *testing.T) {
	p, err := policy.New(file())
	require.NoError(t, err)
	coreSRE := func(need int) approvals.Quorum {
		return approvals.Quorum{Name: "sre", Need: need, From: approvals.From{Groups: []approvals.GroupID{"S0SRE"}}}
	}
	coreSecurity := approvals.Quorum{Name: "security", Need: 1, From: approvals.From{Users: []approvals.UserID{"U0CAROL"}}}

	for name, c := range map[string]struct {
		tool string
		gate approvals.Gate
		want approvals.Ruling
	}{
		"a tool that does not ask runs":         {"list_files", approvals.GateNone, approvals.Permit{}},
		"a tool that asks needs the default":    {"write_file", approvals.GateDeclared, approvals.Ask{Why: "It changes something.", Requirement: approvals.Requirement{Quorums: []approvals.Quorum{coreSRE(1)}, Deny: 1, Separation: true, Deadline: at.Add(24 * time.Hour)}}},
		"a named tool has a rule of its own":    {"delete_file", approvals.GateDeclared, approvals.Ask{Why: "Gone is gone.", Requirement: approvals.Requirement{Quorums: []approvals.Quorum{coreSRE(2), coreSecurity}, Deny: 2, Deadline: at.Add(time.Hour)}}},
		"a named tool asks though it does not":  {"read_secret", approvals.GateNone, approvals.Ask{Requirement: approvals.Requirement{Quorums: []approvals.Quorum{coreSecurity}, Deny: 1, Separation: true, Deadline: at.Add(24 * time.Hour)}}},
		"a refused tool is refused":             {"drop_database", approvals.GateNone, approvals.Refuse{Reason: "By hand only."}},
		"a refused tool is refused even if ask": {"drop_database", approvals.GateRaised, approvals.Refuse{Reason: "By hand only."}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Rule(t.Context(), approvals.Proposal{Call: approvals.ToolCall{Name: c.tool}, Gate: c.gate, At: at})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestTheStrictestRequirementNeedsEverybody(t *testing.T) {
	p, err := policy.New(file())
	require.NoError(t, err)
	got := p.Strictest(at)
	var names []string
	for _, q := range got.Quorums {
		names = append(names, q.Name)
	}
	require.Equal(t, []string{"sre", "sre", "security"}, names, "1 of sre, 2 of sre, 1 of security")
	require.True(t, got.Separation)
	require.Equal(t, 1, got.Deny)
	require.Equal(t, at.Add(time.Hour), got.Deadline)
}

func TestAPolicyThatCannotWorkIsRefusedWithItsPlace(t *testing.T) {
	with := func(change func(*policy.File)) policy.File {
		f := file()
		change(&f)
		return f
	}
	tool := func(r policy.Rule) policy.File {
		return with(func(f *policy.File) { f.Tools["delete_file"] = r })
	}
	quorum := func(q policy.Quorum) policy.File { return tool(policy.Rule{Quorums: []policy.Quorum{q}}) }

	for want, f := range map[string]policy.File{
		"default.quorums: name at least one":                         with(func(f *policy.File) { f.Default = policy.Rule{} }),
		"default.refuse: a policy that refuses":                      with(func(f *policy.File) { f.Default = policy.Rule{Refuse: "no"} }),
		"tools.delete_file.refuse: a refused call is never signed":   tool(policy.Rule{Refuse: "no", Quorums: []policy.Quorum{sre(1)}}),
		"tools.delete_file.deny: is -1":                              tool(policy.Rule{Quorums: []policy.Quorum{sre(1)}, Deny: -1}),
		"tools.delete_file.within: is -1s":                           tool(policy.Rule{Quorums: []policy.Quorum{sre(1)}, Within: -time.Second}),
		"tools.delete_file.within: is 2400h0m0s":                     tool(policy.Rule{Quorums: []policy.Quorum{sre(1)}, Within: 2400 * time.Hour}),
		"tools.delete_file.quorums[0].need: is 0":                    quorum(sre(0)),
		"tools.delete_file.quorums[0].name: is missing":              quorum(policy.Quorum{Need: 1, From: sre(1).From}),
		`tools.delete_file.quorums[1].name: "sre" is there twice`:    tool(policy.Rule{Quorums: []policy.Quorum{sre(1), sre(1)}}),
		"tools.delete_file.quorums[0].from: names nobody":            quorum(policy.Quorum{Name: "x", Need: 1}),
		"tools.delete_file.quorums[0].need: 2 signatures are need":   quorum(policy.Quorum{Name: "x", Need: 2, From: policy.From{Users: []approvals.UserID{"U0CAROL"}}}),
		`tools.delete_file.quorums[0].from.users: "@carol" is not`:   quorum(policy.Quorum{Name: "x", Need: 1, From: policy.From{Users: []approvals.UserID{"@carol"}}}),
		`tools.delete_file.quorums[0].from.groups: "U0SRE" is not a`: quorum(policy.Quorum{Name: "x", Need: 1, From: policy.From{Groups: []approvals.GroupID{"U0SRE"}}}),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := policy.New(f)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := policy.New(policy.File{Tools: map[string]policy.Rule{"a": {}, "b": {Deny: -1, Quorums: []policy.Quorum{sre(1)}}}})
	require.ErrorContains(t, err, "default.quorums")
	require.ErrorContains(t, err, "tools.a.quorums")
	require.ErrorContains(t, err, "tools.b.deny")
}
