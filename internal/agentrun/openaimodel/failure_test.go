package openaimodel_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/plainhttp/plainhttptest"
)

func modelError(t *testing.T, err error) *agentrun.ModelError {
	t.Helper()
	var e *agentrun.ModelError
	require.ErrorAs(t, err, &e)
	require.NotErrorIs(t, err, context.Canceled, "the caller's context has not ended")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has not ended")
	require.NotEmpty(t, e.Words)
	require.Error(t, e.Err)
	return e
}

// by makes the model be asked by this API.
func by(api openaimodel.API) func(*openaimodel.Config) {
	return func(c *openaimodel.Config) { c.API = api }
}

// spoken are the parts without the reasoning.
func spoken(r agentrun.Response) []agentrun.ResponsePart {
	return slices.DeleteFunc(slices.Clone(r.Parts), func(p agentrun.ResponsePart) bool { _, thinks := p.(agentrun.Thinking); return thinks })
}

// impatient makes the model notice a stall soon.
func impatient(c *openaimodel.Config) { c.Idle = 300 * time.Millisecond }

func TestWhatAskingAgainMendsIsAskedAgain(t *testing.T) {
	kinds := []openaisim.FaultKind{
		openaisim.RateLimited, openaisim.ServerError, openaisim.BadGateway, openaisim.Unavailable,
		openaisim.HungUp, openaisim.Dropped, openaisim.Stalled, openaisim.CutShort, openaisim.MalformedSSE,
		openaisim.ErrorEvent, openaisim.WrongContentType,
	}
	for api, kinds := range map[openaimodel.API][]openaisim.FaultKind{
		openaimodel.Chat: append(slices.Clone(kinds), openaisim.NoChoices), openaimodel.Responses: kinds,
	} {
		mended(t, api, kinds)
	}
}

func mended(t *testing.T, api openaimodel.API, kinds []openaisim.FaultKind) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(string(api)+" "+string(kind), func(t *testing.T) {
			sim := openaisim.New(always(twoCalls))
			sim.Fail(openaisim.Fault{Kind: kind}, openaisim.Fault{Kind: kind})
			m := newBench(t, sim, impatient, by(api))
			got, err := m.Request(t.Context(), ask("go", "read_file"))
			require.NoError(t, err)
			parts := spoken(got)
			require.Len(t, parts, 3, "nothing of the broken answers is used")
			require.Equal(t, agentrun.Text{Content: twoCalls.Text}, parts[0])
			require.Len(t, sim.Requests(), 3)
			require.Equal(t, sim.Requests()[0].Body, sim.Requests()[2].Body)
			require.Len(t, m.waited(), 2)
			for n, d := range m.waited() {
				most := 500 * time.Millisecond << n
				require.LessOrEqual(t, d, most)
				require.Greater(t, d, most/2-1)
			}
		})
	}
}

func TestAnAnswerThatBreaksAnywhereIsNotUsed(t *testing.T) {
	for _, kind := range []openaisim.FaultKind{openaisim.Dropped, openaisim.CutShort, openaisim.ErrorEvent, openaisim.MalformedSSE} {
		for after := 1; after <= 9; after++ { // the 10th chunk has the finish reason
			sim := openaisim.New(always(openaisim.Reply{Text: "Well.", Calls: []openaisim.Call{
				{ID: "c1", Name: "a", Args: `{"path":"one"}`}, {ID: "c2", Name: "b", Args: `{"path":"two, longer"}`},
			}}))
			sim.Fail(openaisim.Fault{Kind: kind, After: after})
			got, err := newBench(t, sim).Request(t.Context(), ask("go", "a", "b"))
			require.NoError(t, err)
			require.Len(t, sim.Requests(), 2, "%s after %d", kind, after)
			require.Equal(t, []agentrun.ResponsePart{
				agentrun.Text{Content: "Well."}, call("c1", "a", `{"path":"one"}`), call("c2", "b", `{"path":"two, longer"}`),
			}, got.Parts)
		}
	}
}

