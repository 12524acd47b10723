package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/gateway"
)

// A caller is a client of MCP. What it hears while its call waits goes to heard.
type caller interface {
	tools() []string
	ask(ctx context.Context, name, args string, heard func(text string, value float64)) <-chan said
}

// clients are those that the gateway is tested with.
func clients() map[string]func(*process) caller {
	return map[string]func(*process) caller{
		"Go 2026-07-28":         func(p *process) caller { return goCaller{p.speaking(token, "2026-07-28")} },
		"Go 2025-11-25":         func(p *process) caller { return goCaller{p.speaking(token, "2025-11-25")} },
		"TypeScript 2025-11-25": func(p *process) caller { return p.typescript() },
	}
}

type goCaller struct{ *client }

func (c goCaller) tools() (names []string) {
	c.Helper()
	got, err := c.session.ListTools(c.Context(), nil)
	require.NoError(c, err)
	for _, t := range got.Tools {
		names = append(names, t.Name)
	}
	return names
}

func (c goCaller) ask(ctx context.Context, name, args string, heard func(string, float64)) <-chan said {
	answer := c.call(ctx, name, args, heard != nil)
	if heard != nil {
		go func() {
			for p := range c.progress {
				heard(p.Message, p.Progress)
			}
		}()
	}
	return answer
}

// A typescript client is the program npm/client.mjs.
type typescript struct {
	*process
	in io.WriteCloser

	mu    sync.Mutex
	last  int
	heard map[int]func(string, float64)
	open  map[int]chan said
	list  map[int]chan []string
}

func (p *process) typescript() *typescript {
	p.Helper()
	require.FileExists(p, filepath.Join("npm", "node_modules", ".package-lock.json"), "run .ci/deps, which installs the packages")
	cmd := exec.CommandContext(p.Context(), "node", filepath.Join("npm", "client.mjs"), p.server.URL, token)
	in, err := cmd.StdinPipe()
	require.NoError(p, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p, err)
	cmd.Stderr = p.Output()
	require.NoError(p, cmd.Start())
	c := &typescript{process: p, in: in, heard: map[int]func(string, float64){}, open: map[int]chan said{}, list: map[int]chan []string{}}
	ready := c.expect(0)
	go func() {
		defer func() { _ = cmd.Wait() }()
		c.read(out)
	}()
	p.Cleanup(func() { _ = in.Close() })
	require.NoError(p, (<-ready).err)
	return c
}

func (c *typescript) expect(id int) <-chan said {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[id] = make(chan said, 1)
	return c.open[id]
}

// read takes what the program says until it ends.
func (c *typescript) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID       int
			Error    string
			Progress *struct {
				Progress float64
				Message  string
			}
			Result json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		c.mu.Lock()
		heard, open := c.heard[m.ID], c.open[m.ID]
		c.mu.Unlock()
		switch {
		case m.Progress != nil:
			heard(m.Progress.Message, m.Progress.Progress)
		case m.Error != "":
			open <- said{err: errors.New(m.Error)}
		default:
			var listed struct{ Tools []struct{ Name string } }
			got := said{CallToolResult: &mcp.CallToolResult{}}
			got.err = json.Unmarshal(m.Result, got.CallToolResult)
			if json.Unmarshal(m.Result, &listed) == nil && len(listed.Tools) > 0 {
				var names []string
				for _, t := range listed.Tools {
					names = append(names, t.Name)
				}
				c.list[m.ID] <- names
			}
			open <- got
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, open := range c.open {
		select {
		case open <- said{err: io.ErrUnexpectedEOF}:
		default:
		}
	}
}

func (c *typescript) send(m map[string]any) {
	raw, _ := json.Marshal(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.in.Write(append(raw, '\n'))
}

func (c *typescript) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.list[c.last] = make(chan []string, 1)
	return c.last
}

func (c *typescript) tools() []string {
	id := c.next()
	answer := c.expect(id)
	c.send(map[string]any{"id": id, "list": true})
	<-answer
	return <-c.list[id]
}

func (c *typescript) ask(ctx context.Context, name, args string, heard func(string, float64)) <-chan said {
	id := c.next()
	c.mu.Lock()
	c.heard[id] = heard
	c.mu.Unlock()
	answer := c.expect(id)
	c.send(map[string]any{"id": id, "call": name, "args": json.RawMessage(args), "progress": heard != nil})
	context.AfterFunc(ctx, func() { c.send(map[string]any{"cancel": id}) })
	return answer
}

