package approvals_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// What another version wrote is not read in part.
func TestAMemoIsReadAsAWholeOrNotAtAll(t *testing.T) {
	type memo struct {
		V    int    `json:"v"`
		Name string `json:"name"`
	}
	var m memo
	require.NoError(t, DecodeMemo([]byte(`{"v":2,"name":"a"}`+"\n"), 2, &m))
	require.Equal(t, memo{2, "a"}, m)
	for name, doc := range map[string]string{
		"nothing":            ``,
		"cut off":            `{"v":2,"name":"a"`,
		"another schema":     `{"v":3,"name":"a"}`,
		"no schema":          `{"name":"a"}`,
		"an unknown field":   `{"v":2,"name":"a","more":1}`,
		"something after it": `{"v":2,"name":"a"} {}`,
		"no document":        `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, DecodeMemo([]byte(doc), 2, new(memo)), ErrUnreadable)
		})
	}
}
