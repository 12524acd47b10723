package agentrun_test

import (
	"encoding/json"

	"github.com/countersign/countersign/internal/agentrun"
)

// marshalMessages writes a history as upstream's `all_messages_json` does.
func marshalMessages(messages []agentrun.Message) ([]byte, error) {
	list := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		b, err := agentrun.EncodeMessage(m)
		if err != nil {
			return nil, err
		}
		list[i] = b
	}
	return json.Marshal(list)
}

// unmarshalMessages reads a history. One message that is not known fails the whole list.
func unmarshalMessages(b []byte) ([]agentrun.Message, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	messages := make([]agentrun.Message, len(list))
	for i, raw := range list {
		m, err := agentrun.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		messages[i] = m
	}
	return messages, nil
}
