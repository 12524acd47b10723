package hook_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/hook"
)

// A server answers requests without a network.
type server func(r *http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answered(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A bot that restarts ends every wait, and is away for a moment.
func TestAHookThatWaitsOutlastsARestartOfTheBot(t *testing.T) {
	const (
		pending  = `{"id":"run-1","status":"pending","calls":[{"id":"t","tool":"T","outcome":"pending"}]}`
		approved = `{"id":"run-1","status":"settled","calls":[{"id":"t","tool":"T","outcome":"approved"}]}`
		claim    = `{"call":"t","tool":"T","args_text":"{}"}`
	)
	refused := func() (*http.Response, error) { return nil, errors.New("connection refused") }
	cut := func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader(approved[:20]), broken{}))}, nil
	}
	const no = `{"title":"no"}`
	badGateway := func() (*http.Response, error) { return answered(http.StatusBadGateway, no) }
	unavailable := func() (*http.Response, error) { return answered(http.StatusServiceUnavailable, no) }
	unauthorized := func() (*http.Response, error) { return answered(http.StatusUnauthorized, no) }
	conflict := func() (*http.Response, error) { return answered(http.StatusConflict, no) }
	elsewhere := func() (*http.Response, error) { return answered(http.StatusNotFound, "404 page not found\n") }
	redirect := func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"https://elsewhere.example"}}, Body: http.NoBody}, nil
	}
	for name, test := range map[string]struct {
		poll   func() (*http.Response, error)
		away   time.Duration // how long it fails
		claim  func() (*http.Response, error)
		says   string // the error; empty if the tool may run
		within time.Duration
	}{
		"a restart":              {poll: refused, away: 20 * time.Second, within: 21 * time.Second},
		"a proxy without a bot":  {poll: badGateway, away: 20 * time.Second, within: 21 * time.Second},
		"a bot without a store":  {poll: unavailable, away: 20 * time.Second, within: 21 * time.Second},
		"a cut answer":           {poll: cut, away: time.Second, within: 2 * time.Second},
		"a bot that stays away":  {poll: refused, away: time.Hour, says: "the API cannot be reached: connection refused", within: 3 * time.Minute},
		"a token taken away":     {poll: unauthorized, away: time.Hour, says: "Countersign answers 401: no"},
		"another listener":       {poll: elsewhere, away: time.Hour, says: "it must be the address of http.listen"},
		"a redirect":             {poll: redirect, away: time.Hour, says: "it answers with a redirect"},
		"a claim that fails":     {poll: refused, claim: refused, says: "the API cannot be reached"},
		"a claim that was taken": {poll: refused, claim: conflict, says: "Countersign answers 409: no"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, claims := time.Now(), 0
				c := hook.Config{
					URL: "https://countersign.example", Token: "t", Kind: hook.ClaudeCode, Now: time.Now,
					Git: func(string) (string, string) { return "", "" },
					HTTP: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
						switch {
						case strings.HasSuffix(r.URL.Path, "/claim"):
							if claims++; test.claim != nil {
								return test.claim()
							}
							return answered(http.StatusOK, claim)
						case r.Method == http.MethodPost:
							return answered(http.StatusCreated, pending)
						case time.Since(began) < test.away:
							return test.poll()
						}
						return answered(http.StatusOK, approved)
					})},
				}
				ask := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T","tool_use_id":"t","tool_input":{}}`
				var out bytes.Buffer
				err := hook.Run(t.Context(), c, strings.NewReader(ask), &out)
				require.LessOrEqual(t, time.Since(began), test.within)
				require.LessOrEqual(t, claims, 1, "a claim is never repeated")
				if test.says != "" {
					require.ErrorContains(t, err, test.says)
					require.Empty(t, out.String())
					return
				}
				require.NoError(t, err)
				require.Contains(t, out.String(), `"permissionDecision":"allow"`)
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
