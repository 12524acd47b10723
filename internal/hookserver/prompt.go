package hookserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/door"
	"github.com/countersign/countersign/internal/intake"
)

// The permission prompt: `--permission-prompt-tool mcp__countersign__approve` of
// Claude Code names PromptTool of a server "countersign" whose URL ends with
// PromptPath.
const (
	PromptPath = "/v1/mcp/permission"
	PromptTool = "approve"
)

const (
	// promptHold is how long a prompt is held: progress keeps its caller waiting.
	promptHold = 23 * time.Hour
	// silentHold is how long a prompt is held whose caller takes no progress: such
	// callers give up after a minute.
	silentHold = 50 * time.Second
)

// promptSchema is what the tool takes.
var promptSchema = json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}},"required":["tool_name","input"]}`)

// Prompt is the handler of [PromptPath]: a server of MCP over streamable HTTP
// with one tool, which keeps no session.
func (s *Server) Prompt() http.Handler {
	handler := mcp.NewStreamableHTTPHandler(s.promptServer, &mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true, Logger: slog.New(slog.DiscardHandler)})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(s.c.Now().Add(s.c.Handling)) // a refusal too waits for the body
		c, status, why := s.door.Agent(r, intake.DoorMCP)
		if why != "" {
			door.Refuse(w, status, why)
			return
		}
		opts, err := readOptions(r.URL.RawQuery)
		if err != nil || opts.deferred {
			http.Error(w, "the URL of the permission prompt may have hold=9m and late=keep, and nothing else", http.StatusBadRequest)
			return
		}
		if !r.URL.Query().Has("hold") {
			opts.hold = promptHold
		}
		body, ok := c.Body(w, r, maxBody)
		if !ok {
			return
		}
		if err := door.CheckMessage(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = control.SetReadDeadline(time.Time{}) // the server reads on to learn whether the client is still there
		_ = control.SetWriteDeadline(s.c.Now().Add(opts.hold + 2*s.c.Handling))
		r.Body = io.NopCloser(bytes.NewReader(body))
		who := prompting{c, opts, door.ReadMessage(w, r, body)}
		s.door.Cancel(who.message.Cancels(c))
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), promptKey{}, who)))
	})
}

type promptKey struct{}

// A prompting is who asks, how long it waits, and with which message.
type prompting struct {
	client  door.Caller
	opts    options
	message door.Message
}

// promptServer is the server of one request.
func (s *Server) promptServer(r *http.Request) *mcp.Server {
	who, ok := r.Context().Value(promptKey{}).(prompting)
	if !ok {
		return nil
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name: PromptTool, InputSchema: promptSchema,
		Description: "Asks people whether a tool may run, and waits for their decision. It is the permission prompt of an agent, and decides nothing by itself.",
	}, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := s.door.Cancelable(ctx, who.message.Name(who.client))
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)() //nolint:contextcheck // its end is that of the connection
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(s.prompt(ctx, q, who))}}}, nil
	})
	return server
}

// prompt answers a prompt. A panic is a denial.
func (s *Server) prompt(ctx context.Context, q *mcp.CallToolRequest, who prompting) (out []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.c.Log.ErrorContext(ctx, "a permission prompt panicked", slog.String("stack", string(debug.Stack())))
			out = promptAnswer(deny("something is wrong with Countersign; its log says more"))
		}
	}()
	call, err := readPrompt(q.Params.Arguments)
	if err != nil {
		return promptAnswer(deny(err.Error()))
	}
	a := asking{until: s.c.Now().Add(who.opts.hold), still: who.client.Still, Ask: intake.Ask{
		Door: intake.DoorMCP, Carries: intake.Carries{Edits: true, Reasons: true, Late: who.opts.keep}, Reuse: true, Calls: []intake.Call{call},
		Trace: door.TraceOf(ctx, q.Params.Meta, q.Extra.Header).Parent(),
	}}
	if call.ID != "call" {
		a.ExternalID = "prompt/" + string(call.ID)
	}
	token := q.Params.GetProgressToken()
	if token == nil {
		a.until = s.c.Now().Add(min(who.opts.hold, silentHold))
		return promptAnswer(s.decide(ctx, who.client.Client, a))
	}
	p := &door.Progress{Every: s.c.Progress, Send: func(n float64, text string) {
		_ = q.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: text})
	}}
	a.tell = p.Tell
	stop := p.Start(ctx)
	defer stop()
	return promptAnswer(s.decide(ctx, who.client.Client, a))
}

// readPrompt reads what a permission prompt is asked.
func readPrompt(raw json.RawMessage) (intake.Call, error) {
	call := intake.Call{ID: "call"}
	if err := door.CheckJSON("the question", raw); err != nil {
		return call, err
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return call, errors.New("the question is not a JSON object")
	}
	var use string
	for key, to := range map[string]*string{"tool_name": &call.Tool, "tool_use_id": &use} {
		if value, there := doc[key]; there && json.Unmarshal(value, to) != nil {
			return call, fmt.Errorf("%s in the question is no text", key)
		}
	}
	if use != "" {
		call.ID = approvals.ToolCallID(use)
	}
	if call.Args = doc["input"]; call.Tool == "" || len(call.Args) == 0 {
		return call, errors.New("the question names no tool or no input")
	}
	return call, nil
}

// promptAnswer is the text that Claude Code reads. What runs is always in it, so
// that nothing but what was approved can run.
func promptAnswer(v verdict) []byte {
	b := behavior{Behavior: "deny", Message: v.reason}
	switch {
	case v.allow:
		b = behavior{Behavior: "allow", Input: v.args}
	case b.Message == "":
		b.Message = "Not run: there is no approval."
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return []byte(`{"behavior":"deny","message":"Not run: Countersign could not write an answer."}`)
	}
	return raw
}
