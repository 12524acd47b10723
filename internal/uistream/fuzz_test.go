package uistream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// Whatever a client sends is read, or refused with a list.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"c","trigger":"submit-message","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}]}`))
	f.Add([]byte(`{"id":"c","message":{"id":"a","role":"assistant","parts":[{"type":"tool-x","toolCallId":"1","state":"approval-responded","input":{"a":1},"approval":{"id":"batch-01-x.00","approved":true,"reason":"r"}},{"type":"dynamic-tool","toolName":"y","toolCallId":"2","state":"output-denied"}]}}`))
	f.Add([]byte(`{"id":"__proto__","messages":null,"follow":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, faults := readRequest(body)
		if len(faults) > 0 {
			return
		}
		require.True(t, chatIDOK(q.Chat))
		require.NotEmpty(t, q.Messages)
		for _, m := range q.Messages {
			for _, a := range answersIn(m) {
				require.Contains(t, []approvals.Verdict{approvals.Approve, approvals.Deny}, a.verdict)
				b, digest, ok := parseApprovalID(a.approval)
				if ok {
					require.Equal(t, a.approval, string(b)+"."+digest)
				}
			}
		}
	})
}

// A hidden value is nowhere in what is shown, and all else is.
func FuzzMask(f *testing.F) {
	f.Add("hunter2-secret", "x", `{"a":[1,{"b":"keep-this-value"}]}`)
	f.Fuzz(func(t *testing.T, secret, key, other string) {
		secret = "secret:" + secret
		if approvals.CheckJSON([]byte(other), 60) != nil || strings.Contains(other, "secret:") || strings.Contains(key, "secret:") {
			return
		}
		name, err := json.Marshal("k" + key)
		require.NoError(t, err)
		value, err := json.Marshal(secret)
		require.NoError(t, err)
		args := json.RawMessage(`{"other":` + other + `,"list":[{` + string(name) + `:` + string(value) + `}]}`)
		if approvals.CheckJSON(args, maxDepth) != nil {
			return
		}
		var back map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(args, &back))
		var list []map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(back["list"], &list))
		pointer := "/list/*/"
		for k := range list[0] {
			pointer += strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		}
		shown := shownInput(args, []string{pointer})
		require.True(t, json.Valid(shown), "%s", shown)
		require.NotContains(t, string(shown), "secret:")
		require.Contains(t, string(shown), `"other":`+strings.TrimSpace(other))
	})
}
