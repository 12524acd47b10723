package doctor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// An agent may be asked where none of those who may approve its calls reads along.
func TestCheckWarnsOfChannelsWithoutApprovers(t *testing.T) {
	ops := func(members ...string) slacksim.Config {
		return slacksim.Config{Channels: []slacksim.Channel{{ID: "C0OPS", Name: "ops", Members: append(members, slacksim.BotUser)}}}
	}
	silent := strings.Replace(oneOfSRE, "quorums:", "dm: false\n  quorums:", 1)
	for name, c := range map[string]struct {
		sim   slacksim.Config
		rules string
		want  []string // nothing: no warning
	}{
		"an approver is there": {ops("U0ALICE", "U0BOB"), oneOfSRE, nil},
		"of one rule only": {ops("U0ALICE", "U0DAVE"), wholePolicy, []string{
			"agents[0].channels: C0OPS: nobody in it may approve delete_file of ops, which the rule deletions asks of @sre (S0SRE), U0CAROL",
			"write_file of ops, which the default of the policy asks of @sre (S0SRE)",
			"-> invite approvers to the channel; otherwise they are asked by direct message, if there are at most 20 of them",
		}},
		"without direct messages": {ops("U0ALICE"), silent, []string{
			"which the default of the policy asks of @sre (S0SRE)", "-> invite approvers to the channel, or remove dm: false from the rule",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, c.sim)
			i.rules = c.rules
			found := i.check()
			if c.want == nil {
				require.NotContains(t, found, "nobody in it may approve")
			}
			for _, want := range c.want {
				require.Contains(t, found, want)
			}
		})
	}
}