func nothing(string, float64) {}

// The same rules hold for every client.
func TestEveryClientIsGated(t *testing.T) {
	for client, of := range clients() {
		t.Run(client, func(t *testing.T) {
			for name, f := range map[string]func(t *testing.T, w *world, of func(*process) caller){
				"allow": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					c := of(p)
					require.Equal(t, []string{"srv_both", "srv_free", "srv_never", "srv_write"}, c.tools())
					answer := c.ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					q := <-p.watch.asked
					require.Empty(t, w.tool("srv.write").executions())
					p.decide(q, "bob", approvals.Approve, "")
					require.Equal(t, "did {\"n\":1}\n", (<-answer).text())
				},
				"deny with a reason": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					answer := of(p).ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					p.decide(<-p.watch.asked, "bob", approvals.Deny, "use the staging table")
					got := <-answer
					require.Contains(t, got.text(), "use the staging table")
					require.True(t, got.IsError)
					require.Empty(t, w.tool("srv.write").executions())
				},
				"edit": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					answer := of(p).ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					q := <-p.watch.asked
					require.NoError(t, p.edit(q, `{"n":2}`))
					p.decide(q, "bob", approvals.Approve, "")
					require.Contains(t, (<-answer).text(), `It was run with: {"n":2}`)
					require.Equal(t, []string{`{"n":2}`}, w.tool("srv.write").executions())
				},
				"approver late": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start(func(c *gateway.Config) { c.Silent = 100 * time.Millisecond })
					require.Contains(t, (<-of(p).ask(t.Context(), "srv_write", `{"n":1}`, nil)).text(), "Call again with exactly the same arguments")
					p.decide(<-p.watch.asked, "bob", approvals.Approve, "")
					require.Empty(t, w.tool("srv.write").executions(), "nobody waits")
					patient := of(w.start()) // it holds calls until the result is there, however slow the machine is
					require.Equal(t, "did {\"n\":1}\n", (<-patient.ask(t.Context(), "srv_write", `{"n":1}`, nil)).text())
				},
				"restarted while held": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					answer := of(p).ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					q := <-p.watch.asked
					p.gateway.Drain()
					require.Contains(t, (<-answer).text(), "Pending")
					p.stop()
					next := w.start()
					next.decide(q, "bob", approvals.Approve, "")
					require.Empty(t, w.tool("srv.write").executions())
					require.Equal(t, "did {\"n\":1}\n", (<-of(next).ask(t.Context(), "srv_write", `{"n":1}`, nothing)).text())
				},
				"asked twice on two replicas": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p, other := w.start(), w.start()
					first := of(p).ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					q := <-p.watch.asked
					second := of(other).ask(t.Context(), "srv_write", `{"n":1}`, nothing)
					require.Equal(t, q.ID, (<-other.watch.asked).ID)
					p.decide(q, "bob", approvals.Approve, "")
					require.Equal(t, "did {\"n\":1}\n", (<-first).text())
					require.Equal(t, "did {\"n\":1}\n", (<-second).text())
					require.Len(t, w.tool("srv.write").executions(), 1)
				},
				"client gone": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					ctx, leave := context.WithCancel(t.Context())
					answer := of(p).ask(ctx, "srv_write", `{"n":1}`, nothing)
					q := <-p.watch.asked
					leave()
					require.Error(t, (<-answer).err)
					require.Equal(t, q.ID, <-p.watch.gone)
					require.Equal(t, approvals.Withdrawn, p.batch(q).Status)
				},
				"a quorum of two": func(t *testing.T, w *world, of func(*process) caller) {
					t.Helper()
					p := w.start()
					texts := make(chan string, 1000)
					last := 0.0
					answer := of(p).ask(t.Context(), "srv_both", `{"n":1}`, func(text string, value float64) {
						if value <= last {
							text = "values do not rise"
						}
						last = value
						texts <- text
					})
					q := <-p.watch.asked
					for _, left := range []string{"2", "1"} {
						want := "waiting for " + left + " of 2 approvals in Slack, request " + string(q.ID)
						for text := range texts {
							require.NotEqual(t, "values do not rise", text)
							if text == want {
								break
							}
						}
						p.decide(q, map[string]approvals.UserID{"2": "bob", "1": "dora"}[left], approvals.Approve, "")
					}
					require.Contains(t, (<-answer).text(), "did")
				},
			} {
				t.Run(name, func(t *testing.T) { f(t, newWorld(t), of) })
			}
		})
	}
}
