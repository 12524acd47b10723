package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

// What has ended stays long enough for whoever may still ask about it.
func TestThreadsStayAMonthOrAsTheFileSays(t *testing.T) {
	require.Equal(t, 30*24*time.Hour, config.Retention{}.ThreadAge())
	for text, want := range map[string]time.Duration{"0s": 0, "168h": 7 * 24 * time.Hour, "8760h": 365 * 24 * time.Hour} {
		c, problems := config.Decode([]byte("retention: {threads: " + text + "}\n"))
		require.Empty(t, problems)
		require.Equal(t, want, c.Retention.ThreadAge())
		require.NotContains(t, c.Check().Error(), "retention")
	}
	for _, text := range []string{"1h", "167h", "-1h"} {
		c, problems := config.Decode([]byte("retention: {threads: " + text + "}\n"))
		require.Empty(t, problems)
		require.ErrorContains(t, c.Check(), "retention.threads: must be at least 168h0m0s, or 0s to keep them forever, but is")
	}
	// It can change while the bot runs.
	week := 7 * 24 * time.Hour
	reloaded, restart := config.Config{}.Changes(config.Config{Retention: config.Retention{Threads: &week}})
	require.Equal(t, []string{"retention.threads"}, reloaded)
	require.Empty(t, restart)
}
