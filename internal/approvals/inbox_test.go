package approvals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func TestABatchIsOnTheListsOfWhomItConcerns(t *testing.T) {
	t.Parallel()
	later := in(1, "security", "")
	later.Stage = 2
	r := Requirement{
		Quorums: []Quorum{of(2, "ann", "bo", ""), later},
		Vetoes:  []Quorum{of(1, "cy"), in(1, "sre")},
		Ladder: []Rung{
			{At: deadline, Kind: Escalate, Channel: "C-war"},
			{At: deadline, Kind: Escalate, Channel: "C-board"},
		},
	}
	b := open(t, r)
	b.Channel = "C-ops"
	everyone := []ListKey{
		Everything, ShownIn("C-ops"), WaitsForGroup("security"), WaitsForGroup("sre"), AskedBy("req"),
		WaitsForUser("ann"), WaitsForUser("bo"), WaitsForUser("cy"),
	}
	require.Equal(t, everyone, b.Concerns(), "each once, also those of a later stage and those who may only deny")
	require.Empty(t, b.Deciders())

	one := must(t, b, say(b, "ann", Approve))
	require.Equal(t, everyone, one.Concerns(), "whoever has decided is still concerned")
	require.Equal(t, map[UserID]time.Time{"ann": opened.Add(time.Minute)}, one.Deciders())
	back := must(t, one, Retract{Call: theCall, By: Principal{User: "ann"}, At: opened.Add(time.Minute)})
	require.Empty(t, back.Deciders())

	one.Approvals[0].Climbed = 1
	require.Contains(t, one.Concerns(), ShownIn("C-war"))
	require.NotContains(t, one.Concerns(), ShownIn("C-board"))

	doubtful := one
	doubtful.Approvals = []Approval{one.Approvals[0]}
	doubtful.Approvals[0].Doubt.Began = opened
	require.Contains(t, doubtful.Concerns(), Doubtful)
	require.NotContains(t, one.Concerns(), Doubtful)

	ended := must(t, one, Withdraw{By: "req", At: opened.Add(time.Hour)})
	require.Empty(t, ended.Concerns(), "what is settled concerns nobody")
	require.Len(t, ended.Deciders(), 1)
	require.Empty(t, Batch{Channel: "C-ops", Requester: "req", Calls: []External{{}}}.Concerns(), "nobody is asked")
	half := Batch{Agent: "ops", Channel: "C-ops", Requester: "req", Calls: []External{{Result: ToolFailed{}}, {}}}
	require.Equal(t, []ListKey{AwaitsResult("ops")}, half.Concerns())
	half.Calls[1].Result = ToolFailed{}
	require.Empty(t, half.Concerns())
}

func TestTheKindsOfListsAreApart(t *testing.T) {
	t.Parallel()
	seen := map[ListKey]bool{Everything: true, Doubtful: true}
	for _, k := range []ListKey{WaitsForUser("C1"), WaitsForGroup("C1"), ShownIn("C1"), AskedBy("C1"), AwaitsResult("C1")} {
		require.False(t, seen[k], k)
		seen[k] = true
	}
}
