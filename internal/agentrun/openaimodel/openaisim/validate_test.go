package openaisim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

const (
	hello  = `{"role":"user","content":"hello"}`
	calls2 = `{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"b","type":"function","function":{"name":"f","arguments":"{not json"}}]}`
	toolA = `{"role":"tool","tool_call_id":"a","content":"1"}`
	toolB = `{"role":"tool","tool_call_id":"b","content":""}`
)

func messages(list ...string) string {
	return `{"model":"m","messages":[` + strings.Join(list, ",") + `]}`
}

func with(field string) string {
	return `{"model":"m","messages":[` + hello + `],` + field + `}`
}

func function(name string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":{"type":"object"}}}`, name)
}

func TestRequestsThatTheRealAPIRefuses(t *testing.T) {
	_, _, url := start(t)
	for name, tc := range map[string]struct{ body, param, code string }{
		"no JSON":                     {`{`, "", ""},
		"wrong type":                  {`{"model":7}`, "model", "invalid_type"},
		"no model":                    {`{"messages":[` + hello + `]}`, "", ""},
		"no messages":                 {`{"model":"m"}`, "messages", "missing_required_parameter"},
		"empty messages":              {messages(), "messages", "empty_array"},
		"two choices":                 {with(`"n":2`), "n", "unsupported_value"},
		"stream options, no stream":   {with(`"stream_options":{"include_usage":true}`), "stream_options", ""},
		"no role":                     {messages(`{"content":"x"}`), "messages[0].role", "missing_required_parameter"},
		"unknown role":                {messages(`{"role":"bot","content":"x"}`), "messages[0].role", "invalid_value"},
		"null content":                {messages(`{"role":"user","content":null}`), "messages[0].content", "invalid_type"},
		"no content":                  {messages(hello, `{"role":"assistant"}`), "messages[1].content", "invalid_type"},
		"tool without content":        {messages(hello, calls2, `{"role":"tool","tool_call_id":"a"}`), "messages[2].content", "invalid_type"},
		"object content":              {messages(`{"role":"user","content":{}}`), "messages[0].content", "invalid_type"},
		"no parts":                    {messages(`{"role":"user","content":[]}`), "messages[0].content", "empty_array"},
		"text part without text":      {messages(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text", "missing_required_parameter"},
		"image from the system":       {messages(`{"role":"system","content":[{"type":"image_url"}]}`), "messages[0].content[0].type", "invalid_value"},
		"call without answer":         {messages(hello, calls2, toolA), "messages.[3].role", ""},
		"user before the answer":      {messages(hello, calls2, toolA, hello, toolB), "messages.[3].role", ""},
		"answered twice":              {messages(hello, calls2, toolA, toolB, toolA), "messages.[4].tool_call_id", ""},
		"answer without call":         {messages(hello, toolA), "messages.[1].role", ""},
		"answer to an older message":  {messages(hello, calls2, toolA, toolB, hello, toolA), "messages.[5].role", ""},
		"answer without id":           {messages(hello, `{"role":"tool","content":"x"}`), "messages[1].tool_call_id", "missing_required_parameter"},
		"two calls with one id":       {messages(hello, strings.Replace(calls2, `"b"`, `"a"`, 1)), "messages.[1].tool_calls", ""},
		"empty tool_calls":            {messages(`{"role":"assistant","content":"x","tool_calls":[]}`), "messages[0].tool_calls", "empty_array"},
		"calls by a user":             {messages(strings.Replace(calls2, `"assistant","content":null`, `"user","content":""`, 1)), "messages[0].tool_calls", ""},
		"call without id":             {messages(strings.Replace(calls2, `"a"`, `""`, 1)), "messages[0].tool_calls[0].id", "missing_required_parameter"},
		"call of unknown type":        {messages(strings.Replace(calls2, `"type":"function"`, `"type":"x"`, 1)), "messages[0].tool_calls[0].type", "invalid_value"},
		"call with a bad name":        {messages(strings.Replace(calls2, `"name":"f"`, `"name":"a b"`, 1)), "messages[0].tool_calls[0].function.name", "invalid_value"},
		"call without arguments":      {messages(strings.Replace(calls2, `,"arguments":"{}"`, ``, 1)), "messages[0].tool_calls[0].function.arguments", "missing_required_parameter"},
		"arguments that are no text":  {messages(strings.Replace(calls2, `"arguments":"{}"`, `"arguments":{}`, 1)), "messages[0].tool_calls[0].function.arguments", "invalid_type"},
		"no tools":                    {with(`"tools":[]`), "tools", "empty_array"},
		"too many tools":              {with(`"tools":[` + strings.Repeat(function("f")+",", 128) + function("f") + `]`), "tools", "array_above_max_length"},
		"unknown tool type":           {with(`"tools":[{"type":"x"}]`), "tools[0].type", "invalid_value"},
		"tool without function":       {with(`"tools":[{"type":"function"}]`), "tools[0].function", "missing_required_parameter"},
		"tool without name":           {with(`"tools":[` + function("") + `]`), "tools[0].function.name", "missing_required_parameter"},
		"tool name with a dot":        {with(`"tools":[` + function("a.b") + `]`), "tools[0].function.name", "invalid_value"},
		"tool name too long":          {with(`"tools":[` + function(strings.Repeat("x", 65)) + `]`), "tools[0].function.name", "invalid_value"},
		"schema that is no object":    {with(`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}]`), "tools[0].function.parameters", "invalid_function_parameters"},
		"schema that is null":         {with(`"tools":[{"type":"function","function":{"name":"f","parameters":null}}]`), "tools[0].function.parameters", "invalid_function_parameters"},
		"parallel without tools":      {with(`"parallel_tool_calls":true`), "parallel_tool_calls", ""},
		"choice without tools":        {with(`"tool_choice":"auto"`), "tool_choice", ""},
		"unknown choice":              {with(`"tool_choice":"some","tools":[` + function("f") + `]`), "tool_choice", "invalid_value"},
		"choice of no known type":     {with(`"tool_choice":{"type":"x"},"tools":[` + function("f") + `]`), "tool_choice.type", "invalid_value"},
		"choice that is not offered":  {with(`"tool_choice":{"type":"function","function":{"name":"g"}},"tools":[` + function("f") + `]`), "tool_choice", ""},
		"system between call and end": {messages(hello, calls2, `{"role":"system","content":"x"}`), "messages.[2].role", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body := post(t, url, tc.body)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Equal(t, "application/json", header.Get("Content-Type"))
			var got struct {
				Error map[string]any `json:"error"`
			}
			require.NoError(t, json.Unmarshal([]byte(body), &got))
			require.NotEmpty(t, got.Error["message"])
			require.Equal(t, map[string]any{
				"message": got.Error["message"], "type": "invalid_request_error",
				"param": orNil(tc.param), "code": orNil(tc.code),
			}, got.Error)
		})
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func TestRequestsThatTheRealAPITakes(t *testing.T) {
	_, _, url := start(t)
	for name, body := range map[string]string{
		"answers in any order":       messages(hello, calls2, toolB, toolA),
		"two rounds, same ids":       messages(hello, calls2, toolA, toolB, calls2, toolB, toolA, hello),
		"developer and system":       messages(`{"role":"developer","content":"x"}`, `{"role":"system","content":[{"type":"text","text":"x"}]}`, hello),
		"calls and no content field": messages(hello, strings.Replace(calls2, `"content":null,`, ``, 1), toolA, toolB),
		"every choice by word":       with(`"tool_choice":"required","parallel_tool_calls":false,"tools":[` + function("f") + `]`),
		"a choice by name":           with(`"tool_choice":{"type":"function","function":{"name":"f"}},"tools":[` + function("f") + `]`),
		"no parameters":              with(`"tools":[{"type":"function","function":{"name":"f"}}]`),
		"fields it does not know":    with(`"temperature":0,"metadata":{"a":"b"},"tool_choice":null`),
	} {
		t.Run(name, func(t *testing.T) {
			status, _, answer := post(t, url, body)
			require.Equal(t, http.StatusOK, status, answer)
		})
	}
}

func TestRequestsNeedAKeyAndAKnownPath(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, auth string
		want               int
	}{
		"no key":            {http.MethodPost, "/v1/chat/completions", "", http.StatusUnauthorized},
		"empty key":         {http.MethodPost, "/v1/chat/completions", "Bearer ", http.StatusUnauthorized},
		"not a bearer":      {http.MethodGet, "/v1/models", "Basic a", http.StatusUnauthorized},
		"get a completion":  {http.MethodGet, "/v1/chat/completions", "Bearer k", http.StatusMethodNotAllowed},
		"post a model":      {http.MethodPost, "/v1/models", "Bearer k", http.StatusMethodNotAllowed},
		"somewhere else":    {http.MethodPost, "/v1/completions", "Bearer k", http.StatusNotFound},
		"responses, no key": {http.MethodPost, "/v1/responses", "", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil)
			r.Header.Set("Authorization", tc.auth)
			w := httptest.NewRecorder()
			openaisim.New().ServeHTTP(w, r)
			require.Equal(t, tc.want, w.Code)
			require.Contains(t, w.Body.String(), `"error"`)
		})
	}
}
