package argschema_test

import (
	"encoding/json"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/argschema"
)

const bounded = `{"type": "object", "properties": {"cents": {"type": "integer", "maximum": 9007199254740992}}, "required": ["cents"], "additionalProperties": false}`

func TestNumbersAreJudgedByTheirDigits(t *testing.T) {
	s, err := argschema.Compile(json.RawMessage(bounded))
	require.NoError(t, err)
	wrong, err := s.Judge(json.RawMessage(`{"cents": 9007199254740992}`))
	require.NoError(t, err)
	require.Empty(t, wrong)
	wrong, err = s.Judge(json.RawMessage(`{"cents": 9007199254740993}`))
	require.NoError(t, err)
	require.Len(t, wrong, 1)
	require.Equal(t, []string{"cents"}, wrong[0].At)
	require.Equal(t, []string{"maximum"}, wrong[0].Keyword)
}

// The reason why there are two schema libraries: the one that derives schemas
// does not see what is one too much. Once this fails, one is enough.
func TestTheLibraryThatDerivesSchemasJudgesNumbersAsFloats(t *testing.T) {
	var s google.Schema
	require.NoError(t, json.Unmarshal([]byte(bounded), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	var args any
	require.NoError(t, json.Unmarshal([]byte(`{"cents": 9007199254740993}`), &args))
	require.NoError(t, resolved.Validate(args))
	require.Error(t, resolved.Validate(map[string]any{"cents": json.Number("9007199254740992")}), "it takes digits for a text")
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	s, err := argschema.Compile(json.RawMessage(bounded))
	require.NoError(t, err)
	wrong, err := s.Judge(json.RawMessage(`{"x/y": 1}`))
	require.NoError(t, err)
	require.ElementsMatch(t, []argschema.Violation{
		{At: []string{}, Keyword: []string{"required"}, Missing: []string{"cents"}, Words: "missing property 'cents'"},
		{At: []string{}, Keyword: []string{"additionalProperties"}, Unknown: []string{"x/y"}, Words: "additional properties 'x/y' not allowed"},
	}, wrong)
	wrong, err = s.Judge(json.RawMessage(`{"cents": "1"}`))
	require.NoError(t, err)
	require.Equal(t, []argschema.Violation{{At: []string{"cents"}, Keyword: []string{"type"}, Words: "got string, want integer", Discreet: true}}, wrong)
	_, err = s.Judge(json.RawMessage(`{`))
	require.ErrorContains(t, err, "not JSON")
}

func TestNothingIsLoaded(t *testing.T) {
	for schema, want := range map[string]string{
		`{`:                                   "not JSON",
		`{"type": 5}`:                         "compile schema",
		`{"$ref": "https://example.com/x"}`:   "may not refer to",
		`{"$ref": "file:///etc/passwd"}`:      "may not refer to",
		`{"$ref": "other.json#/$defs/thing"}`: "may not refer to",
	} {
		_, err := argschema.Compile(json.RawMessage(schema))
		require.ErrorContains(t, err, want, schema)
	}
}

// The library panics at such numbers, or takes minutes for a list of them. An MCP server
// could end the bot with one in the schema of a tool.
func TestANumberWithALargeExponentFitsNoSchema(t *testing.T) {
	for _, keyword := range []string{`"multipleOf": 1e99999999`, `"minimum": 1e99999999`, `"enum": [1, {"a": 1e-1001}]`, `"default": 1E+99999999999999999999`} {
		_, err := argschema.Compile(json.RawMessage(`{"type": "object", "properties": {"n": {` + keyword + `}}}`))
		require.EqualError(t, err, "the schema has a number that is too large or too small", keyword)
	}
	for _, keyword := range []string{`"multipleOf": 3`, `"minimum": 0`, `"exclusiveMaximum": 1`, `"type": "integer"`, `"enum": [1]`, `"title": "anything"`} {
		s, err := argschema.Compile(json.RawMessage(`{"type": "object", "properties": {"n": {"items": {` + keyword + `}}}}`))
		require.NoError(t, err)
		for _, number := range []string{"1e99999999", "1e-99999999", "0e99999999", "1e1001", "1E+99999999999999999999"} {
			wrong, err := s.Judge(json.RawMessage(`{"n": ["", ` + number + `], "1e9999": "1e9999"}`))
			require.NoError(t, err)
			require.Equal(t, []argschema.Violation{{At: []string{"n", "1"}, Keyword: []string{"type"}, Words: "is too large or too small", Discreet: true}}, wrong)
		}
	}
	s, err := argschema.Compile(json.RawMessage(`{"properties": {"n": {"type": "number", "minimum": 1e-1000, "maximum": 1e1000}}}`))
	require.NoError(t, err)
	for number, fits := range map[string]bool{"1e1000": true, "2e1000": false, "1e-1000": true, "0e-1000": false} {
		wrong, err := s.Judge(json.RawMessage(`{"n": ` + number + `}`))
		require.NoError(t, err)
		require.Equal(t, fits, len(wrong) == 0, number)
	}
}
