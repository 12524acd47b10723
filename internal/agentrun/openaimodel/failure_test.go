package openaimodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

func TestRetryAfterIsHonoured(t *testing.T) {
	for name, tt := range map[string]struct {
		header string
		want   time.Duration
	}{
		"seconds":          {"7", 7 * time.Second},
		"parts of seconds": {"1.5", 1500 * time.Millisecond},
		"a date":           {"Sat, 01 Mar 2025 12:00:09 GMT", 9 * time.Second},
		"far too long":     {"86400", time.Minute},
		"a far date":       {"Sat, 08 Mar 2025 12:00:00 GMT", time.Minute},
		"beyond numbers":   {"1e300", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []openaisim.FaultKind{openaisim.RateLimited, openaisim.Unavailable} {
				sim := openaisim.New(always(openaisim.Reply{Text: "Hello."}))
				sim.Fail(openaisim.Fault{Kind: kind, RetryAfter: tt.header})
				m := newBench(t, sim)
				_, err := m.Request(t.Context(), ask("hi"))
				require.NoError(t, err)
				require.Equal(t, []time.Duration{tt.want}, m.waited())
			}
		})
	}
}
