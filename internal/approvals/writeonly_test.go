package approvals_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestHidden(t *testing.T) {
	for name, c := range map[string]struct {
		pointers string // separated by blanks
		path     string // keys, separated by blanks
		here     bool
		any      bool
	}{
		"nothing":                    {"", "a", false, false},
		"the value":                  {"/token", "token", true, true},
		"another":                    {"/token", "tokens", false, false},
		"above it":                   {"/in/token", "in", false, true},
		"below it":                   {"/in", "in", true, true},
		"an index":                   {"/list/1", "list 1", true, true},
		"another index":              {"/list/1", "list 10", false, false},
		"every index":                {"/list/*/key", "list 7 key", true, true},
		"every key":                  {"/*/key", "x key", true, true},
		"every key, too high":        {"/*/key", "x", false, true},
		"every key, another":         {"/*/key", "x kex", false, false},
		"one of two":                 {"/a/b /a/*", "a c", true, true},
		"a slash":                    {"/a~1b", "a/b", true, true},
		"a tilde":                    {"/a~0b", "a~b", true, true},
		"a tilde and then a one":     {"/a~01", "a~1", true, true},
		"a star is a key too":        {"/*", "*", true, true},
		"without its first slash":    {"token", "token", true, true},
		"the empty key":              {"/", "", true, true},
		"a key that is none of ours": {"/a", "", false, false},
		"half of the way":            {"/a/b/c", "a b", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := approvals.HiddenAt(strings.Fields(c.pointers))
			for key := range strings.SplitSeq(c.path, " ") {
				require.False(t, h.Here())
				h = h.Below(key)
			}
			require.Equal(t, c.here, h.Here())
			require.Equal(t, c.any, h.Any())
		})
	}
	whole := approvals.HiddenAt([]string{""})
	require.True(t, whole.Here())
	require.True(t, whole.Any())
	require.False(t, approvals.HiddenAt(nil).Any())
}
