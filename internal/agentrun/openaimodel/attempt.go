package openaimodel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign/countersign/internal/agentrun"
)

// Why an attempt was ended from our side.
var (
	errTimeout  = errors.New("the answer took too long")
	errSilent   = errors.New("the server was silent for too long")
	errRedirect = errors.New("the server redirects elsewhere, which is not followed")
	errBadKey   = errors.New("the key has characters that a header cannot carry")
)

// A query is one request, in one of the two protocols.
type query struct {
	send   func(ctx context.Context, c *openai.Client) (events, error)
	answer func() answer     // what is put together from the events of one stream
	most   int               // the size limit of one event, in bytes
	extras []json.RawMessage // see [extrasOf]
}

// events are those of a stream, each a JSON document.
type events interface{ RecvRaw() ([]byte, error) }

// An answer is put together from the events of one stream.
type answer interface {
	add(raw []byte) error
	begun() bool // whether the model has said anything
	// ran returns the calls that the provider made itself, also if the answer broke
	// off.
	ran() []agentrun.ProviderCall
	response() (agentrun.Response, error)
}

// ask makes one attempt at an answer.
func (m *Model) ask(ctx context.Context, q query) (agentrun.Response, *failure) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whole := time.AfterFunc(m.timeout, func() { cancel(errTimeout) })
	defer whole.Stop()
	silence := time.AfterFunc(m.first, func() { cancel(errSilent) })
	defer silence.Stop()

	a := &attempt{client: m.client, key: strings.TrimSpace(m.apiKey()), now: m.now, patience: m.first, most: q.most, extras: q.extras}
	a.heard = func() { silence.Reset(a.patience) }
	defer a.close()

	answer, err := a.read(ctx, m, q)
	if err == nil {
		var response agentrun.Response
		if response, err = answer.response(); err == nil {
			response.At = m.now()
			if response.ModelName == "" {
				response.ModelName = m.model
			}
			return response, nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	failed := a.judge(err)
	failed.text = m.conceal(failed.text)
	if answer != nil {
		failed.ran = answer.ran()
	}
	return agentrun.Response{}, failed.redact(append(m.userinfo(), a.key)...)
}

// An attempt is the HTTP client of one attempt: go-openai sends its one request
// through it, and keeps no header of what came back, so the attempt does.
type attempt struct {
	client *http.Client
	key    string
	now    func() time.Time
	most   int               // bytes of one event
	extras []json.RawMessage // see [extrasOf]

	patience time.Duration // how long the stream may pause now
	heard    func()        // something came from the server

	sent        bool
	left        atomic.Bool // whether the request has a connection, and may have reached the server
	status      int
	contentType string
	retryAfter  time.Duration
	body        io.Closer
}

// read sends the request and reads the stream to its end. With an error it returns
// what was read of the answer until then; nil for nothing.
func (a *attempt) read(ctx context.Context, m *Model, q query) (answer, error) {
	if strings.ContainsFunc(a.key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errBadKey
	}
	config := openai.DefaultConfig(a.key)
	config.BaseURL = m.baseURL()
	config.HTTPClient = a
	stream, err := q.send(ctx, openai.NewClientWithConfig(config))
	if err != nil {
		return nil, err
	}
	got := q.answer()
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			return got, nil // whether it is all, the answer knows
		}
		if err == nil {
			err = got.add(raw)
		}
		if err != nil {
			return got, err
		}
		if got.begun() {
			a.patience = m.idle
			a.heard() // what was read with the first word counted as before it
		}
	}
}

// Do sends the request and keeps what go-openai does not.
func (a *attempt) Do(r *http.Request) (*http.Response, error) {
	a.sent = true
	if err := a.addExtras(r); err != nil {
		return nil, err
	}
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	r.Header.Del("tracestate") // what others have written into the trace is not for the provider
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { a.left.Store(true) }}))
	resp, err := a.client.Do(r) //nolint:gosec // the operator says where the model is
	if err != nil {
		return nil, err
	}
	a.body = resp.Body
	a.heard()
	a.status = resp.StatusCode
	a.contentType = resp.Header.Get("Content-Type")
	a.retryAfter = retryAfter(resp.Header, a.now())
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, errRedirect
	}
	from := &bounded{r: resp.Body, heard: a.heard}
	if resp.StatusCode >= 400 {
		from.left, from.cut = maxErrorBody, true
		resp.Body = readCloser{from, resp.Body}
		return resp, nil
	}
	from.left = maxBody
	resp.Body = readCloser{newDataLines(from, a.most), resp.Body}
	return resp, nil
}

// addExtras adds to the request what go-openai has no fields for.
func (a *attempt) addExtras(r *http.Request) error {
	if a.extras == nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = withExtras(body, a.extras)
	}
	if err != nil {
		return err
	}
	r.Body, r.GetBody, r.ContentLength = io.NopCloser(bytes.NewReader(body)), nil, int64(len(body))
	return nil
}

// close ends the response: go-openai leaves that of an error open.
func (a *attempt) close() {
	if a.body != nil {
		_ = a.body.Close() // there is nothing left to lose
	}
}
