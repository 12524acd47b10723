package approvals_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// settledBatch has one call that was approved, "a", and one that was denied, "b".
func settledBatch(t *testing.T) Batch {
	t.Helper()
	ask := Ask{Requirement: Requirement{Quorums: []Quorum{{Name: "ops", Need: 1, From: From{Users: []UserID{"ann"}}}}, Deny: 1}}
	b, _, err := Open(Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", OpenedAt: opened}, []Deferral{
		{Call: ToolCall{ID: "a", Name: "tool", Args: []byte(`{}`)}, Ask: ask},
		{Call: ToolCall{ID: "b", Name: "tool", Args: []byte(`{}`)}, Ask: ask},
	}, nil)
	require.NoError(t, err)
	for i, v := range []Verdict{Approve, Deny} {
		c := b.Approvals[i].Call
		b, _, err = b.Apply(Decide{Decision{Call: c.ID, By: Principal{User: "ann"}, Verdict: v, Digest: c.Digest, At: opened}})
		require.NoError(t, err)
	}
	return b
}

func concluding(call ToolCallID, e Execution) Conclude {
	return Conclude{At: opened.Add(time.Minute), Calls: []Conclusion{{Call: call, Execution: e}}}
}

func TestAnExecutionIsRecordedOnceAndOnlyDoubtIsReplaced(t *testing.T) {
	b := settledBatch(t)
	doubt, facts, err := b.Apply(concluding("a", Execution{State: InDoubt}))
	require.NoError(t, err)
	require.Equal(t, b.Version+1, doubt.Version)
	require.Equal(t, []Event{Concluded{Batch: b.ID, Call: "a", State: InDoubt, At: opened.Add(time.Minute)}}, facts)

	ran, facts, err := doubt.Apply(concluding("a", Execution{State: Ran, Took: time.Second, Excerpt: "deleted"}))
	require.NoError(t, err)
	require.Len(t, facts, 1)
	require.Equal(t, Execution{State: Ran, Took: time.Second, Excerpt: "deleted", At: opened.Add(time.Minute)}, ran.Approvals[0].Execution)

	again, facts, err := ran.Apply(concluding("a", Execution{State: RanFailed, Words: "no"}))
	require.NoError(t, err)
	require.Empty(t, facts)
	require.Equal(t, ran, again)
}

func TestOnlyWhatWasApprovedHasAnExecution(t *testing.T) {
	b := settledBatch(t)
	for name, c := range map[string]struct {
		cmd  Conclude
		want error
	}{
		"a denied call":       {concluding("b", Execution{State: Ran}), ErrInvalid},
		"an unknown call":     {concluding("z", Execution{State: Ran}), ErrNotFound},
		"an unknown state":    {concluding("a", Execution{State: "done"}), ErrInvalid},
		"a negative duration": {concluding("a", Execution{State: Ran, Took: -1}), ErrInvalid},
		"too many words":      {concluding("a", Execution{State: RanFailed, Words: strings.Repeat("é", MaxExecutionWords+1)}), ErrInvalid},
		"no text":             {concluding("a", Execution{State: Ran, Excerpt: "\xff"}), ErrInvalid},
		"no time":             {Conclude{Calls: []Conclusion{{Call: "a", Execution: Execution{State: Ran}}}}, ErrInvalid},
	} {
		after, facts, err := b.Apply(c.cmd)
		require.ErrorIs(t, err, c.want, name)
		require.Empty(t, facts, name)
		require.Equal(t, b, after, name)
	}
}

func TestNothingIsConcludedBeforeEverythingIsSettled(t *testing.T) {
	ask := Ask{Requirement: Requirement{Quorums: []Quorum{{Name: "ops", Need: 1, From: From{Users: []UserID{"ann"}}}}}}
	b, _, err := Open(Batch{ID: "batch-17-b", Run: "run-17-r", Requester: "req", OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: "a", Name: "tool", Args: []byte(`{}`)}, Ask: ask}}, nil)
	require.NoError(t, err)
	_, _, err = b.Apply(concluding("a", Execution{State: Ran}))
	require.ErrorIs(t, err, ErrOpen)
	mixed := concluding("a", Execution{State: Refused})
	mixed.Calls = append(mixed.Calls, concluding("a", Execution{State: Ran}).Calls...)
	_, _, err = b.Apply(mixed)
	require.ErrorIs(t, err, ErrOpen, "one of them may be known early, the other one not")
}
