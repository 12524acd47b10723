package mcptool

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/plainhttp"
)

const sessionHeader = "Mcp-Session-Id"

// web returns the transport of a server over streamable HTTP. It follows no
// redirect: the headers are for this address. It calls spend when the stream ends on
// which the server says what has changed, and when the server has forgotten the session:
// the SDK does not always open another one.
func web(s Server, t *tap, spend func()) mcp.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = 0 // a call has its own limit
	base.TLSHandshakeTimeout = 10 * time.Second
	return &mcp.StreamableClientTransport{
		Endpoint: s.URL, MaxEventSize: -1, // [events] has a limit
		HTTPClient: &http.Client{
			Transport:     &tapped{base: plainhttp.Transport(base), headers: s.Headers, tap: t, spend: spend},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// tapped sends requests with the headers of the configuration, and reads the
// messages in both directions.
type tapped struct {
	base    http.RoundTripper
	headers map[string]string
	tap     *tap
	spend   func()
	own     resumption  // of the stream on which the server says what has changed
	listens atomic.Bool // that stream has begun
}

// RoundTrip implements [http.RoundTripper].
func (t *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	r, begun, err := t.outgoing(r)
	if err != nil {
		return nil, err
	}
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	resp, err := t.base.RoundTrip(r)
	if r.Method == http.MethodGet {
		return t.resumed(r, resp, err)
	}
	if err != nil {
		return nil, err
	}
	forgot := resp.StatusCode == http.StatusNotFound && r.Method == http.MethodPost && r.Header.Get(sessionHeader) != ""
	if begun != nil && resp.StatusCode >= 300 {
		begun.refused(resp.StatusCode, forgot)
	}
	if forgot && (begun == nil || !begun.probe) {
		t.spend()
	}
	if begun != nil {
		resp.Header.Del(sessionHeader)
	}
	kind := mediaType(resp)
	switch {
	case kind == eventStream && (begun == nil || resp.StatusCode < 300):
		resp.Body = t.events(resp.Body, begun)
	case begun != nil:
		t.contain(resp, kind, begun)
	default:
		resp.Body = &whole{body: resp.Body}
	}
	if r.Header.Get("Mcp-Method") == "subscriptions/listen" {
		t.listens.Store(true)
		resp.Body = &listening{resp.Body, t.spend}
	}
	return resp, nil
}

func mediaType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

const (
	eventStream = "text/event-stream"
	jsonMessage = "application/json"
)

// contain gives the SDK a response that it can use. At any other it would end the
// connection, and then it is not known of the calls that are under way whether they took
// effect. So instead of such a response it reads that the request has failed.
func (t *tapped) contain(resp *http.Response, kind string, e *exchange) {
	var body []byte
	var err error
	if kind == jsonMessage {
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	}
	_ = resp.Body.Close()
	switch {
	case len(body) > maxMessage:
		e.fails(fmt.Sprintf("The server sent a message of more than %d MiB.", maxMessage>>20))
	case err != nil: // it was cut
	default:
		t.tap.arrived(body)
		answered, _, status := e.outcome()
		if _, err := jsonrpc.DecodeMessage(body); err == nil && answered != nil && (status == 0 || answered.Error != nil) {
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return
		}
		e.fails(fmt.Sprintf("The response of the server, with the HTTP status %d, is no answer to the call.", resp.StatusCode))
	}
	failed := e.unanswered()
	if resp.StatusCode < 300 {
		resp.StatusCode = http.StatusOK
	}
	resp.Header.Set("Content-Type", jsonMessage)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(failed)), int64(len(failed))
}

// outgoing returns a copy of the request, and the exchange that it begins.
func (t *tapped) outgoing(r *http.Request) (*http.Request, *exchange, error) {
	if r.Body == nil || r.Method != http.MethodPost {
		return r.Clone(r.Context()), nil, nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it is in memory
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	ctx, begun := r.Context(), t.tap.sending(body)
	if begun != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteHeaders: begun.leaves, // the body follows in the same moment
		})
	}
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = nil // it is never sent twice
	return r, begun, nil
}

// listening is a stream of changes; over is called when it has ended.
type listening struct {
	io.ReadCloser

	over func()
}

func (l *listening) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if err != nil {
		l.over()
	}
	return n, err
}

// whole is a response with one message.
type whole struct {
	body io.ReadCloser
	read int
}

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	if w.read += n; w.read > maxMessage {
		return 0, errTooLong
	}
	return n, err
}

func (w *whole) Close() error { return w.body.Close() }

// refusals are the statuses with which a server, or what is before it, refuses a
// request before anything is done.
var refusals = map[int]bool{
	http.StatusBadRequest: true, http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true,
	http.StatusMethodNotAllowed: true, http.StatusNotAcceptable: true, http.StatusRequestEntityTooLarge: true,
	http.StatusUnsupportedMediaType: true, http.StatusTooManyRequests: true,
	http.StatusMovedPermanently: true, http.StatusFound: true, http.StatusSeeOther: true,
	http.StatusTemporaryRedirect: true, http.StatusPermanentRedirect: true,
}
