package directory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAddressInOtherLettersIsNobodyElse(t *testing.T) {
	d := &Directory{} // whoever is looked up here is not found without Slack
	for _, email := range []string{"", " ", "al\u0130ce@acme.example", "alice@acm\u0130.example", "fran\u212a@acme.example", "alice@acme.example\u2003", "alice@acme.example\n", "\xff@acme.example"} {
		_, err := d.ByEmail(t.Context(), email)
		require.ErrorIs(t, err, ErrNoAccount, "%q", email)
	}
	is, ok := address(" Alice@ACME.example ")
	require.True(t, ok)
	require.Equal(t, "alice@acme.example", is)
}
