package mcptool

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// exchangeKey is where a request says, in its _meta, which exchange it begins.
const exchangeKey = "countersign.dev/request"

// An exchange is one request with what became of it on the wire.
type exchange struct {
	token string
	id    json.RawMessage // of the request; set when it is sent
	probe bool            // a ping: whoever sent it says what a refusal means

	mu     sync.Mutex
	left   bool   // bytes of the request may have reached the server
	status int    // that HTTP answered, if it was not a success
	forgot bool   // that status says that the server does not know the session
	failed string // what the server sent instead of an answer, in a sentence
	answer *answer

	stream resumption // that the answer comes in
}

// An answer is a JSON-RPC response as it arrived.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (e *exchange) leaves() { e.mu.Lock(); e.left = true; e.mu.Unlock() }

func (e *exchange) refused(status int, forgot bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.forgot = status, forgot
}

func (e *exchange) fails(sentence string) { e.mu.Lock(); e.failed = sentence; e.mu.Unlock() }

// unanswered is a message with which the SDK ends the request.
func (e *exchange) unanswered() []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no answer"}}`, e.id)
}

func (e *exchange) failure() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// forgotten reports whether the server refused the request because it does not know the
// session: then MCP wants it made in a new one.
func (e *exchange) forgotten() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.forgot
}

// outcome returns the answer, whether the request had left, and the status with
// which HTTP refused it.
func (e *exchange) outcome() (a *answer, left bool, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer, e.left, e.status
}

// A tap reads the messages of one connection beside the SDK. Of several answers
// to one request the first counts.
type tap struct {
	mu      sync.Mutex
	byToken map[string]*exchange
	byID    map[string]*exchange
	rest    *time.Timer // that runs out if no answer arrives
	quiet   time.Duration
	idle    bool // it has run out
}

func newTap(quiet time.Duration) *tap {
	return &tap{byToken: map[string]*exchange{}, byID: map[string]*exchange{}, rest: time.NewTimer(quiet), quiet: quiet}
}

type exchangeOf struct{}

// begin returns a new exchange, the context of its request, and the _meta.
func (t *tap) begin(ctx context.Context) (context.Context, *exchange, map[string]any) {
	e := &exchange{token: rand.Text()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byToken[e.token] = e
	return context.WithValue(ctx, exchangeOf{}, e), e, map[string]any{exchangeKey: e.token}
}

func (t *tap) end(e *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byToken, e.token)
	for id, other := range t.byID {
		if other == e {
			delete(t.byID, id)
		}
	}
}

// sending returns the exchange that a message begins; nil if it begins none.
func (t *tap) sending(message []byte) *exchange {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || len(m.ID) == 0 {
		return nil
	}
	var token string
	if json.Unmarshal(m.Params.Meta[exchangeKey], &token) != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byToken[token]
	if e != nil {
		e.id = m.ID
		t.byID[string(m.ID)] = e
	}
	return e
}

// arrived notes a message if it is the answer to an exchange.
func (t *tap) arrived(message []byte) {
	var m struct {
		answer

		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &m) != nil || m.Method != "" || len(m.Result) == 0 && m.Error == nil {
		return
	}
	e := t.of(m.ID)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status == 0 { // what comes with a refusal may be about the session
		t.rests()
	}
	if e.answer == nil {
		e.answer = &m.answer
	}
}

// rests notes that an answer has arrived, or that a ping has found out nothing.
func (t *tap) rests() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest.Reset(t.quiet)
	t.idle = false
}

// isQuiet reports whether there was nothing to note for a while.
func (t *tap) isQuiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.rest.C:
		t.idle = true
	default:
	}
	return t.idle
}

// answers returns the exchange that a message would end if it could be read; nil if it
// would end none.
func (t *tap) answers(message []byte) *exchange {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(message, &m) != nil || m.Version != "2.0" || len(m.Method) > 0 || len(m.Result)+len(m.Error) == 0 {
		return nil
	}
	return t.of(m.ID)
}

// of returns the exchange whose request has this id, or nil.
func (t *tap) of(id json.RawMessage) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[string(bytes.TrimSpace(id))]
}
