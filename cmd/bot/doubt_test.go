package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

// mortalBank makes the test binary a server over stdio, whose argument is a folder.
const mortalBank = "mortal-bank"

// serveMortalBank is a server whose tool writes down each payment in the folder. As
// long as the file "mortal" is there, it dies before it answers, and as long as the
// file "slow" is there, it does not answer.
func serveMortalBank(folder string) error {
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	s := mcp.NewServer(&mcp.Implementation{Name: mortalBank, Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "pay", Description: "Pays.", InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f, err := os.OpenFile(filepath.Join(folder, "paid"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			if _, err := f.WriteString("paid\n"); err != nil {
				return nil, err
			}
			switch {
			case there("mortal"):
				os.Exit(1)
			case there("slow"):
				<-ctx.Done()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "receipt 7"}}}, f.Close()
		})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// A till is what a mortal bank wrote down, and how it behaves.
type till struct {
	t      *testing.T
	folder string
}

// withMortalBank gives the agent of the world that bank.
func (w *world) withMortalBank(behaves string) till {
	w.t.Helper()
	program, err := os.Executable() // see TestMain
	require.NoError(w.t, err)
	b := till{w.t, w.t.TempDir()}
	b.set(behaves, true)
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, strings.Replace(string(old), "{name: ops,",
		fmt.Sprintf("{name: ops, mcp: {bank: {command: %q, args: [%q, %q], env: {GORACE: GORACE}}},", program, mortalBank, b.folder), 1))
	w.env = append(w.env, "GORACE=atexit_sleep_ms=0") // it need not sleep before it exits
	w.model = openaisim.New(calls())
	require.NoError(w.t, w.pins("accept"))
	return b
}

func (b till) set(behaves string, on bool) {
	b.t.Helper()
	path := filepath.Join(b.folder, behaves)
	if on {
		require.NoError(b.t, os.WriteFile(path, nil, 0o600))
		return
	}
	require.NoError(b.t, os.Remove(path))
}

// awaitPayment waits until the tool has been called.
func (b till) awaitPayment() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		written, err := os.Stat(filepath.Join(b.folder, "paid"))
		return err == nil && written.Size() > 0
	}, time.Minute, 10*time.Millisecond)
}

func (b till) payments() int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.folder, "paid"))
	require.NoError(b.t, err)
	return strings.Count(string(text), "\n")
}

// doubt lets Alice ask for a payment, Bob approve it and the server die, and returns
// the card that asks about it.
func (w *world) doubt() (root string, card message) {
	w.t.Helper()
	root = w.sim.ask("call bank.pay", "")
	first := w.sim.await(bob, root, "the request", asked("bank.pay"))
	require.Empty(w.t, w.sim.click(bob, first, "bank.pay", "Approve").VisibleError)
	return root, w.sim.await(bob, root, "the doubt", func(m message) bool {
		return says("This call may or may not have taken effect.", "The connection to the server ended before it answered.")(m) && len(m.buttons("")) > 0
	})
}

var aRun = regexp.MustCompile(`run-\d\d-[0-9a-f-]+`)

// A server dies in the middle of a call: it is not called again before people
// decide, an operator cannot end what they decide about, and the run continues with
// their decision.
func TestPeopleDecideWhenAServerDiesInACall(t *testing.T) {
	for answer, c := range map[string]struct {
		payments int
		said     []string // by the agent, which repeats what it reads
	}{
		"It happened":  {1, []string{"A person says that it took effect.", "receipt 7 is in the books"}},
		"Give up":      {1, []string{"It is not known whether this tool call took effect.", "receipt 7 is in the books"}},
		"Run it again": {2, []string{"receipt 7"}},
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.withMortalBank("mortal")
			p := w.start()
			root, card := w.doubt()
			require.Equal(t, 1, b.payments())
			run := aRun.FindString(p.out.String())
			_, err := w.admin("abandon", run)
			require.ErrorContains(t, err, "continues it, and is deferred", "people are asked")
			listed, err := w.admin("list", "--in-doubt")
			require.NoError(t, err)
			require.Regexp(t, `bank.pay pending \(rule [^)]+\), in doubt since \d{4}-.*\n1 request waits with a call in doubt\n$`, listed)

			b.set("mortal", false)
			require.Empty(t, w.sim.click(bob, card, "", answer).VisibleError)
			if views := w.sim.views(bob); answer != "Run it again" {
				require.Len(t, views, 1)
				w.sim.submit(bob, views[0], "receipt 7 is in the books")
			}
			w.sim.await(alice, root, "the answer", says(append(c.said, "It said: ")...))
			require.Equal(t, c.payments, b.payments())
			listed, err = w.admin("list", "--in-doubt", "--json")
			require.NoError(t, err)
			require.JSONEq(t, "[]", listed)
			require.NoError(t, p.term())
		})
	}
}

// The bot dies within a call, and before another takes over an operator ends the
// run: the thread says that nothing is known, nobody is asked, and the call is not
// made again.
func TestAnOperatorEndsARunThatDiedInACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.withMortalBank("slow")
	first := w.start()
	root := w.sim.ask("call bank.pay", "")
	card := w.sim.await(bob, root, "the request", asked("bank.pay"))
	require.Empty(t, w.sim.click(bob, card, "bank.pay", "Approve").VisibleError)
	b.awaitPayment()
	first.kill()

	started := startedCall.FindStringSubmatch(first.out.String())
	require.NotNil(t, started)
	var said string
	require.Eventually(t, func() bool { // as soon as the lease of the dead process is over
		out, err := w.admin("abandon", started[3], "--json")
		said = out
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	require.JSONEq(t, `{"run":"`+started[3]+`","state":"abandoned"}`, said)
	b.set("slow", false)
	second := w.start()
	w.sim.await(alice, root, "the end", says("An operator ended this run. It is not known whether the calls without a result happened."))
	for _, m := range w.sim.thread(bob, root) {
		require.Empty(t, m.buttons(""), m.words())
	}
	require.Equal(t, 1, b.payments())
	require.NoError(t, second.term())
	requireOnce(t, first, second)
}

// A bot that is stopped within a call waits for it as long as a stop may take. Then it
// ends without an error, and people are asked what became of the call.
func TestAStopWithinALongCallIsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.withMortalBank("slow")
	first := w.start()
	root := w.sim.ask("call bank.pay", "")
	card := w.sim.await(bob, root, "the request", asked("bank.pay"))
	require.Empty(t, w.sim.click(bob, card, "bank.pay", "Approve").VisibleError)
	b.awaitPayment()
	require.NoError(t, first.term(), first.out)

	second := w.start()
	w.sim.await(bob, root, "the doubt", says("This call may or may not have taken effect."))
	require.Equal(t, 1, b.payments())
	require.NoError(t, second.term())
	requireOnce(t, first, second)
}
