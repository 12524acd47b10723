package argschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/argschema"
)

func TestWhatASchemaMarksIsWriteOnlyWhereverItSaysSo(t *testing.T) {
	const secret = `{"type":"string","writeOnly":true}`
	for name, x := range map[string]struct {
		schema string
		want   []string
	}{
		"nothing":          {`{"type":"object","properties":{"a":{"type":"string","description":"writeOnly"}}}`, nil},
		"one argument":     {`{"properties":{"a":` + secret + `,"b":{"type":"string"}}}`, []string{"/a"}},
		"a name with / ~":  {`{"properties":{"a/b~":` + secret + `}}`, []string{"/a~1b~0"}},
		"one named so":     {`{"properties":{"writeOnly":{"type":"boolean"},"properties":` + secret + `}}`, []string{"/properties"}},
		"in an object":     {`{"properties":{"a":{"properties":{"b":` + secret + `}}}}`, []string{"/a/b"}},
		"in lists":         {`{"properties":{"a":{"items":{"properties":{"b":` + secret + `}}},"c":{"prefixItems":[{},` + secret + `]}}}`, []string{"/a/*/b", "/c/*"}},
		"of any name":      {`{"properties":{"a":{"additionalProperties":` + secret + `},"b":{"patternProperties":{"^x":` + secret + `}}}}`, []string{"/a/*", "/b/*"}},
		"an alternative":   {`{"properties":{"a":{"anyOf":[{"type":"null"},` + secret + `]}},"allOf":[{"properties":{"b":` + secret + `}}]}`, []string{"/a", "/b"}},
		"if then":          {`{"if":{},"then":{"properties":{"a":` + secret + `}}}`, []string{"/a"}},
		"by reference":     {`{"properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/properties/c/anyOf/1"},"c":{"anyOf":[{},{"properties":{"d":` + secret + `}}]},"e":{"$ref":"#/$defs/x%20y~1z"}},"$defs":{"s":` + secret + `,"x y/z":` + secret + `}}`, []string{"/a", "/b/d", "/c/d", "/e"}},
		"not what is true": {`{"properties":{"a":{"writeOnly":"true"}}}`, nil},
		"the whole":        {`{"writeOnly":true,"properties":{"a":` + secret + `}}`, []string{"/a"}},
		"in itself": {
			`{"$defs":{"n":{"properties":{"pin":` + secret + `,"next":{"$ref":"#/$defs/n"}}},"p":{"properties":{"of":{"$ref":"#/$defs/p"}}}},
			"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/p"}}}`, []string{"/a/next", "/a/pin"},
		},
		"if another is there": {`{"dependentSchemas":{"x":{"properties":{"a":` + secret + `}}},"dependencies":{"x":["y"],"y":{"properties":{"b":` + secret + `}}}}`, []string{"/a", "/b"}},
		"the others":          {`{"properties":{"a":{"unevaluatedProperties":` + secret + `},"b":{"unevaluatedItems":` + secret + `},"c":{"contains":` + secret + `},"d":{"items":[{}],"additionalItems":` + secret + `}}}`, []string{"/a/*", "/b/*", "/c/*", "/d/*"}},
		"the schema itself":   {`{"properties":{"pin":` + secret + `,"next":{"$dynamicRef":"#"}}}`, []string{"/next/next", "/next/pin", "/pin"}},
		"by an anchor":        {`{"$defs":{"s":{"$anchor":"pin","type":"string","writeOnly":true}},"properties":{"a":{"$ref":"#pin"}}}`, []string{""}},
		"by an id":            {`{"$defs":{"s":{"$id":"https://a.example/pin","type":"string","writeOnly":true}},"properties":{"a":{"$ref":"https://a.example/pin"}}}`, []string{""}},
		"to nothing":          {`{"properties":{"a":{"$ref":"#/$defs/none"},"b":` + secret + `}}`, []string{""}},
		"no schema":           {`{`, nil},
	} {
		require.Equal(t, x.want, argschema.WriteOnly(json.RawMessage(x.schema)), name)
	}

	// A schema whose parts refer to each other can be as large as it likes.
	var parts []string
	for i := range 40 {
		parts = append(parts, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	parts = append(parts, `"d40":`+secret)
	large := `{"$defs":{` + strings.Join(parts, ",") + `},"properties":{"x":{"$ref":"#/$defs/d0"}}}`
	require.Equal(t, []string{""}, argschema.WriteOnly(json.RawMessage(large)), "all of it")
}
