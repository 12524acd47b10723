package main

import (
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/config"
)

// A copy of Redis has what was approved when it was made and had not run. When a bot starts
// on it, such calls run, perhaps for the second time, unless the policy denies them by
// then, as docs/operate.md has it.
func TestARestoredCopyRunsNothingThatThePolicyDenies(t *testing.T) {
	const again = "An older copy of our records was restored. Ask again."
	for name, c := range map[string]struct {
		policy string
		said   string // by the agent, which repeats what it reads
		paid   bool
	}{
		"a policy that denies everything": {oneOfSRE + "rules: [{name: restored, deny: " + again + "}]\n", again, false},
		"the same policy":                 {oneOfSRE, "receipt 7", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.withMortalBank("mortal")
			b.set("mortal", false)
			first := w.start()
			root := w.sim.ask("call bank.pay", "")
			card := w.sim.await(bob, root, "the request", asked("bank.pay"))
			first.kill()
			w.approves(card, "bank.pay")
			require.NoFileExists(t, filepath.Join(b.folder, "paid"))

			read, err := config.Read(w.config)
			require.NoError(t, err)
			writePolicy(t, filepath.Dir(read.Policy), c.policy)
			w.start()
			w.sim.await(alice, root, "the answer", says("It said: ", c.said))
			if c.paid {
				require.Equal(t, 1, b.payments())
			} else {
				require.NoFileExists(t, filepath.Join(b.folder, "paid"))
			}
		})
	}
}

// approves has Bob approve a call while the bot does no due work.
func (w *world) approves(card message, call string) {
	w.t.Helper()
	ctx := w.t.Context()
	c, err := config.Read(w.config)
	require.NoError(w.t, err)
	e, err := config.ReadEnvironment(w.env)
	require.NoError(w.t, err)
	handler, end, err := front(ctx, c, e, slog.New(slog.DiscardHandler))
	require.NoError(w.t, err)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", w.addr)
	require.NoError(w.t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(l) })
	require.Empty(w.t, w.sim.click(bob, card, call, "Approve").VisibleError)
	require.NoError(w.t, server.Shutdown(ctx))
	require.ErrorIs(w.t, serving.Wait(), http.ErrServerClosed)
	require.NoError(w.t, end())
}
