package demo

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

// The bot is given the port of the chats, which nobody can take before it listens there.
func TestNobodyTakesThePortOfTheChatsBeforeTheBotListens(t *testing.T) {
	served := false
	serve := func(ctx context.Context, _, agents net.Listener, c config.Config, _ config.Environment, _ config.ToolsFor, _ func(), _ *slog.Logger) error {
		served = true
		require.Equal(t, c.HTTP.Listen, agents.Addr().String())
		_, err := new(net.ListenConfig).Listen(ctx, "tcp", c.HTTP.Listen)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		return nil
	}
	require.NoError(t, Run(t.Context(), Options{
		Addr: "127.0.0.1:0", Folder: filepath.Join(t.TempDir(), "work"), Level: "error", Stdout: io.Discard, Stderr: io.Discard, Serve: serve,
	}))
	require.True(t, served)
}
