package outbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/webhook"
)

// requestData is the data of a message about a request. It has no names of people
// and no reasons: a receiver reads those with its own credential.
type requestData struct {
	ID         string       `json:"id"`
	Agent      string       `json:"agent"`
	ExternalID string       `json:"external_id,omitempty"`
	Group      string       `json:"group,omitempty"`
	State      intake.State `json:"state"`
	Call       string       `json:"call,omitempty"` // that the message is about
	Tool       string       `json:"tool,omitempty"`
	Calls      []callData   `json:"calls,omitempty"`
	Trace      string       `json:"traceparent,omitempty"` // of who asked, as they gave it
	LeftOut    []string     `json:"left_out,omitempty"`    // what was too much for a message: arguments, receipts, calls
}

type callData struct {
	ID          string         `json:"id"`
	Tool        string         `json:"tool"`
	Outcome     intake.Outcome `json:"outcome"`
	Digest      string         `json:"digest"`
	UsableUntil time.Time      `json:"usable_until,omitzero"`
	Receipt     string         `json:"receipt,omitempty"`
	Arguments   *string        `json:"arguments,omitempty"` // their exact bytes
}

// About returns the message about a request. The arguments are in it only if the
// endpoint is to have them. What makes a message too large is left out, and the
// message says so: first arguments, then receipts, then the calls.
func About(n intake.Notice, arguments bool) (Message, error) {
	m := Message{Agent: n.Agent, Endpoint: n.Endpoint, Type: n.Type, At: n.At, Key: n.Key}
	parts := []string{"calls", "receipts", "arguments"}
	if !arguments {
		parts = parts[:2]
	}
	for kept := len(parts); kept >= 0; kept-- {
		data, err := json.Marshal(dataOf(n, parts[:kept], parts[kept:]))
		if err != nil {
			return Message{}, fmt.Errorf("encode a message about %s: %w", n.Request.ID, err)
		}
		m.Data = data
		_, err = webhook.Message{ID: messageID(string(n.Request.ID), m), Type: m.Type, Timestamp: m.At, Data: data}.Body()
		if !errors.Is(err, webhook.ErrTooLarge) {
			return m, err
		}
	}
	return Message{}, fmt.Errorf("a message about %s: %w", n.Request.ID, webhook.ErrTooLarge)
}

func dataOf(n intake.Notice, kept, leftOut []string) requestData {
	d := requestData{
		ID: string(n.Request.ID), Agent: cmp.Or(n.Request.Agent, n.Agent), Call: string(n.Call), Tool: n.Tool, ExternalID: n.Request.ExternalID, Group: n.Request.Group,
		State: n.Request.State, Trace: n.Request.Trace, LeftOut: leftOut,
	}
	if len(kept) == 0 {
		return d
	}
	for _, c := range n.Request.Calls {
		x := callData{ID: string(c.ID), Tool: c.Tool, Outcome: c.Outcome, Digest: c.Digest.String(), UsableUntil: c.UsableUntil.UTC()}
		if len(kept) > 1 {
			x.Receipt = c.Receipt
		}
		if len(kept) > 2 {
			args := string(c.Args)
			x.Arguments = &args
		}
		d.Calls = append(d.Calls, x)
	}
	return d
}

// traceOf is the traceparent in the data of a message, for its header.
func traceOf(data json.RawMessage) string {
	var d struct {
		Trace string `json:"traceparent"`
	}
	_ = json.Unmarshal(data, &d) // a message without one has none
	return d.Trace
}
