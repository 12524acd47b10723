package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
)

// SIGHUP takes up what can change while the bot runs, all of a file or nothing of
// it, and the log says which.
func TestAFileIsTakenUpWholeOrNotAtAll(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	b := i.bot()
	var said strings.Builder
	b.log = config.NewLogger(&said, "info")
	edit := func(old, by string) {
		t.Helper()
		said.Reset()
		i.replace(old, by)
		require.NoError(t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
		b.reload(t.Context())
	}
	instructions := func() string {
		a, ok := b.agents.agent("ops")
		require.True(t, ok)
		return a.Instructions
	}
	edit("files: reports", "files: reports")
	require.Contains(t, said.String(), "the configuration has not changed")
	edit("files: reports", "files: reports\n    instructions: Be brief.\n    limits: {requests: 3}")
	require.Contains(t, said.String(), `keys="[agents[0].instructions agents[0].limits.requests]"`)
	require.Equal(t, "Be brief.", instructions())

	edit("Be brief.", "Be long.\n    replies: all")
	require.Contains(t, said.String(), "nothing of it was loaded")
	require.Contains(t, said.String(), "keys=[agents[0].replies]")
	require.Equal(t, "Be brief.", instructions())
	edit("\n    replies: all", "\n    repleis: all")
	require.Contains(t, said.String(), "the previous one stays active")
	require.Contains(t, said.String(), "repleis")
	require.Equal(t, "Be brief.", instructions())
	edit("\n    repleis: all", "")
	require.Equal(t, "Be long.", instructions())
}