func TestWhatTheModelGetsWrongGoesToTheLoop(t *testing.T) {
	reply := openaisim.Reply{Text: "I will look.", Calls: []openaisim.Call{{ID: "c1", Name: "a", Args: `{"path":"one"}`}}}
	for kind, want := range map[openaisim.FaultKind]agentrun.Response{
		openaisim.MalformedArgs: {FinishReason: agentrun.FinishToolCall, Parts: []agentrun.ResponsePart{
			agentrun.Text{Content: "I will look."}, call("c1", "a", `{"path": "reports/`),
		}},
		openaisim.LengthReached: {FinishReason: agentrun.FinishLength, Parts: []agentrun.ResponsePart{
			agentrun.Text{Content: "I will look."}, call("c1", "a", `{"path"`),
		}},
		openaisim.Empty: {FinishReason: agentrun.FinishStop},
	} {
		sim := openaisim.New(always(reply))
		sim.Fail(openaisim.Fault{Kind: kind})
		got, err := newBench(t, sim).Request(t.Context(), ask("go", "a"))
		require.NoError(t, err, kind)
		require.Len(t, sim.Requests(), 1, kind)
		require.Equal(t, want.FinishReason, got.FinishReason, kind)
		require.Equal(t, want.Parts, got.Parts, kind)
	}

	sim := openaisim.New(always(reply))
	sim.Fail(openaisim.Fault{Kind: openaisim.DuplicateIDs})
	twice, err := newBench(t, sim).Request(t.Context(), ask("go", "a"))
	require.NoError(t, err)
	require.Len(t, twice.Parts, 3)
	require.Equal(t, twice.Parts[1], twice.Parts[2])

	sim = openaisim.New(always(reply))
	sim.Fail(openaisim.Fault{Kind: openaisim.UnknownTool})
	got, err := newBench(t, sim).Request(t.Context(), ask("go", "a"))
	require.NoError(t, err)
	require.Len(t, got.Parts, 3)
	require.Equal(t, "scripted_tool_that_does_not_exist", got.Parts[2].(agentrun.CallPart).Name)
}

func TestWhatAskingAgainCannotMendIsAskedOnce(t *testing.T) {
	for kind, want := range map[openaisim.FaultKind]struct {
		code  agentrun.ModelErrorCode
		words string
	}{
		openaisim.ContextLength:   {agentrun.ContextTooLong, "Start a new thread"},
		openaisim.ContentFiltered: {agentrun.ContentFiltered, "content filter"},
		openaisim.Unauthorized:    {agentrun.ModelRefused, "check the key and its permissions"},
		openaisim.ModelNotFound:   {agentrun.ModelRefused, "check the model name"},
		openaisim.QuotaExceeded:   {agentrun.ModelRefused, "plan and billing"},
	} {
		for _, api := range []openaimodel.API{openaimodel.Chat, openaimodel.Responses} {
			t.Run(string(api)+" "+string(kind), func(t *testing.T) {
				sim := openaisim.New(always(twoCalls))
				sim.Fail(openaisim.Fault{Kind: kind, RetryAfter: "1"})
				m := newBench(t, sim, by(api))
				_, err := m.Request(t.Context(), ask("go", "read_file"))
				e := modelError(t, err)
				require.Equal(t, want.code, e.Code)
				require.Contains(t, e.Words, want.words)
				require.NotContains(t, e.Words, "Scripted")
				require.Len(t, sim.Requests(), 1)
				require.Empty(t, m.waited())
			})
		}
	}
}

func TestAskingAgainHasAnEnd(t *testing.T) {
	for kind, code := range map[openaisim.FaultKind]agentrun.ModelErrorCode{
		openaisim.RateLimited: agentrun.RateLimited,
		openaisim.ServerError: agentrun.ModelUnavailable,
		openaisim.Dropped:     agentrun.ModelUnavailable,
		openaisim.NoChoices:   agentrun.ModelUnavailable,
	} {
		reply := twoCalls
		reply.Fault = &openaisim.Fault{Kind: kind}
		sim := openaisim.New(always(reply))
		_, err := newBench(t, sim).Request(t.Context(), ask("go", "read_file"))
		require.Equal(t, code, modelError(t, err).Code, kind)
		require.Len(t, sim.Requests(), openaimodel.DefaultAttempts, kind)

		sim = openaisim.New(always(reply))
		_, err = newBench(t, sim, func(c *openaimodel.Config) { c.Attempts = 1 }).Request(t.Context(), ask("go", "read_file"))
		require.Equal(t, code, modelError(t, err).Code, kind)
		require.Len(t, sim.Requests(), 1, kind)
	}
}

