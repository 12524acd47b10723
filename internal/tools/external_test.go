package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/tools"
)

func TestAnExternalToolHidesWhatItsSchemaMarks(t *testing.T) {
	made, err := tools.NewExternal(tools.Declaration{
		Name: "lookup", Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"pin":{"type":"string","writeOnly":true}}}`),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"/pin"}, made.Spec().WriteOnly)
}
