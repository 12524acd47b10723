package openaimodel_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

// hang answers nothing until the client leaves, and says when it was asked.
func hang(asked chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without it the server would not notice
		asked <- struct{}{}
		<-r.Context().Done()
	}
}

func TestTheEndOfTheContextEndsTheRequest(t *testing.T) {
	asked := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	m := newBench(t, hang(asked))
	_, err := m.Request(ctx, ask("hi"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorAs(t, err, new(*agentrun.ModelError))
	require.Empty(t, m.waited())

	sim := openaisim.New(always(twoCalls))
	sim.Fail(openaisim.Fault{Kind: openaisim.Stalled})
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = newBench(t, sim).Request(ctx, ask("hi", "read_file"))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	sim = openaisim.New(always(twoCalls))
	sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited, RetryAfter: "50"})
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = newBench(t, sim, func(c *openaimodel.Config) { c.Wait = nil }).Request(ctx, ask("hi", "read_file"))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = newBench(t, sim).Request(ctx, ask("hi"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheDefaultWaitWaits(t *testing.T) {
	sim := openaisim.New(always(openaisim.Reply{Text: "Hello."}))
	sim.Fail(openaisim.Fault{Kind: openaisim.RateLimited, RetryAfter: "0.001"})
	_, err := newBench(t, sim, func(c *openaimodel.Config) { c.Wait = nil }).Request(t.Context(), ask("hi"))
	require.NoError(t, err)
	require.Len(t, sim.Requests(), 2)
}

func TestSilenceBeforeTheFirstWordHasItsOwnLimit(t *testing.T) {
	asked := make(chan struct{}, 2)
	m := newBench(t, hang(asked), func(c *openaimodel.Config) {
		c.First, c.Idle, c.Attempts = 30*time.Millisecond, time.Hour, 2
	})
	_, err := m.Request(t.Context(), ask("hi"))
	require.Equal(t, agentrun.ModelUnavailable, modelError(t, err).Code)
	require.ErrorContains(t, err, "silent")
	require.Len(t, m.waited(), 1)

	// A role and a comment are not yet a word; thinking may take longer than Idle.
	got, err := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n: wait\n\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(300 * time.Millisecond)
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}), func(c *openaimodel.Config) { c.Idle = 200 * time.Millisecond }).Request(t.Context(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, []agentrun.ResponsePart{agentrun.Text{Content: "Hello."}}, got.Parts)
}

func TestAnAnswerWithoutEndIsBrokenOffOnce(t *testing.T) {
	var asked atomic.Int32
	_, err := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"and \"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-tick.C
		}
	}), func(c *openaimodel.Config) { c.Timeout = time.Second }).Request(t.Context(), ask("hi"))
	e := modelError(t, err)
	require.Equal(t, agentrun.ModelUnavailable, e.Code)
	require.Contains(t, e.Words, "in time")
	require.EqualValues(t, 1, asked.Load())
}

func TestAServerCannotFillTheMemory(t *testing.T) {
	chunk := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"" + string(bytes.Repeat([]byte("x"), 64<<10)) + "\"}}]}\n\n")
	noise := bytes.Repeat([]byte("x"), 64<<10)
	for name, tt := range map[string]struct {
		status      int
		begin, then []byte
		code        agentrun.ModelErrorCode
		most        int64
	}{
		"chunks without end":      {200, nil, chunk, agentrun.ModelUnavailable, 32 << 20},
		"a line without end":      {200, []byte("data: {"), noise, agentrun.ModelUnavailable, 32 << 20},
		"a comment without end":   {200, []byte(": "), noise, agentrun.ModelUnavailable, 32 << 20},
		"an error without end":    {400, []byte("{"), noise, agentrun.ModelRefused, 16 << 20},
		"one event far too large": {200, []byte("data: {\"x\":\"" + string(bytes.Repeat(noise, 17)) + "\"}\n\n"), nil, agentrun.ModelUnavailable, 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			m := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				n, err := w.Write(tt.begin)
				sent.Add(int64(n))
				for len(tt.then) > 0 && err == nil && r.Context().Err() == nil {
					n, err = w.Write(tt.then)
					sent.Add(int64(n))
				}
			}))
			_, err := m.Request(t.Context(), ask("hi"))
			require.Equal(t, tt.code, modelError(t, err).Code, "%v", err)
			require.Empty(t, m.waited())
			require.Less(t, sent.Load(), tt.most)
		})
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	sim := openaisim.New(always(twoCalls))
	sim.Fail(openaisim.Fault{Kind: openaisim.Dropped}, openaisim.Fault{Kind: openaisim.RateLimited})
	m := newBench(t, sim)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := m.Request(t.Context(), ask("go", "read_file"))
			if err != nil || len(got.Parts) != 3 {
				t.Errorf("got %d parts, error %v", len(got.Parts), err)
			}
		})
	}
	all.Wait()
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		sim := openaisim.New(always(twoCalls))
		srv := httptest.NewServer(sim)
		defer srv.Close()
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		m, err := openaimodel.New(openaimodel.Config{
			APIKey: func() string { return theKey }, BaseURL: srv.URL + "/v1", Model: "m", HTTPClient: client,
			Idle: time.Second, Attempts: 1, Now: func() time.Time { return noon },
		})
		require.NoError(t, err)
		for _, kind := range []openaisim.FaultKind{
			"", openaisim.ServerError, openaisim.BadGateway, openaisim.Unauthorized, openaisim.HungUp, openaisim.Dropped,
			openaisim.Stalled, openaisim.CutShort, openaisim.MalformedSSE, openaisim.ErrorEvent, openaisim.WrongContentType,
		} {
			sim.Fail(openaisim.Fault{Kind: kind})
			_, err := m.Request(t.Context(), ask("go", "read_file"))
			require.Equal(t, kind == "", err == nil, kind)
		}
	}()
	// Not require.Eventually, which counts its condition among the goroutines.
	tick, end := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-end:
			stacks := make([]byte, 1<<20)
			require.Failf(t, "goroutines are left", "%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}
