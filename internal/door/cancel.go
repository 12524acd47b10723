package door

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	callMethod     = "tools/call"
	canceledMethod = "notifications/cancelled" //nolint:misspell // the word of MCP
)

// A Message is what a door has to know of a message of MCP before the SDK reads it.
type Message struct {
	session string // of the client; empty if it has none
	id      string // the JSON of its id
	cancels string // the JSON of the id of the message that this one cancels
}

// ReadMessage reads as much of a message as can be read: the SDK says what is wrong with
// it. The first one of a client gets a session. No session is kept: it only tells the
// requests of one client from those of another, for a client that cancels one.
func ReadMessage(w http.ResponseWriter, r *http.Request, body []byte) Message {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Request json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil {
		return Message{}
	}
	if m.Method == "initialize" {
		w.Header().Set(sessionHeader, rand.Text())
	}
	out := Message{session: r.Header.Get(sessionHeader), id: string(m.ID)}
	if m.Method == canceledMethod {
		out.cancels = string(m.Params.Request)
	}
	return out
}

// Name names the message among those of the agent of c. It is empty for a client
// without a session: such a client closes the connection of a call that it does not
// want any more.
func (m Message) Name(c Caller) string { return m.named(c, m.id) }

// Cancels is the [Message.Name] of the message that this one cancels; empty if it
// cancels none.
func (m Message) Cancels(c Caller) string { return m.named(c, m.cancels) }

func (m Message) named(c Caller, id string) string {
	if m.session == "" || id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.Credential + "\x00" + m.session + "\x00" + id))
	return "mcp/" + hex.EncodeToString(sum[:])
}

// Cancelable returns a context that ends when the client cancels its call, which has
// this name.
func (d *Door) Cancelable(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if name == "" {
		return ctx, cancel
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[name] = &cancel
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls[name] == &cancel { // a client may have sent another message with this id
			delete(d.calls, name)
		}
		cancel()
	}
}

// Cancel ends the wait for the call with this name, and reports whether it is held
// here. A connection that stays open says nothing: clients leave it when they give up.
func (d *Door) Cancel(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	cancel := d.calls[name]
	if cancel != nil {
		(*cancel)()
	}
	return cancel != nil
}
