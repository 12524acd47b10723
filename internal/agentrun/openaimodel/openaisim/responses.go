package openaisim

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// responses answers a request to the Responses API, with the same stories.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	body, ok := s.receive(w, r)
	if !ok {
		return
	}
	request, p := decodeResponses(body)
	if p != nil {
		writeProblem(w, p, "")
		return
	}
	var ran []outputItem
	reply, fault, ok := s.scripted(w, func() Reply {
		var conversation chatRequest
		ran, conversation = s.approved(request)
		return s.reply(conversation)
	})
	if ok {
		deliverResponse(w, r, request, s.respond(request, body, ran, reply, fault), fault)
	}
}

// approved makes the calls that the request approves, and returns them as items with
// the conversation as the stories read it.
func (s *Server) approved(r responsesRequest) ([]outputItem, chatRequest) {
	c := chatRequest{Model: r.Model, ParallelToolCalls: r.ParallelToolCalls}
	for _, name := range r.callable() {
		t := tool{Type: "function"}
		t.Function = &struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		}{Name: name}
		c.Tools = append(c.Tools, t)
	}
	var ran []outputItem
	asked := map[string]inputItem{}
	for _, it := range r.items {
		switch it.Type {
		case "message":
			c.add(message{Role: it.Role, Content: it.Content})
		case "function_call":
			c.call(it.CallID, it.Name, *it.Arguments)
		case "function_call_output":
			c.add(message{Role: "tool", ToolCallID: it.CallID, Content: quote(*it.Output)})
		case "mcp_approval_request":
			asked[it.ID] = it
			c.call(it.ID, it.ServerLabel+"."+it.Name, *it.Arguments)
		case "mcp_approval_response":
			q, said := asked[it.ApprovalRequestID], "The call was denied. "+it.Reason
			if *it.Approve {
				item := s.make(q.ServerLabel, q.Name, *q.Arguments, q.ID)
				ran, said = append(ran, item), item.result()
			}
			c.add(message{Role: "tool", ToolCallID: q.ID, Content: quote(said)})
		case "mcp_call":
			c.call(it.ID, it.ServerLabel+"."+it.Name, *it.Arguments)
			c.add(message{Role: "tool", ToolCallID: it.ID, Content: quote(outputItem{Output: it.Output, Error: it.Error}.result())})
		}
	}
	return ran, c
}

func (r *chatRequest) add(m message) { r.Messages = append(r.Messages, m) }

// call adds a call to the message of the assistant that is the last, or to a new one.
func (r *chatRequest) call(id, name, args string) {
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != "assistant" {
		r.add(message{Role: "assistant"})
	}
	last := &r.Messages[len(r.Messages)-1]
	c := requestCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, &args
	last.ToolCalls = append(last.ToolCalls, c)
}

// make makes a call of a hosted tool.
func (s *Server) make(server, tool, args, approval string) outputItem {
	item := outputItem{
		Type: "mcp_call", ID: "mcp_" + rand.Text(), ServerLabel: server, Name: tool, Arguments: &args, Status: "completed",
	}
	if approval != "" {
		item.ApprovalRequestID = &approval
	}
	item.Output, item.Error = s.run(HostedCall{server, tool, args, approval})
	if item.Error != nil {
		item.Status = "failed"
	}
	return item
}

// respond returns the answer as the response that it is.
func (s *Server) respond(r responsesRequest, body []byte, ran []outputItem, reply Reply, f Fault) response {
	reply, finish := f.bend(reply)
	a := response{
		ID: "resp_" + rand.Text(), Object: "response", CreatedAt: created, Status: "completed", Model: ModelName,
		Instructions: r.Instructions, Output: []outputItem{}, ParallelToolCalls: true, Store: r.Store == nil || *r.Store,
		ToolChoice: "auto", Tools: []echoedTool{}, Text: textFormat{Format: map[string]string{"type": "text"}},
	}
	for _, t := range r.Tools { // what authorizes the provider at a server is not sent back
		a.Tools = append(a.Tools, echoedTool{Type: t.Type, Name: t.Name, Parameters: t.Parameters, ServerLabel: t.ServerLabel, AllowedTools: t.AllowedTools})
		listed := slices.ContainsFunc(r.items, func(it inputItem) bool { return it.Type == "mcp_list_tools" && it.ServerLabel == t.ServerLabel })
		if t.Type == "mcp" && !listed {
			a.Output = append(a.Output, listing(t))
		}
	}
	a.Output = append(a.Output, ran...)
	if f.Kind != NoChoices && f.Kind != Empty {
		a.Output = append(a.Output, s.said(r, reply)...)
	}
	switch finish {
	case "length":
		a.Status, a.IncompleteDetails = "incomplete", &incomplete{"max_output_tokens"}
	case "content_filter":
		a.Status, a.IncompleteDetails = "incomplete", &incomplete{"content_filter"}
	}
	said := 0
	for _, item := range a.Output {
		said += len(item.Name)
		if item.Arguments != nil {
			said += len(*item.Arguments)
		}
	}
	said += len(reply.Text)
	a.Usage = responseUsage{InputTokens: tokens(len(body)), OutputTokens: tokens(said)}
	a.Usage.TotalTokens = a.Usage.InputTokens + a.Usage.OutputTokens
	return a
}

// said are the items of a reply: reasoning, the text, and the calls.
func (s *Server) said(r responsesRequest, reply Reply) []outputItem {
	thought := "rs_" + rand.Text()
	out := []outputItem{{Type: "reasoning", ID: thought, Summary: &[]any{}, EncryptedContent: sealed(thought)}}
	if reply.Text != "" || len(reply.Calls) == 0 {
		out = append(out, outputItem{
			Type: "message", ID: "msg_" + rand.Text(), Status: "completed", Role: "assistant",
			Content: []outputText{{Type: "output_text", Text: reply.Text, Annotations: []any{}}},
		})
	}
	for _, c := range reply.Calls {
		label, name, dotted := strings.Cut(c.Name, ".")
		server := r.server(label)
		switch {
		case dotted && server != nil && (!server.asks(name) || s.skips(c.Name)):
			out = append(out, s.make(label, name, c.Args, ""))
		case dotted && server != nil:
			out = append(out, outputItem{Type: "mcp_approval_request", ID: hostedID(c.ID), ServerLabel: label, Name: name, Arguments: &c.Args})
		default:
			if c.ID == "" {
				c.ID = callID()
			}
			out = append(out, outputItem{Type: "function_call", ID: "fc_" + rand.Text(), Status: "completed", CallID: c.ID, Name: c.Name, Arguments: &c.Args})
		}
	}
	return out
}

func hostedID(id string) string {
	if id != "" {
		return id
	}
	return "mcpr_" + rand.Text()
}

// sealed is the reasoning of an item, as only the provider can read it.
func sealed(id string) string { return "scripted:" + id }

// listing is what the provider has found on a server.
func listing(t responsesTool) outputItem {
	tools := []any{}
	for _, name := range t.AllowedTools {
		tools = append(tools, map[string]any{
			"name": name, "description": "Scripted.", "annotations": nil, "input_schema": map[string]any{"type": "object", "properties": map[string]any{}},
		})
	}
	return outputItem{Type: "mcp_list_tools", ID: "mcpl_" + rand.Text(), ServerLabel: t.ServerLabel, Tools: tools}
}
