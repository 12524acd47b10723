package approvals_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// vectors are documents and what upstream was observed to make of them.
type vectors struct {
	Source       string          `json:"source"`
	LaterChanges json.RawMessage `json:"known_later_changes"`
	Results      []struct {
		Name       string            `json:"name"`
		JSON       json.RawMessage   `json:"json"`
		Accepted   bool              `json:"accepted"`
		Normalized map[string]string `json:"normalized"`
		ErrorTypes []string          `json:"error_types"`
	} `json:"deferred_tool_results_load"`
	Requests []struct {
		Name       string          `json:"name"`
		JSON       json.RawMessage `json:"json"`
		Accepted   bool            `json:"accepted"`
		Approvals  []ToolCallID    `json:"approvals"`
		ErrorTypes []string        `json:"error_types"`
	} `json:"deferred_tool_requests_load"`

	// Those of package agentrun.
	Tools    json.RawMessage `json:"tools"`
	Messages json.RawMessage `json:"model_messages_load"`
	Resume   json.RawMessage `json:"resume"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/deferred-tools.json")
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var v vectors
	require.NoError(t, dec.Decode(&v))
	require.NotEmpty(t, v.Results)
	require.NotEmpty(t, v.Requests)
	return v
}

// A deviation is a document that we read otherwise than upstream: refused, or
// with another kind for the call "a".
type deviation struct {
	kind string // empty: refused
	why  string // section or row of the reference
}

func TestResultsAreReadLikeUpstreamOrMoreStrictly(t *testing.T) {
	stricter := map[string]deviation{
		"approval int 0 (coerced)":                          {"", "section 2: only real booleans are approvals"},
		"approval string true (coerced)":                    {"", "section 2: only real booleans are approvals"},
		"call tool-return with base64 image (silently raw)": {"", "section 2: inline binary becomes a raw object"},
		"call model-retry without message (silently raw)":   {"", "section 2: a known kind with a missing field becomes a success"},
		"call tool-denied (silently raw success)":           {"tool-denied", "row 48: a denial of an external call is a denial"},
		"same id in both maps":                              {"", "row 28: calls wins silently"},
		"unknown top-level key ignored":                     {"", "section 2: a misspelled approvals is an empty result"},
	}
	for _, c := range readVectors(t).Results {
		t.Run(c.Name, func(t *testing.T) {
			want, accepted := c.Normalized, c.Accepted
			if d, ok := stricter[c.Name]; ok {
				require.True(t, c.Accepted, "a deviation that is none")
				delete(stricter, c.Name)
				want, accepted = map[string]string{"a": d.kind}, d.kind != ""
			}
			var r DeferredToolResults
			err := json.Unmarshal(c.JSON, &r)
			if !accepted {
				require.ErrorIs(t, err, ErrInvalid)
				require.Zero(t, r, "nothing may be read from a refused document")
				return
			}
			require.NoError(t, err)
			got := map[string]string{}
			for id, a := range r.Approvals {
				got[string(id)] = kindOf(t, a)
			}
			for id, c := range r.Calls {
				got[string(id)] = kindOf(t, c)
			}
			require.Equal(t, want, got)
			requireRoundTrip(t, r)
		})
	}
	require.Empty(t, stricter, "deviations for which there is no case")
}

func TestRequestsAreReadLikeUpstreamOrMoreStrictly(t *testing.T) {
	stricter := map[string]deviation{
		"extra keys ignored": {"", "section 2 and row 64: a misspelled key would drop a call or its arguments"},
	}
	for _, c := range readVectors(t).Requests {
		t.Run(c.Name, func(t *testing.T) {
			accepted := c.Accepted
			if _, ok := stricter[c.Name]; ok {
				require.True(t, c.Accepted, "a deviation that is none")
				delete(stricter, c.Name)
				accepted = false
			}
			var r DeferredToolRequests
			err := json.Unmarshal(c.JSON, &r)
			if !accepted {
				require.ErrorIs(t, err, ErrInvalid)
				return
			}
			require.NoError(t, err)
			ids := []ToolCallID{}
			for _, a := range r.Approvals {
				ids = append(ids, a.ID)
			}
			require.Equal(t, c.Approvals, ids)
			requireRoundTrip(t, r)
		})
	}
	require.Empty(t, stricter, "deviations for which there is no case")
}

func kindOf(t *testing.T, r any) string {
	t.Helper()
	switch r.(type) {
	case ToolApproved:
		return "tool-approved"
	case ToolDenied:
		return "tool-denied"
	case ToolReturn:
		return "tool-return"
	case ToolFailed:
		return "tool-failed"
	case ModelRetry:
		return "model-retry"
	}
	require.Failf(t, "unknown kind", "%T", r)
	return ""
}

// requireRoundTrip writes v, reads it, and writes it again.
func requireRoundTrip[T any](t *testing.T, v T) {
	t.Helper()
	first, err := json.Marshal(v)
	require.NoError(t, err)
	var again T
	require.NoError(t, json.Unmarshal(first, &again), "%s", first)
	second, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

func TestResultsRefused(t *testing.T) {
	deep := bytes.Repeat([]byte("["), 80)
	for name, doc := range map[string]string{
		"not an object":                `[]`,
		"null":                         `null`,
		"null calls":                   `{"calls":null}`,
		"null metadata":                `{"metadata":null}`,
		"null metadata value":          `{"metadata":{"a":null}}`,
		"a list of approvals":          `{"approvals":[true]}`,
		"key twice":                    `{"approvals":{"a":false},"approvals":{"a":true}}`,
		"id twice":                     `{"approvals":{"a":false,"a":true}}`,
		"id twice, once escaped":       `{"approvals":{"a":false,"\u0061":true}}`,
		"empty id":                     `{"approvals":{"":true}}`,
		"key in capitals":              `{"Approvals":{"a":true}}`,
		"approval 1":                   `{"approvals":{"a":1}}`,
		"approval yes":                 `{"approvals":{"a":"yes"}}`,
		"approval empty object":        `{"approvals":{"a":{}}}`,
		"approval list":                `{"approvals":{"a":[true]}}`,
		"kind in capitals":             `{"approvals":{"a":{"Kind":"tool-approved"}}}`,
		"override as string":           `{"approvals":{"a":{"kind":"tool-approved","override_args":"{}"}}}`,
		"override as list":             `{"approvals":{"a":{"kind":"tool-approved","override_args":[]}}}`,
		"override misspelled":          `{"approvals":{"a":{"kind":"tool-approved","overrideargs":{}}}}`,
		"approved with a message":      `{"approvals":{"a":{"kind":"tool-approved","message":"no!"}}}`,
		"denied with arguments":        `{"approvals":{"a":{"kind":"tool-denied","override_args":{}}}}`,
		"result under approvals":       `{"approvals":{"a":{"kind":"tool-return","return_value":1}}}`,
		"approval under calls":         `{"calls":{"a":{"kind":"tool-approved"}}}`,
		"return without value":         `{"calls":{"a":{"kind":"tool-return"}}}`,
		"return with unknown field":    `{"calls":{"a":{"kind":"tool-return","return_value":1,"x":1}}}`,
		"return with tools":            `{"calls":{"a":{"kind":"tool-return","return_value":1,"tools":["x"]}}}`,
		"return with content list":     `{"calls":{"a":{"kind":"tool-return","return_value":1,"content":["c"]}}}`,
		"return with metadata string":  `{"calls":{"a":{"kind":"tool-return","return_value":1,"metadata":"m"}}}`,
		"binary deep in the value":     `{"calls":{"a":{"kind":"tool-return","return_value":{"x":[{"kind":"binary","data":"aGk="}]}}}}`,
		"binary as plain value":        `{"calls":{"a":{"kind":"binary","data":"aGk="}}}`,
		"binary with escaped kind":     `{"calls":{"a":{"kind":"\u0062inary","data":"aGk="}}}`,
		"failed without message":       `{"calls":{"a":{"kind":"tool-failed"}}}`,
		"failed with null message":     `{"calls":{"a":{"kind":"tool-failed","message":null}}}`,
		"retry with a number":          `{"calls":{"a":{"kind":"model-retry","message":1}}}`,
		"denied call with null":        `{"calls":{"a":{"kind":"tool-denied","message":null}}}`,
		"retry prompt without content": `{"calls":{"a":{"part_kind":"retry-prompt"}}}`,
		"lone surrogate":               `{"calls":{"a":"\ud800"}}`,
		"trailing":                     `{} {}`,
		"too deep":                     `{"calls":{"a":` + string(deep) + string(bytes.Repeat([]byte("]"), 80)) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var r DeferredToolResults
			require.ErrorIs(t, r.UnmarshalJSON([]byte(doc)), ErrInvalid)
			require.Zero(t, r)
		})
	}
}

func TestResultsRead(t *testing.T) {
	var r DeferredToolResults
	require.NoError(t, json.Unmarshal([]byte(`{
		"approvals": {"t": true, "f": false,
			"n": {"kind":"tool-approved","override_args":null},
			"e": {"kind":"tool-approved","override_args":{}},
			"o": {"kind":"tool-approved","override_args":{"n": 9007199254740993}},
			"d": {"kind":"tool-denied","message":""}},
		"calls": {"r": {"kind":"tool-return","return_value":1e999,"content":"c","metadata":{"m":1},"tools":null},
			"p": {"part_kind":"retry-prompt","content":"again","tool_name":null},
			"k": {"kind":"retry-prompt","content":"again"},
			"w": {"kind":"tool-denied"}, "null": null},
		"metadata": {"t": {"by":"U1"}}}`), &r))
	require.Equal(t, DeferredToolResults{
		Approvals: map[ToolCallID]ApprovalResult{
			"t": ToolApproved{},
			"f": ToolDenied{Message: DeniedMessage},
			"n": ToolApproved{},
			"e": ToolApproved{OverrideArgs: json.RawMessage(`{}`)},
			"o": ToolApproved{OverrideArgs: json.RawMessage(`{"n": 9007199254740993}`)},
			"d": ToolDenied{},
		},
		Calls: map[ToolCallID]CallResult{
			"r":    ToolReturn{ReturnValue: json.RawMessage(`1e999`), Content: json.RawMessage(`"c"`), Metadata: json.RawMessage(`{"m":1}`)},
			"p":    ModelRetry{Message: "again"},
			"k":    ModelRetry{Message: "again"},
			"w":    ToolDenied{Message: DeniedMessage},
			"null": ToolReturn{ReturnValue: json.RawMessage(`null`)},
		},
		Metadata: map[ToolCallID]json.RawMessage{"t": json.RawMessage(`{"by":"U1"}`)},
	}, r)
	requireRoundTrip(t, r)
}

func TestResultsWritten(t *testing.T) {
	got, err := json.Marshal(DeferredToolResults{
		Approvals: map[ToolCallID]ApprovalResult{
			"b": ToolDenied{}, "a": ToolApproved{}, "c": ToolApproved{OverrideArgs: json.RawMessage(`{"n":1.0}`)},
		},
		Calls: map[ToolCallID]CallResult{"x": ToolReturn{}, "y": ToolFailed{Message: "down"}, "z": ModelRetry{Message: "again"}},
	})
	require.NoError(t, err)
	// The bytes, not only the values: 1.0 stays 1.0.
	want := `{"calls":{"x":{"kind":"tool-return","return_value":null,"content":null,"metadata":null},` +
		`"y":{"kind":"tool-failed","message":"down"},"z":{"kind":"model-retry","message":"again"}},` +
		`"approvals":{"a":{"kind":"tool-approved"},"b":{"kind":"tool-denied","message":""},` +
		`"c":{"kind":"tool-approved","override_args":{"n":1.0}}},"metadata":{}}`
	require.Equal(t, want, string(got))

	for name, r := range map[string]DeferredToolResults{
		"both maps":      {Calls: map[ToolCallID]CallResult{"a": ToolReturn{}}, Approvals: map[ToolCallID]ApprovalResult{"a": ToolApproved{}}},
		"no result":      {Calls: map[ToolCallID]CallResult{"a": nil}},
		"no approval":    {Approvals: map[ToolCallID]ApprovalResult{"a": nil}},
		"pointer":        {Approvals: map[ToolCallID]ApprovalResult{"a": &ToolApproved{}}},
		"empty override": {Approvals: map[ToolCallID]ApprovalResult{"a": ToolApproved{OverrideArgs: json.RawMessage{}}}},
		"bad override":   {Approvals: map[ToolCallID]ApprovalResult{"a": ToolApproved{OverrideArgs: json.RawMessage(`[]`)}}},
		"binary":         {Calls: map[ToolCallID]CallResult{"a": ToolReturn{ReturnValue: json.RawMessage(`{"kind":"binary","data":""}`)}}},
		"metadata":       {Metadata: map[ToolCallID]json.RawMessage{"a": json.RawMessage(`1`)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := json.Marshal(r)
			require.ErrorIs(t, err, ErrInvalid)
		})
	}
}

func TestRequestArgumentsKeepTheirBytes(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"object":          {`{ "n" : 9007199254740993 }`, `{ "n" : 9007199254740993 }`},
		"string":          {`"{ \"n\" : 1.0,\n\"<\":\"\\u00e9\" }"`, "{ \"n\" : 1.0,\n\"<\":\"\\u00e9\" }"},
		"missing is null": {`null`, ``},
		"empty string":    {`""`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			var r DeferredToolRequests
			require.NoError(t, json.Unmarshal([]byte(`{"approvals":[{"tool_name":"x","args":`+c.doc+`,"tool_call_id":"1",
				"part_kind":"tool-call","tool_kind":null,"id":"i","provider_name":"p","provider_details":{"z":1}}]}`), &r))
			require.Equal(t, c.want, string(r.Approvals[0].Args))

			written, err := json.Marshal(r)
			require.NoError(t, err)
			var again DeferredToolRequests
			require.NoError(t, json.Unmarshal(written, &again))
			require.Equal(t, r.Approvals, again.Approvals)
		})
	}
}

func TestRequestsWritten(t *testing.T) {
	got, err := json.Marshal(DeferredToolRequests{
		Calls:     []ToolCall{{ID: "A", Name: "export"}},
		Approvals: []ToolCall{{ID: "B", Name: "refund", Args: json.RawMessage(`{"cents": 4200}`)}},
		Metadata:  map[ToolCallID]json.RawMessage{"A": json.RawMessage(`{"job":"j-9"}`)},
	})
	require.NoError(t, err)
	want := `{"calls":[{"tool_name":"export","args":null,"tool_call_id":"A","part_kind":"tool-call"}],` +
		`"approvals":[{"tool_name":"refund","args":"{\"cents\": 4200}","tool_call_id":"B","part_kind":"tool-call"}],` +
		`"metadata":{"A":{"job":"j-9"}}}`
	require.Equal(t, want, string(got))

	_, err = json.Marshal(DeferredToolRequests{Approvals: []ToolCall{{ID: "B", Name: "x", Args: json.RawMessage("{\"a\":\"\xff\"}")}}})
	require.ErrorIs(t, err, ErrInvalid, "bytes that the string would not hold")
}

func TestRequestsRefused(t *testing.T) {
	for name, doc := range map[string]string{
		"null list":         `{"approvals":null}`,
		"null call":         `{"approvals":[null]}`,
		"unknown key":       `{"approval":[]}`,
		"no id":             `{"approvals":[{"tool_name":"x"}]}`,
		"null id":           `{"approvals":[{"tool_name":"x","tool_call_id":null}]}`,
		"empty id":          `{"approvals":[{"tool_name":"x","tool_call_id":""}]}`,
		"no name":           `{"approvals":[{"tool_call_id":"1"}]}`,
		"same id twice":     `{"approvals":[{"tool_name":"x","tool_call_id":"1"},{"tool_name":"y","tool_call_id":"1"}]}`,
		"same id in lists":  `{"calls":[{"tool_name":"x","tool_call_id":"1"}],"approvals":[{"tool_name":"x","tool_call_id":"1"}]}`,
		"args list":         `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":[]}]}`,
		"args number":       `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":1}]}`,
		"args no JSON":      `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":"rm -rf"}]}`,
		"args key twice":    `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":"{\"a\":1,\"a\":2}"}]}`,
		"args surrogate":    `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":"{\"a\":\"\ud800\"}"}]}`,
		"args misspelled":   `{"approvals":[{"tool_name":"x","tool_call_id":"1","arg":{}}]}`,
		"metadata string":   `{"metadata":{"1":"m"}}`,
		"metadata null":     `{"metadata":null}`,
		"null part_kind":    `{"approvals":[{"tool_name":"x","tool_call_id":"1","part_kind":null}]}`,
		"args in two forms": `{"approvals":[{"tool_name":"x","tool_call_id":"1","args":{},"args":"{}"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var r DeferredToolRequests
			require.ErrorIs(t, r.UnmarshalJSON([]byte(doc)), ErrInvalid)
		})
	}
}

func FuzzDeferredJSON(f *testing.F) {
	raw, err := os.ReadFile("testdata/deferred-tools.json")
	require.NoError(f, err)
	var v vectors
	require.NoError(f, json.Unmarshal(raw, &v))
	for _, c := range v.Results {
		f.Add([]byte(c.JSON))
	}
	for _, c := range v.Requests {
		f.Add([]byte(c.JSON))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var results DeferredToolResults
		if results.UnmarshalJSON(doc) == nil {
			requireRoundTrip(t, results)
		}
		var requests DeferredToolRequests
		if requests.UnmarshalJSON(doc) == nil {
			requireRoundTrip(t, requests)
		}
	})
}