func TestRetryAfterIsHonored(t *testing.T) {
	for name, tt := range map[string]struct {
		header string
		want   time.Duration
	}{
		"seconds":          {"7", 7 * time.Second},
		"parts of seconds": {"1.5", 1500 * time.Millisecond},
		"a date":           {"Sat, 01 Mar 2025 12:00:09 GMT", 9 * time.Second},
		"far too long":     {"86400", time.Minute},
		"a far date":       {"Sat, 08 Mar 2025 12:00:00 GMT", time.Minute},
		"beyond numbers":   {"1e300", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []openaisim.FaultKind{openaisim.RateLimited, openaisim.Unavailable} {
				sim := openaisim.New(always(openaisim.Reply{Text: "Hello."}))
				sim.Fail(openaisim.Fault{Kind: kind, RetryAfter: tt.header})
				m := newBench(t, sim)
				_, err := m.Request(t.Context(), ask("hi"))
				require.NoError(t, err)
				require.Equal(t, []time.Duration{tt.want}, m.waited())
			}
		})
	}
	for _, senseless := range []string{"", "soon", "-3", "NaN", "0", "Sat, 01 Mar 2025 11:00:00 GMT"} {
		sim := openaisim.New(always(openaisim.Reply{Text: "Hello."}))
		sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited, RetryAfter: senseless})
		m := newBench(t, sim)
		_, err := m.Request(t.Context(), ask("hi"))
		require.NoError(t, err)
		require.Len(t, m.waited(), 1)
		require.Positive(t, m.waited()[0], senseless)
		require.LessOrEqual(t, m.waited()[0], 500*time.Millisecond, senseless)
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	m := newBench(t, http.NotFoundHandler(), func(c *openaimodel.Config) {
		c.BaseURL = "http://bo77:hunter2@" + l.Addr().String() + "/v1"
	})
	_, err = m.Request(t.Context(), ask("hi"))
	require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
	require.Len(t, m.waited(), 3)
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "bo77")
	require.ErrorContains(t, err, "connect")
}

func TestAnUnusableRequestIsNotSent(t *testing.T) {
	sim := openaisim.New()
	badSchema := ask("hi", "a")
	badSchema.Tools[0].Parameters = []byte(`{"type":`)
	_, err := newBench(t, sim).Request(t.Context(), badSchema)
	require.Equal(t, agentrun.ModelRefused, modelError(t, err).Code)

	_, err = newBench(t, sim, func(c *openaimodel.Config) {
		c.APIKey = func() string { return "sk-\nbroken" }
	}).Request(t.Context(), ask("hi"))
	e := modelError(t, err)
	require.Equal(t, agentrun.ModelRefused, e.Code)
	require.Contains(t, e.Words, "API key")
	require.NotContains(t, err.Error(), "broken")
	require.Empty(t, sim.Requests())
}

func TestTheKeyIsReadForEveryAttempt(t *testing.T) {
	sim := openaisim.New(always(openaisim.Reply{Text: "Hello."}))
	sim.Fail(openaisim.Fault{Kind: openaisim.ServerError})
	n := 0
	m := newBench(t, sim, func(c *openaimodel.Config) {
		c.APIKey = func() string { n++; return " key-" + strconv.Itoa(n) + "\n" }
	})
	_, err := m.Request(t.Context(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, "Bearer key-1", sim.Requests()[0].Header.Get("Authorization"))
	require.Equal(t, "Bearer key-2", sim.Requests()[1].Header.Get("Authorization"))
}

// No time limit ends a read of a connection that the server took over.
func TestASwitchOfProtocolsHoldsNobody(t *testing.T) {
	m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = plainhttptest.Switch(w) // what the client makes of it is tested
	}))
	_, err := m.Request(t.Context(), ask("hi"))
	require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := openaisim.New()
	srv := httptest.NewServer(elsewhere)
	t.Cleanup(srv.Close)
	m := newBench(t, http.RedirectHandler(srv.URL+"/v1/chat/completions", http.StatusTemporaryRedirect))
	_, err := m.Request(t.Context(), ask("hi"))
	require.Equal(t, agentrun.ModelRefused, modelError(t, err).Code)
	require.Empty(t, elsewhere.Requests())
}
