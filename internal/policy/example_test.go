package policy_test

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// A policy is read once, and rules each call before it runs.
func Example() {
	const file = `
groups: {sre: S0123456789}
default: {quorums: [{name: sre, from: {groups: [sre]}}]}
rules:
  - {name: backups, tools: [delete_*], when: 'args.path.startsWith("/backups/")', deny: Backups are kept.}
  - {name: deletions, tools: [delete_*], ask: {why: It cannot be undone., quorums: [{name: sre, need: 2, from: {groups: [sre]}}]}}
  - {name: reading, tools: [read_*], allow: true}
`
	p, err := policy.Parse("policy.yaml", []byte(file), policy.Options{}) // or policy.Load, from a file or a directory
	if err != nil {
		panic(err)
	}
	for _, call := range []approvals.ToolCall{
		{ID: "1", Name: "read_file", Args: []byte(`{"path": "/backups/a"}`)},
		{ID: "2", Name: "delete_file", Args: []byte(`{"path": "/tmp/a"}`)},
		{ID: "3", Name: "delete_file", Args: []byte(`{"path": "/backups/a"}`)},
	} {
		ruling, err := p.Rule(context.Background(), approvals.Proposal{Agent: "ops", Requester: "U0123456789", Call: call})
		if err != nil {
			panic(err)
		}
		switch r := ruling.(type) {
		case approvals.Permit:
			fmt.Println(call.Name, "runs")
		case approvals.Refuse:
			fmt.Println(call.Name, "is refused:", r.Reason)
		case approvals.Ask:
			q := r.Requirement.Quorums[0]
			fmt.Println(call.Name, "needs", q.Need, "of", q.Name+":", r.Why)
		}
	}
	// Output:
	// read_file runs
	// delete_file needs 2 of sre: It cannot be undone.
	// delete_file is refused: Backups are kept.
}
