package doctor_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/slacksim"
)

func TestCheckOfTheModel(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.env["OPENAI_MODEL"] = "no-such-model"
	require.Contains(t, i.check(), "accepts the key but does not list the model no-such-model")
	for status, want := range map[int]string{
		http.StatusUnauthorized: "refuses the key (401)", http.StatusNotFound: "does not list its models (404)",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		i.env["OPENAI_BASE_URL"] = strings.Replace(srv.URL, "http://", "http://user:tell-no-one@", 1)
		found := i.check()
		require.Contains(t, found, want)
		require.NotContains(t, found, "tell-no-one")
		srv.Close()
		found = i.check()
		require.Contains(t, found, "does not answer")
		require.NotContains(t, found, "tell-no-one")
	}
}

// What a run needs of a model is tried, not only whether it is listed: an answer
// in a stream, and a call of a tool where the agent has any.
func TestCheckAsksTheModelAsARunDoes(t *testing.T) {
	try := func(change func(w http.ResponseWriter, r *http.Request, body []byte) (done bool)) string {
		i := newInstallation(t, slacksim.Config{})
		model := openaisim.New(callsWhatItIsAsked())
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !strings.HasSuffix(r.URL.Path, "/chat/completions") || !change(w, r, body) {
				model.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(srv.Close)
		i.env["OPENAI_BASE_URL"] = srv.URL + "/v1"
		i.env["OPENAI_API_KEY"] = "tell-no-one"
		found := i.check()
		require.Contains(t, found, "accepts the key and has scripted")
		require.NotContains(t, found, "tell-no-one")
		return found
	}
	refuse := func(w http.ResponseWriter, words string) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"`+words+`","type":"invalid_request_error"}}`)
		return true
	}
	require.Contains(t, try(func(http.ResponseWriter, *http.Request, []byte) bool { return false }), "scripted answers in a stream and calls tools")
	found := try(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		return bytes.Contains(body, []byte(`"stream":true`)) && refuse(w, "streaming is not supported")
	})
	require.Regexp(t, `problem +model: \S+: scripted does not answer the way a run needs: .*streaming is not supported`, found)
	found = try(func(w http.ResponseWriter, _ *http.Request, body []byte) bool { // it answers, and not in a stream
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}`)
		return len(body) > 0
	})
	require.Contains(t, found, "scripted does not answer the way a run needs")
	found = try(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		return bytes.Contains(body, []byte(`"tools"`)) && refuse(w, "tools are not supported")
	})
	require.Contains(t, found, "tools are not supported")
	found = try(func(_ http.ResponseWriter, r *http.Request, body []byte) bool { // it takes tools and does not use them
		r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte("one call of the tool"), []byte("a poem of"))))
		r.ContentLength = -1
		return false
	})
	require.Regexp(t, `could not check +model: \S+: whether scripted can call tools`, found)
	found = try(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	require.Regexp(t, `could not check +model: \S+: whether scripted answers as a run needs it`, found)
}

// The base URL of a provider is mostly written without its /v1 by mistake.
func TestCheckOfABaseURLWithoutItsPath(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	srv := httptest.NewServer(openaisim.New(callsWhatItIsAsked()))
	t.Cleanup(srv.Close)
	i.env["OPENAI_BASE_URL"] = srv.URL
	require.Contains(t, i.check(), "-> correct OPENAI_BASE_URL, which includes the /v1 of most providers; or use a model")
}

// Without usage, a limit of tokens ends each run that has calls.
func TestCheckSaysThatALimitOfTokensNeedsUsage(t *testing.T) {
	for limit, wrong := range map[string]bool{"requests: 5": false, "total_tokens: 5000": true} {
		i := newInstallation(t, slacksim.Config{})
		i.replace("    files: reports\n", "    files: reports\n    limits: {"+limit+"}\n")
		model := openaisim.New(callsWhatItIsAsked())
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			body = bytes.ReplaceAll(body, []byte(`"stream_options":{"include_usage":true}`), []byte(`"stream_options":{}`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
			model.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		i.env["OPENAI_BASE_URL"] = srv.URL + "/v1"
		found := i.check()
		require.Contains(t, found, "scripted answers in a stream and calls tools")
		require.Equal(t, wrong, strings.Contains(found, "scripted does not say how many tokens it uses"), found)
	}
}

// An agent without tools needs none of its model.
func TestCheckAsksForNoToolWhereNoneIsUsed(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.replace("    files: reports\n", "")
	i.rules = oneOfSRE
	require.Contains(t, i.check(), "scripted answers in a stream\n")
}
