package hook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BridgeTool is the name of the permission prompt.
const BridgeTool = "approve"

// bridgeHold is how long a prompt waits: progress messages keep its caller waiting.
const bridgeHold = 23 * time.Hour

// Bridge is the permission prompt of Claude Code over standard input and output:
// a server of MCP that asks the HTTP API as [Run] does. It knows the directory in
// which it was started, which the prompt over HTTP does not. It ends when its
// input does. An answer that is no permission denies.
func Bridge(ctx context.Context, c Config, dir string, every time.Duration, in io.ReadCloser, out io.WriteCloser) error {
	a, err := newAPI(c)
	if err != nil {
		return err
	}
	if c.Hold == 0 {
		c.Hold = bridgeHold
	}
	b := &bridge{c: c, api: a, dir: dir, every: every, session: "bridge-" + rand.Text()}
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name:        BridgeTool,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}},"required":["tool_name","input"]}`),
		Description: "Asks people whether a tool may run, and waits for their decision. It is the permission prompt of an agent, and decides nothing by itself.",
	}, func(asked context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asked, leave := context.WithCancel(asked)
		defer leave()
		defer context.AfterFunc(ctx, leave)() // a session that ends waits for its calls
		return b.call(asked, q)
	})
	ctx, cancel := context.WithCancel(ctx)
	err = server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	cancel()
	b.open.Wait() // what is still asked is withdrawn
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type bridge struct {
	c       Config
	api     *api
	dir     string
	every   time.Duration
	session string // a decision can be found again by this process only

	open sync.WaitGroup
}

// call answers the prompt with exactly one block of text.
func (b *bridge) call(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b.open.Add(1)
	defer b.open.Done()
	stop := b.report(ctx, q)
	v, err := b.decide(ctx, q.Params.Arguments)
	stop()
	text := `{"behavior":"deny","message":"Not run: the answer cannot be written."}`
	if err != nil {
		v = verdict{reason: "Not run: " + err.Error() + ". Nobody denied this call."}
	}
	answer := map[string]any{"behavior": "deny", "message": v.reason}
	if v.allow {
		answer = map[string]any{"behavior": "allow", "updatedInput": v.input}
	}
	if raw, err := encode(answer); err == nil {
		text = string(raw)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// decide asks about the call of a prompt. A panic is an error.
func (b *bridge) decide(ctx context.Context, raw json.RawMessage) (v verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = verdict{}, fmt.Errorf("a bug in the bridge: %v", p)
		}
	}()
	doc, err := fieldsOf(raw)
	if err != nil {
		return v, fmt.Errorf("the question %w", err)
	}
	q := question{decides: true, session: b.session, cwd: b.dir}
	if err := fields(doc, map[string]*string{"tool_name": &q.tool, "tool_use_id": &q.use}); err != nil {
		return v, err
	}
	if q, err = q.whole(doc["input"]); err != nil {
		return v, err
	}
	c := b.c
	c.until = c.Now().Add(c.Hold)
	v, err = b.api.decide(ctx, c, forms[ClaudeCode], q)
	if v.allow && v.input == nil {
		v.input = q.input
	}
	return v, err
}

// report tells the caller that its call waits, at once and every so often, with
// values that rise.
func (b *bridge) report(ctx context.Context, q *mcp.CallToolRequest) (stop func()) {
	token := q.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(b.every)
		defer tick.Stop()
		for n := 1.0; ; n++ {
			_ = q.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: "waiting for an approval in Slack"})
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
