package interact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpokenIsWhatThePersonWrote(t *testing.T) {
	for in, want := range map[string]string{
		"<@U0BOT> clean up":              "clean up",
		"hey <@U0BOT|countersign>, do x": "hey , do x",
		"<@U0BOTHER> not me":             "<@U0BOTHER> not me",
		"<@U0BOT>":                       "",
		"<@U0BOT> a &lt; b &amp;amp; c":  "a < b &amp; c",
		"<@U0BOT broken":                 "<@U0BOT broken",
	} {
		require.Equal(t, want, spoken(in, "U0BOT"), in)
	}
}
