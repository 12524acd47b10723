package gateway

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/agentrun"
)

// add adds a tool to a server. One that the SDK refuses is not listed.
func add(server *mcp.Server, t *mcp.Tool, h mcp.ToolHandler) {
	defer func() { _ = recover() }() // it panics on what it does not take
	server.AddTool(t, h)
}

// listing is what a client is told of a tool: what its server said of it, under the
// name by which an agent of ours would call it. A tool that is not as it was
// accepted is not listed. Before [anyJSON], a client can read none of the tools if one of
// them has results that are no objects.
func listing(t Tool, version string) (*mcp.Tool, bool) {
	if t.Available() != nil {
		return nil, false
	}
	var listed mcp.Tool
	if err := json.Unmarshal(t.Defined(), &listed); err != nil {
		return nil, false
	}
	spec := t.Spec()
	out := &mcp.Tool{
		Name: agentrun.CallableName(spec.Name), Title: listed.Title, Description: spec.Description,
		InputSchema: spec.Schema, Annotations: listed.Annotations,
	}
	object, _ := listed.OutputSchema.(map[string]any)
	if listed.OutputSchema != nil && (version >= anyJSON || object["type"] == "object") {
		out.OutputSchema = listed.OutputSchema
	}
	return out, true
}
