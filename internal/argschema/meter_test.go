package argschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/argschema"
)

var drafts = []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"}

// A schema of a few hundred bytes, or arguments of as many, would keep a CPU busy for
// minutes otherwise.
func TestAJudgmentHasABound(t *testing.T) {
	doubled := func(draft, outermost, keyword, innermost string) string {
		var parts strings.Builder
		for i := range 40 {
			next := fmt.Sprintf(`{"$ref": "#/definitions/d%d"}`, i+1)
			_, _ = fmt.Fprintf(&parts, `"d%d": {%q: [%s, %s]}, `, i, keyword, next, next)
		}
		return fmt.Sprintf(`{"$schema": %q, "definitions": {%s"d40": %s}, %q: {"$ref": "#/definitions/d0"}}`, draft, parts.String(), innermost, outermost)
	}
	judge := func(schema, args string) error {
		s, err := argschema.Compile(json.RawMessage(schema))
		require.NoError(t, err)
		_, err = s.Judge(json.RawMessage(args))
		return err
	}
	for _, draft := range drafts {
		for keyword, innermost := range map[string][]string{
			"allOf": {`{"type": "object"}`, `true`},
			"anyOf": {`{"type": "null"}`, `{"minProperties": 1}`, `false`},
			"oneOf": {`{"type": "null"}`, `{"minProperties": 1}`, `false`},
		} {
			if draft != drafts[2] {
				innermost = innermost[:1]
			}
			for _, inner := range innermost {
				require.ErrorIs(t, judge(doubled(draft, "not", keyword, inner), `{}`), argschema.ErrTooMuch, "%s %s %s", draft, keyword, inner)
				require.ErrorIs(t, judge(doubled(draft, "additionalProperties", keyword, inner), `{"a": {}}`), argschema.ErrTooMuch, "%s %s %s", draft, keyword, inner)
			}
		}
	}
	for _, lists := range []string{
		`{"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}, {"type": "string"}]}`,
		`{"$dynamicAnchor": "l", "anyOf": [{"items": {"$dynamicRef": "#l"}, "maxItems": 1}, {"items": {"$dynamicRef": "#l"}, "minItems": 2}], "type": ["array", "string"]}`,
	} {
		require.ErrorIs(t, judge(lists, strings.Repeat("[", 40)+"1"+strings.Repeat("]", 40)), argschema.ErrTooMuch)
		require.NoError(t, judge(lists, `[["x"]]`))
	}
	s, err := argschema.Compile(json.RawMessage(doubled(drafts[2], "additionalProperties", "allOf", `{"type": "object"}`)))
	require.NoError(t, err)
	for range 2 { // a judgment begins anew after one that was stopped
		_, err = s.Judge(json.RawMessage(`{"a": {}}`))
		require.ErrorIs(t, err, argschema.ErrTooMuch)
		wrong, err := s.Judge(json.RawMessage(`{}`))
		require.NoError(t, err)
		require.Empty(t, wrong)
	}
}

// The bound is far from what is asked for.
func TestLargeArgumentsAreJudged(t *testing.T) {
	s, err := argschema.Compile(json.RawMessage(`{"items": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}, {"allOf": [{"minimum": 0}, {"maximum": 9}]}]}}`))
	require.NoError(t, err)
	wrong, err := s.Judge(json.RawMessage("[" + strings.Repeat("1,", 130_000) + "1]"))
	require.NoError(t, err)
	require.Empty(t, wrong)
}

// Counting changes nothing of what schemas say.
func TestSchemasAreCheckedWhole(t *testing.T) {
	for _, draft := range drafts {
		for _, bad := range []string{`{"type": 5}`, `{"minimum": "1"}`, `{"anyOf": []}`, `{"properties": {"b": {"required": "b"}}}`} {
			_, err := argschema.Compile(json.RawMessage(fmt.Sprintf(`{"$schema": %q, "properties": {"a": {"items": %s}}}`, draft, bad)))
			require.ErrorContains(t, err, "compile schema", "%s %s", draft, bad)
		}
		s, err := argschema.Compile(json.RawMessage(fmt.Sprintf(`{"$schema": %q, "properties": {"a": {"format": "date"}}, "required": ["a"]}`, draft)))
		require.NoError(t, err)
		wrong, err := s.Judge(json.RawMessage(`{"a": "never"}`))
		require.NoError(t, err)
		require.Len(t, wrong, map[bool]int{true: 1}[strings.Contains(draft, "draft-07")], "a format is a remark in newer drafts")
	}
}
