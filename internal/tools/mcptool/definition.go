package mcptool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/argschema"
)

// A Definition is a tool as its server described it.
type Definition struct {
	Name string
	// Raw is the object that the server sent, without the space between its
	// tokens, and else byte for byte.
	Raw json.RawMessage
	// Digest is the SHA-256 of Raw.
	Digest string

	description string
	schema      json.RawMessage
	judged      argschema.Schema
	annotations annotations
	onlyTasks   bool // the server refuses every call that is not a task
}

type annotations struct {
	ReadOnlyHint    *bool `json:"readOnlyHint"`
	DestructiveHint *bool `json:"destructiveHint"`
	IdempotentHint  *bool `json:"idempotentHint"`
	OpenWorldHint   *bool `json:"openWorldHint"`
}

// toolName is what MCP recommends for the name of a tool, see
// https://modelcontextprotocol.io/specification/2025-11-25/server/tools.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_./-]{1,128}$`)

// maxDescription is how much of a description a model reads.
const maxDescription = 8 << 10

// recased returns a key of an object that is one of those that are known but for the case
// of its letters, or nothing if there is none. Some readers take it for that, among them
// encoding/json, and others do not.
func recased(object json.RawMessage, known ...string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(object, &fields) // what is no object has no keys
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, key) && slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			return key
		}
	}
	return ""
}

// readDefinition reads a tool of a server. With an error the tool cannot be
// used; Name, Raw and Digest are set as far as they are known.
func readDefinition(raw json.RawMessage) (Definition, error) {
	var d Definition
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return d, fmt.Errorf("it is not JSON: %w", err)
	}
	sum := sha256.Sum256(compact.Bytes())
	d.Raw, d.Digest = compact.Bytes(), "sha256:"+hex.EncodeToString(sum[:])
	var wire struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	}
	err := json.Unmarshal(d.Raw, &wire)
	d.Name = wire.Name
	switch {
	case err != nil:
		return d, fmt.Errorf("it is not a tool: %w", err)
	case !toolName.MatchString(wire.Name):
		return d, errors.New("its name is not made of 1 to 128 letters, digits, _, -, . or /")
	case len(d.Raw) > maxDefinition:
		return d, fmt.Errorf("its definition has %d bytes, more than %d", len(d.Raw), maxDefinition)
	}
	if err := approvals.CheckArgs(d.Raw); err != nil {
		return d, fmt.Errorf("its definition can be read in two ways: %w", err)
	}
	key := cmp.Or(recased(d.Raw, "name", "description", "inputSchema", "annotations"), recased(wire.InputSchema, "type"),
		recased(wire.Annotations, "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"))
	if key != "" {
		return d, fmt.Errorf("its definition can be read in two ways: the key %q has letters of the wrong case", key)
	}
	if len(wire.Annotations) > 0 {
		if err := json.Unmarshal(wire.Annotations, &d.annotations); err != nil {
			return d, fmt.Errorf("its annotations cannot be read: %w", err)
		}
	}
	var object struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(wire.InputSchema, &object); err != nil || object.Type != "object" {
		return d, errors.New("its inputSchema is not the schema of an object")
	}
	if d.judged, err = argschema.Compile(wire.InputSchema); err != nil {
		return d, fmt.Errorf("its inputSchema cannot be judged: %w", err)
	}
	d.onlyTasks = needsTask(d.Raw)
	d.schema = wire.InputSchema
	if !hasProperties(d.schema) {
		d.schema = withProperties(d.schema)
	}
	d.description = clip(approvals.Visible(wire.Description), maxDescription)
	return d, nil
}

// needsTask reports whether a tool runs only as a task, see
// https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks.
func needsTask(raw json.RawMessage) bool {
	var wire struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	return json.Unmarshal(raw, &wire) == nil && wire.Execution.TaskSupport == "required"
}

// hasProperties reports whether the schema has the key that the parameters of a
// function need, even with nothing in it.
func hasProperties(schema json.RawMessage) bool {
	var s map[string]json.RawMessage
	return json.Unmarshal(schema, &s) == nil && s["properties"] != nil
}

func withProperties(schema json.RawMessage) json.RawMessage {
	inside := bytes.TrimSpace(schema)
	return slices.Concat([]byte(`{"properties":{},`), inside[1:])
}

// hints are the annotations that count: those that make us more careful, and
// all of them if the operator trusts the server.
func (d Definition) hints(trusted bool) agentrun.Annotations {
	is := func(b *bool) bool { return b != nil && *b }
	a := d.annotations
	if trusted {
		return agentrun.Annotations{
			ReadOnlyHint: is(a.ReadOnlyHint), DestructiveHint: a.DestructiveHint,
			IdempotentHint: is(a.IdempotentHint), OpenWorldHint: a.OpenWorldHint,
		}
	}
	only := func(b *bool) *bool {
		if is(b) {
			return b
		}
		return nil
	}
	return agentrun.Annotations{DestructiveHint: only(a.DestructiveHint), OpenWorldHint: only(a.OpenWorldHint)}
}

// clip cuts text to so many bytes, between two characters, and says so.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" [cut: the first %d of %d bytes]", limit, len(s))
}
