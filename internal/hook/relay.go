package hook

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// GatewayPath is where the gateway is, below the address of Countersign.
const GatewayPath = "/v1/mcp/gateway"

// Relay is the gateway over standard input and output, for clients of MCP that only
// start programs. It passes on messages as they are, with the token of the agent,
// and knows nothing else. It ends when its input does, and then leaves every call.
func Relay(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	a, err := newAPI(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{api: a, url: a.base.JoinPath(GatewayPath).String(), out: out, calls: map[string]context.CancelFunc{}}
	defer r.open.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if closer, ok := in.(io.Closer); ok {
			_ = closer.Close() // it waits for input
		}
	})
	defer stop()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxMessage)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) > 0 {
			r.pass(ctx, bytes.Clone(line))
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a message has more than %d bytes", maxMessage)
	}
	return lines.Err()
}

// maxMessage is how many bytes a message may have.
const maxMessage = 4 << 20

// maxReason is how many bytes of the gateway's reason to refuse a message are told.
const maxReason = 200

type relay struct {
	api  *api
	url  string
	open sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	session string
	version string                        // of the protocol, as the gateway answered
	calls   map[string]context.CancelFunc // of the requests that have no answer, by the JSON of their ids
}

// A relayed message is what a relay reads of one.
type relayed struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name    string                     `json:"name"`
		URI     string                     `json:"uri"`
		Request json.RawMessage            `json:"requestId"`
		Meta    map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// pass sends a message, and its answers back. Whoever cancels a request also leaves
// its connection.
func (r *relay) pass(ctx context.Context, line []byte) {
	var m relayed
	_ = json.Unmarshal(line, &m) // the gateway says what is wrong with it
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	if len(m.ID) > 0 {
		r.calls[string(m.ID)] = cancel
	}
	left := r.calls[string(m.Params.Request)]
	r.mu.Unlock()
	send := func() {
		defer cancel()
		err := r.send(ctx, m, line)
		if m.Method == "notifications/cancelled" && left != nil { //nolint:misspell // the word of MCP
			left()
		}
		if len(m.ID) == 0 {
			return
		}
		r.mu.Lock()
		delete(r.calls, string(m.ID))
		r.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			r.refuse(m.ID, err)
		}
	}
	if m.Method == "initialize" {
		send() // what follows needs its answer
		return
	}
	r.open.Go(send)
}

const versionKey = "io.modelcontextprotocol/protocolVersion"

func (r *relay) send(ctx context.Context, m relayed, line []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(line))
	if err != nil {
		return errors.New("the URL of Countersign cannot be used")
	}
	var version string
	_ = json.Unmarshal(m.Params.Meta[versionKey], &version)
	r.mu.Lock()
	session, known := r.session, r.version
	r.mu.Unlock()
	for key, value := range map[string]string{
		"Authorization": "Bearer " + r.api.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": session, "MCP-Protocol-Version": cmp.Or(version, known), "Mcp-Method": m.Method,
		"Mcp-Name": cmp.Or(m.Params.Name, m.Params.URI),
	} {
		if value != "" {
			q.Header.Set(key, value)
		}
	}
	answer, err := r.api.http.Do(q)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return fmt.Errorf("the gateway cannot be reached: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if m.Method == "initialize" {
		r.mu.Lock()
		r.session = answer.Header.Get("Mcp-Session-Id")
		r.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream" && answer.StatusCode == http.StatusOK:
		return r.stream(m, answer.Body)
	case kind == "application/json":
		raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		if err != nil {
			return errors.New("the answer of the gateway cannot be read")
		}
		answered, err := r.write(m, raw)
		switch {
		case err == nil:
			return m.unanswered(answered)
		case answer.StatusCode == http.StatusOK:
			return err
		} // else it is of a proxy
	case answer.StatusCode == http.StatusAccepted && len(m.ID) == 0:
		return nil
	case answer.StatusCode >= http.StatusBadRequest:
		why := ""
		if kind == "text/plain" {
			words, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason))
			why = plain(strings.TrimSpace(string(words)))
		}
		switch {
		case answer.StatusCode == http.StatusUnauthorized:
			return errors.New(strings.TrimSuffix("the gateway does not take the token: "+why, ": "))
		case why != "" && answer.StatusCode != http.StatusNotFound:
			return fmt.Errorf("the gateway does not take the message: %s", why)
		}
	}
	if answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("what is at the URL of Countersign has no %s (404): "+
			"it must be the address of http.listen, of a bot with gateways in its configuration", q.URL.Path)
	}
	return fmt.Errorf("the gateway answered with the HTTP status %d", answer.StatusCode)
}

// stream writes the messages of a stream of events.
func (r *relay) stream(m relayed, body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxAnswer)
	var data []byte
	answered := false
	for lines.Scan() {
		value, isData := strings.CutPrefix(lines.Text(), "data:")
		switch {
		case isData:
			data = append(append(data, strings.TrimPrefix(value, " ")...), '\n')
		case lines.Text() == "" && len(data) > 0:
			is, err := r.write(m, data)
			if err != nil {
				return err
			}
			answered, data = answered || is, nil
		}
	}
	return m.unanswered(answered) // whether or not the stream was cut off
}

// unanswered is an error if the message is a request that got no answer: its client
// would wait for one.
func (m relayed) unanswered(answered bool) error {
	if answered || len(m.ID) == 0 {
		return nil
	}
	return errors.New("the connection to the gateway ended; make the same call again to get its result")
}

// isAnswer reports whether a message of the gateway is the answer to this one, and
// returns an error if it is no message, or no batch of them. Some clients end when they
// read anything else.
func (m relayed) isAnswer(message []byte) (bool, error) {
	type header struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		ID      any    `json:"id"`
	}
	var batch []header
	if json.Unmarshal(message, &batch) != nil {
		batch = make([]header, 1)
		_ = json.Unmarshal(message, &batch[0]) // what is no object has no version
	}
	if len(batch) == 0 || slices.ContainsFunc(batch, func(h header) bool { return h.Version != "2.0" }) {
		return false, errors.New("the answer of the gateway is not a message")
	}
	var id any
	_ = json.Unmarshal(m.ID, &id) // a notification has none
	return slices.ContainsFunc(batch, func(h header) bool { return h.Method == "" && reflect.DeepEqual(h.ID, id) }), nil
}

// write writes a message of the gateway on one line, and reports whether it is the
// answer to this one.
func (r *relay) write(m relayed, message []byte) (answered bool, err error) {
	if answered, err = m.isAnswer(message); err != nil {
		return false, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, message); err != nil {
		return false, errors.New("the answer of the gateway is not JSON")
	}
	var known struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Method == "initialize" && json.Unmarshal(line.Bytes(), &known) == nil && known.Result.Version != "" {
		r.version = known.Result.Version
	}
	line.WriteByte('\n')
	_, err = r.out.Write(line.Bytes())
	return answered, err
}

// refuse answers a request with an error.
func (r *relay) refuse(id json.RawMessage, why error) {
	raw, err := encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32000, "message": why.Error()}})
	if err == nil {
		_, _ = r.write(relayed{}, raw) // the client may be gone
	}
}
