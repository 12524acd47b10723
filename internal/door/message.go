package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// maxDepth is how deep the JSON of a message may be nested around arguments, which may
// nest 64 deep.
const maxDepth = 80

// CheckJSON says why a message is not JSON that every reader reads alike, and where, in
// words for whoever sent it. The message is called what.
func CheckJSON(what string, raw []byte) error {
	err := approvals.CheckJSON(raw, maxDepth)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is not JSON that every reader reads alike: %s", what, strings.TrimPrefix(err.Error(), approvals.ErrInvalid.Error()+" JSON "))
}

// CheckMessage refuses a message of MCP, or a batch of messages, with an id that not every
// reader reads alike: the SDK answers with the nearest integer that a float64 can hold, which
// may be the id of another message. It also refuses a batch with a call or with the end of
// one, because a [Message] is one message, and a call of a batch could not be canceled. Nor
// may anything stand behind a message: the SDK reads on without it. What else is no message
// is left to the SDK to refuse.
func CheckMessage(body []byte) error {
	if len(body) > 0 && !json.Valid(body) {
		return errors.New("the body is not one JSON document")
	}
	type fields = map[string]json.RawMessage // not a struct, which takes ID for id
	var messages []fields
	batch := json.Unmarshal(body, &messages) == nil
	if !batch {
		messages = []fields{nil}
		_ = json.Unmarshal(body, &messages[0])
	}
	for _, m := range messages {
		if !exact(m["id"]) {
			return errors.New("the id of a message may be a text, or an integer between -2^53 and 2^53")
		}
		var method string
		_ = json.Unmarshal(m["method"], &method) // what is no text is no method
		if batch && (method == callMethod || method == canceledMethod) {
			return errors.New("a batch may have no call of a tool and no cancellation: send each as a message of its own")
		}
	}
	return nil
}

func exact(id json.RawMessage) bool {
	if len(id) == 0 || id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return true // it is no number: the SDK says whether it may be one
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n < 1<<53 && n > -1<<53
}
