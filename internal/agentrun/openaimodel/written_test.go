package openaimodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
)

// Who watches is told every piece of the answer that counts, and that one that
// broke off counts no more.
func TestWhatTheModelWritesIsToldPieceByPiece(t *testing.T) {
	for api, after := range map[openaimodel.API]int{openaimodel.Chat: 3, openaimodel.Responses: 10} {
		t.Run(string(api), func(t *testing.T) { requireTold(t, api, after) })
	}
}

// requireTold breaks the first answer off after so many events.
func requireTold(t *testing.T, api openaimodel.API, after int) {
	t.Helper()
	sim := openaisim.New(always(openaisim.Reply{Text: "I'll look at it — naïvely.", Calls: []openaisim.Call{
		{ID: "c1", Name: "read", Args: `{"path":"a"}`}, {ID: "c2", Name: "list", Args: `{}`},
	}}))
	sim.Fail(openaisim.Fault{Kind: openaisim.Dropped, After: after})
	r := ask("hi", "read", "list")
	var text, thought string
	args := map[approvals.ToolCallID]string{}
	pieces, again := 0, 0
	r.Written = func(d agentrun.Delta) {
		pieces++
		switch d.Kind {
		case agentrun.DeltaText:
			text += d.Text
		case agentrun.DeltaCall:
			require.Equal(t, map[approvals.ToolCallID]string{"c1": "read", "c2": "list"}[d.Call], d.Tool)
			args[d.Call] += d.Text
		case agentrun.DeltaAgain:
			require.NotEmpty(t, text, "some of it had come")
			again, text, thought = again+1, "", ""
		case agentrun.DeltaThinking:
			thought += d.Text
		}
	}
	response, err := newBench(t, sim, by(api)).Request(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 1, again)
	require.Greater(t, pieces, 6)
	for _, p := range response.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			require.Equal(t, p.Content, text)
		case agentrun.Thinking:
			require.Equal(t, p.Content, thought)
		case agentrun.CallPart:
			require.Equal(t, string(p.Args), args[p.ID])
		case agentrun.ProviderCall:
			require.Fail(t, "it has no hosted tools")
		}
	}
}
