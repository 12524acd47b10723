package agentrun_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

// A tool of a server is server.tool in the policy, in the store and in the log.
// Only the model reads and writes another name.
func TestTheModelCallsAToolByANameThatProvidersTake(t *testing.T) {
	w := newWorld(t)
	ran := ""
	w.agent.Tools = []agentrun.Tool{&fake{
		spec: agentrun.Spec{Name: "files.delete", Kind: agentrun.KindFunction},
		execute: func(_ context.Context, c agentrun.Call) (agentrun.Result, error) {
			ran = c.Name
			return agentrun.Result{Value: json.RawMessage(`"gone"`)}, nil
		},
	}}
	w.model.answers = []any{calls([3]string{"a", "files_delete", `{}`}), calls([3]string{"b", "files_drop", `{}`})}
	w.work(w.mention("delete it").ID)

	require.Equal(t, "files.delete", ran)
	require.Equal(t, "files_delete", w.model.requests[0].Tools[0].Name)
	told, err := marshalMessages(w.model.requests[len(w.model.requests)-1].Messages)
	require.NoError(t, err)
	require.NotContains(t, string(told), "files.delete", "the model reads only the name that it can write")
	require.Contains(t, string(told), "Available tools: 'files_delete'")
	kept, err := marshalMessages(w.history())
	require.NoError(t, err)
	require.Contains(t, string(kept), `"files.delete"`, "the history has the name of the tool")
}

func TestACallableNameIsOneThatProvidersTake(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	long := strings.Repeat("x", 80)
	for name, want := range map[string]string{
		"delete_file": "delete_file", "files.delete": "files_delete", "a.b/c d": "a_b_c_d", "s.é": "s__",
	} {
		require.Equal(t, want, agentrun.CallableName(name))
	}
	require.Regexp(t, valid, agentrun.CallableName(long))
	require.NotEqual(t, agentrun.CallableName(long+"1"), agentrun.CallableName(long+"2"))
}

func TestAnAgentWithTwoToolsOfOneCallableNameDoesNotRun(t *testing.T) {
	w := newWorld(t)
	w.agent.Tools = []agentrun.Tool{
		&fake{spec: agentrun.Spec{Name: "files.read", Kind: agentrun.KindFunction}},
		&fake{spec: agentrun.Spec{Name: "files_read", Kind: agentrun.KindFunction}},
	}
	run := w.work(w.mention("read").ID)
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Empty(t, w.model.requests)
}
