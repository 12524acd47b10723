package openaimodel_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
)

func TestErrorsOfManyServersAreUnderstood(t *testing.T) {
	const again = true
	for name, tt := range map[string]struct {
		status int
		body   string
		code   agentrun.ModelErrorCode
		again  bool
	}{
		"vllm, too long":        {400, `{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}`, agentrun.ContextTooLong, false},
		"vllm now, too long":    {400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","param":null,"code":400}}`, agentrun.ContextTooLong, false},
		"ollama, too long":      {400, `{"error":"the input length exceeds the context length"}`, agentrun.ContextTooLong, false},
		"llama.cpp, too long":   {400, `{"error":{"code":400,"message":"no","type":"exceed_context_size_error"}}`, agentrun.ContextTooLong, false},
		"a proxy, too long":     {413, `<html>`, agentrun.ContextTooLong, false},
		"azure, filtered":       {400, `{"error":{"message":"no","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, agentrun.ContentFiltered, false},
		"another bad request":   {400, `{"error":{"message":"no","type":"invalid_request_error"}}`, agentrun.ModelRefused, false},
		"not json":              {400, `no`, agentrun.ModelRefused, false},
		"a list":                {400, `[]`, agentrun.ModelRefused, false},
		"nothing":               {400, ``, agentrun.ModelRefused, false},
		"forbidden":             {403, `{"error":{"message":"no","code":"unsupported_country_region_territory"}}`, agentrun.ModelRefused, false},
		"no such path":          {404, `404 page not found`, agentrun.ModelRefused, false},
		"nothing left to spend": {402, `{"error":{"message":"no","code":402}}`, agentrun.ModelRefused, false},
		"billing":               {429, `{"error":{"message":"no","type":"billing_not_active"}}`, agentrun.ModelRefused, false},
		"timed out":             {408, ``, agentrun.ModelUnavailable, again},
		"conflict":              {409, ``, agentrun.ModelUnavailable, again},
		"overloaded":            {529, `{"error":{"message":"no","type":"overloaded_error"}}`, agentrun.ModelUnavailable, again},
		"rate, without json":    {429, `slow down`, agentrun.RateLimited, again},
		"redirect":              {307, ``, agentrun.ModelRefused, false},
		"stream: too long":      {200, ": wait\n\nevent: error\ndata: {\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}\n\n", agentrun.ContextTooLong, false},
		"stream: rate by code":  {200, "data: {\"error\":{\"message\":\"no\",\"code\":429}}\n\n", agentrun.RateLimited, again},
		"stream: rate by text":  {200, "data: {\"error\":{\"message\":\"no\",\"code\":\"429\"}}\n\n", agentrun.RateLimited, again},
		"stream: rate by name":  {200, "data: {\"error\":{\"message\":\"no\",\"code\":\"rate_limit_exceeded\"}}", agentrun.RateLimited, again},
		"stream: beside others": {200, "data: {\"id\":\"x\",\"error\":{\"message\":\"no\",\"code\":502},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n", agentrun.ModelUnavailable, again},
		"stream: key":           {200, "data: {\"error\":{\"message\":\"no\",\"code\":\"invalid_api_key\"}}\n\n", agentrun.ModelRefused, false},
		"stream: shapeless":     {200, "data: {\"error\":\"boom\"}\n\n", agentrun.ModelUnavailable, again},
		"stream: no error":      {200, "data: {\"error\":null,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"no\"},\"finish_reason\":\"content_filter\"}]}\n\n", agentrun.ContentFiltered, false},
		"stream: wordless":      {200, "data: {\"error\":{}}\n\ndata: {}\n\n", agentrun.ModelUnavailable, again},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}), func(c *openaimodel.Config) { c.Attempts = 2 })
			_, err := m.Request(t.Context(), ask("hi"))
			e := modelError(t, err)
			require.Equal(t, tt.code, e.Code, "%v", err)
			require.Equal(t, map[bool]int{false: 1, true: 2}[tt.again], asked)
		})
	}
}

// Not every server reports errors in OpenAI's form. Whoever reads the log needs the
// server's words in any case.
func TestTheLogHasWhatTheServerSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		body, said string
	}{
		"openai":   {400, `{"error":{"message":"bad schema","type":"invalid_request_error"}}`, `message "bad schema"`},
		"gemini":   {400, `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]`, "API key not valid."},
		"vllm":     {400, `{"object":"error","message":"tool_choice needs a flag","type":"BadRequestError","code":400}`, "tool_choice needs a flag"},
		"ollama":   {400, `{"error":"this model does not support tools"}`, "this model does not support tools"},
		"mistral":  {422, `{"object":"error","message":{"detail":[{"msg":"Extra inputs"}]},"type":"invalid_request_error"}`, "Extra inputs"},
		"a proxy":  {404, "<html>\r\n<h1>No such host</h1>", "<html> <h1>No such host</h1>"},
		"a stream": {200, "data: {\"error\":\"out of memory\"}\n\n", "out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}), func(c *openaimodel.Config) { c.Attempts = 1 })
			_, err := m.Request(t.Context(), ask("hi"))
			require.ErrorContains(t, modelError(t, err).Err, tt.said)
		})
	}
}

func TestSecretsAreInNoWordsAndInNoLog(t *testing.T) {
	quoted := strings.NewReplacer("KEY", theKey)
	for name, answer := range map[string]func(w http.ResponseWriter){
		"error": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, quoted.Replace(`{"error":{"message":"bad KEY at hunter2","type":"KEY","code":"x KEY","param":"KEY"}}`))
		},
		"page": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<p>"+theKey)
		},
		"refusal": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, quoted.Replace(`{"error":{"message":"Incorrect API key provided: KEY"}}`))
		},
		"finish reason": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, quoted.Replace("data: {\"choices\":[{\"finish_reason\":\"KEY\"}]}\n\n"))
		},
		"content type": func(w http.ResponseWriter) { w.Header().Set("Content-Type", theKey) },
		"redirect":     func(w http.ResponseWriter) { w.Header().Set("Location", "/"+theKey); w.WriteHeader(http.StatusFound) },
		"hung up":      func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }),
				func(c *openaimodel.Config) {
					c.BaseURL = strings.Replace(c.BaseURL, "http://", "http://bo77:hunter2@", 1)
					c.Log = slog.New(slog.NewJSONHandler(&log, nil))
				})
			_, err := m.Request(t.Context(), ask("hi"))
			e := modelError(t, err)
			for _, text := range []string{err.Error(), e.Words, fmt.Sprintf("%+v %#v", e.Err, e.Err), log.String(), fmt.Sprintf("%+v", m.Model)} {
				for _, never := range []string{theKey, "sk-test", "hunter2"} {
					require.NotContains(t, text, never)
				}
			}
		})
	}
}
