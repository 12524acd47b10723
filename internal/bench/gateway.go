package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/tools/mcptool"
)

const gatewayAbout = `A permitted call of a tool through the gateway, which forwards it to an MCP server: one that writes, with the journal and the barrier
that keep it from running twice, and one whose effect is "pure", each a new call. The floors are proxies in front of the same server.
CPU is less that of the load and the MCP server. The first column is requests per second, in proportion to the row's.`

// The tools of the MCP server.
const (
	lookUp = "read_report"
	writes = "archive_report"
)

// gateway measures calls that the configuration permits, through the gateway.
func (b *bench) gateway(ctx context.Context) (err error) {
	n := max(atLeast(b, 64, 16), int(b.Length.Seconds()*500))
	b.said("gateway: %d calls, %d rounds", n, b.Rounds)
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	server, err := running.serve(ctx, reports())
	if err != nil {
		return err
	}
	c := b.configuration(b.fresh())
	if err := b.behindGateway(ctx, &c, "http://"+server); err != nil {
		return err
	}
	r, err := b.replica(ctx, c)
	if err != nil {
		return err
	}
	running.after(r.end)
	called := 0
	calls := func(path, tool string, n int) func(int) ([]request, error) {
		return func(int) ([]request, error) {
			sent := make([]request, n)
			for i := range sent {
				called++
				sent[i] = b.toolCall(path, tool, called)
			}
			return sent, nil
		}
	}
	p, err := b.parts(&running)
	if err != nil {
		return err
	}
	const itself, ours = "the MCP server itself", "gateway, pure"
	all := []subject{{name: itself, addrs: []string{server}, conns: connections, sent: calls("/", lookUp, n)}}
	for _, f := range []struct {
		name   string
		before func(r *http.Request) error
	}{
		{"a reverse proxy", func(*http.Request) error { return nil }},
		{"and one script", func(r *http.Request) error {
			return p.commit(r.Context(), r.Header.Get("Id"), r.Header.Get("Id"), "{}")
		}},
	} {
		addr, err := running.serve(ctx, proxy("http://"+server, f.before))
		if err != nil {
			return err
		}
		all = append(all, subject{name: f.name, addrs: []string{addr}, conns: connections, sent: calls("/", lookUp, n)})
	}
	const path = "/v1/mcp/gateway"
	for _, x := range []struct {
		name, tool string
		conns, n   int
	}{
		{"gateway, pure, one at a time", "reports_" + lookUp, 1, n / 4},
		{"gateway", "reports_" + writes, connections, n},
		{ours, "reports_" + lookUp, connections, n},
	} {
		all = append(all, subject{name: x.name, addrs: []string{r.agents}, conns: x.conns, sent: calls(path, x.tool, x.n)})
	}
	for i := range all {
		all[i].want = "report is here"
	}
	return b.compared(ctx, Table{Name: "gateway", About: gatewayAbout}, itself, []versus{{"pure / it", ours}, {"gateway / it", "gateway"}}, all)
}

// behindGateway has the bot serve the tools of the MCP server, and let them run.
func (b *bench) behindGateway(ctx context.Context, c *config.Config, at string) error {
	const name, server = "desk", "reports"
	permitted := config.Approval{Kind: config.ApprovalNone}
	c.Gateways = []config.Gateway{{
		Name: name, Channel: ops, OpenLimit: unlimited, PerMinute: unlimited,
		MCP:     map[string]config.MCPServer{server: {URL: at}},
		Clients: []config.GatewayClient{{Owner: alice, Tokens: []string{fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(b.token(coders))))}}},
		Tools: map[string]config.Tool{
			server + "." + lookUp: {Approval: permitted, Effect: agentrun.EffectPure},
			server + "." + writes: {Approval: permitted},
		},
	}}
	c.MCPLock = filepath.Join(b.folder, "mcp.lock")
	listed, err := mcptool.List(ctx, mcptool.Server{Agent: name, Name: server, URL: at}, b.log())
	if err != nil {
		return err
	}
	var accepted []mcptool.Definition
	for _, l := range listed {
		accepted = append(accepted, l.Definition)
	}
	var pins mcptool.Pins
	pins.Accept(mcptool.Place{Agent: name, Server: server}, accepted)
	return os.WriteFile(c.MCPLock, pins.Lock(), 0o600)
}

// reports is an MCP server with tools that do nothing.
func reports() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "reports", Version: "1"}, nil)
	for _, name := range []string{lookUp, writes} {
		server.AddTool(&mcp.Tool{
			Name: name, Description: "Does something with a report.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"report":{"type":"string"}},"required":["report"]}`),
		}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "The report is here."}}}, nil
		})
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// proxy calls before with each request, and then forwards the request.
func proxy(to string, before func(r *http.Request) error) http.Handler {
	target, _ := url.Parse(to) // it is ours
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: connections},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := before(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		forward.ServeHTTP(w, r)
	})
}

// toolCall is a call as a client sends it. Its number is in a header too, for a proxy
// that does not read the body.
func (b *bench) toolCall(path, tool string, n int) request {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"report":"report-%d"}}}`, n, tool, n)
	return newRequest(path, map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + b.token(coders),
		"Mcp-Protocol-Version": "2025-06-18", "Id": fmt.Sprint(n),
	}, []byte(body))
}
