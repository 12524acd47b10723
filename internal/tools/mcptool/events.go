package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxResumptions is how often the SDK asks for the rest of a stream, without one event
// in between, before it would end the connection.
const maxResumptions = 5

// A resumption is how far a stream of server-sent events is, over all the responses that
// it comes in.
type resumption struct {
	mu    sync.Mutex
	last  string // the id of the last event
	tried string // what last was at the last try to resume the stream
	tries int    // since last has changed
}

func (r *resumption) passes(id string) { r.mu.Lock(); r.last = id; r.mu.Unlock() }

// again notes a try to resume the stream, and reports whether the SDK may end the
// connection if nothing comes now either.
func (r *resumption) again() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != r.tried {
		r.tried, r.tries = r.last, 0
	}
	r.tries++
	return r.tries >= maxResumptions
}

// resumed gives the SDK what it can use of the response to a request for a stream of
// events. At a stream that cannot be resumed it would end the connection. So instead it
// reads that the request has failed which the stream belongs to; and from a stream on
// which the server says what has changed it reads nothing more, until another connection
// takes the place of this one.
func (t *tapped) resumed(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	e, _ := r.Context().Value(exchangeOf{}).(*exchange)
	if e != nil && e.id == nil {
		e = nil // the SDK asks for something else first
	}
	stream := &t.own
	if e != nil {
		stream = &e.stream
	}
	begun := e != nil || t.listens.Load()
	exhausted := begun && stream.again()
	var why string
	switch {
	case err != nil && !exhausted:
		return nil, err
	case err != nil:
		why = "The connection to the server ended before it answered."
	case resp.StatusCode < 300 && mediaType(resp) == eventStream && !exhausted:
		t.listens.Store(t.listens.Load() || e == nil)
		resp.Body = t.events(resp.Body, e)
		return resp, nil
	case !begun: // the server has no such stream
		resp.Body = &whole{body: resp.Body}
		return resp, nil
	default:
		_ = resp.Body.Close()
		why = fmt.Sprintf("The connection to the server ended before it answered, and could not be resumed (HTTP status %d).", resp.StatusCode)
	}
	body := io.ReadCloser(silent(r.Context().Done()))
	if e != nil {
		e.fails(why)
		body = io.NopCloser(bytes.NewReader(event("", "", e.unanswered())))
	} else {
		t.spend()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {eventStream}}, Body: body, ContentLength: -1, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// silent is a stream without events, until the channel is closed.
type silent <-chan struct{}

func (s silent) Read([]byte) (int, error) {
	<-s
	return 0, context.Canceled
}

func (silent) Close() error { return nil }

// events is a response of server-sent events, each with one message. The SDK would end
// the connection at an event that it cannot read, so it does not get those.
type events struct {
	body   io.ReadCloser
	from   *bufio.Reader
	tap    *tap
	call   *exchange // nil if the stream belongs to no request of the bot's
	stream *resumption
	bad    bool // an event could not be read
	over   bool // the SDK has read that the request failed
	rest   []byte
}

// events begins a response to a request; nil if it is none of the bot's.
func (t *tapped) events(body io.ReadCloser, call *exchange) io.ReadCloser {
	stream := &t.own
	if call != nil {
		stream = &call.stream
	}
	return &events{body: body, from: bufio.NewReader(body), tap: t.tap, call: call, stream: stream}
}

// Read implements [io.Reader].
func (e *events) Read(b []byte) (int, error) {
	for len(e.rest) == 0 {
		var err error
		if e.over {
			return 0, io.EOF
		}
		if e.rest, err = e.next(); err == nil {
			continue
		}
		why := "The server sent an event that cannot be read, and no answer after it."
		switch {
		case e.call != nil && errors.Is(err, errTooLong):
			why = fmt.Sprintf("The server sent a message of more than %d MiB.", maxMessage>>20)
		case e.call == nil || !e.bad:
			return 0, err
		}
		e.call.fails(why)
		e.rest, e.over = event("", "", e.call.unanswered()), true
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next returns the next event, without data if there is no message in it.
func (e *events) next() ([]byte, error) {
	var id, retry, name string
	var data []byte
	var err error
	for size := 0; err == nil; {
		var line []byte
		line, err = e.line(maxMessage - size)
		size += len(line)
		if err != nil && (!errors.Is(err, io.EOF) || size == 0) {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(field) {
		case "id":
			id = string(value)
		case "retry":
			retry = string(value)
		case "event":
			name = string(value)
		case "data":
			data = append(append(data, value...), ' ') // between the tokens of a message
		}
	}
	if data = bytes.TrimSpace(data); name != "" && name != "message" {
		data = nil
	}
	if len(data) == 0 && err != nil { // its message has not come: its id is none to go on after
		return nil, err
	}
	if len(data) > 0 {
		if _, unreadable := jsonrpc.DecodeMessage(data); unreadable != nil {
			if err != nil { // it was cut, and comes again if the stream is resumed
				return nil, err
			}
			e.bad, data = true, nil
		}
	}
	if id != "" {
		e.stream.passes(id)
	}
	if len(data) > 0 {
		e.tap.arrived(data)
	}
	return event(id, retry, data), nil
}

// line returns the next line, with its end if it has one.
func (e *events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.from.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func event(id, retry string, data []byte) []byte {
	var b bytes.Buffer
	for _, field := range []struct{ name, value string }{{"id", id}, {"retry", retry}, {"data", string(data)}} {
		if field.value != "" {
			_, _ = fmt.Fprintf(&b, "%s: %s\n", field.name, field.value)
		}
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func (e *events) Close() error { return e.body.Close() }
