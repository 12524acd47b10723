package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/webhook"
)

func TestAMessageThatIsTooLargeIsNeverSent(t *testing.T) {
	r := receive(t, status(200), false)
	s := sender(t, reaching(t, r))
	m := settled
	empty, err := webhook.Message{ID: m.ID, Type: m.Type, Timestamp: m.Timestamp, Data: json.RawMessage(`{"x":""}`)}.Body()
	require.NoError(t, err)
	m.Data = json.RawMessage(`{"x":"` + strings.Repeat("x", webhook.MaxBody-len(empty)) + `"}`)
	body, err := m.Body()
	require.NoError(t, err)
	require.Len(t, body, webhook.MaxBody)
	require.Equal(t, webhook.Delivered, s.Send(t.Context(), to(t, r.URL), m).Kind)

	m.Data = json.RawMessage(strings.Replace(string(m.Data), "x\"}", "xx\"}", 1))
	_, err = m.Body()
	require.ErrorIs(t, err, webhook.ErrTooLarge)
	require.Equal(t, webhook.Outcome{Kind: webhook.Invalid, Reason: "The message has more than 20000 bytes: it has 20001."}, s.Send(t.Context(), to(t, r.URL), m))
	requests, _ := r.counts()
	require.Equal(t, 1, requests)
}

func TestAMessageHasAnIDATypeATimeAndAnObject(t *testing.T) {
	for name, change := range map[string]func(*webhook.Message){
		"no id":          func(m *webhook.Message) { m.ID = "" },
		"id with a dot":  func(m *webhook.Message) { m.ID = "a.b" }, // what is signed would have two readings
		"id with a line": func(m *webhook.Message) { m.ID = "a\nb" },
		"long id":        func(m *webhook.Message) { m.ID = strings.Repeat("x", 256) },
		"no type":        func(m *webhook.Message) { m.Type = "" },
		"type in words":  func(m *webhook.Message) { m.Type = "approval settled" },
		"type with dots": func(m *webhook.Message) { m.Type = "approval..settled" },
		"no time":        func(m *webhook.Message) { m.Timestamp = time.Time{} },
		"no data":        func(m *webhook.Message) { m.Data = nil },
		"broken data":    func(m *webhook.Message) { m.Data = json.RawMessage(`{"a":`) },
		"data ends more": func(m *webhook.Message) { m.Data = json.RawMessage(`{}},"data":{"forged":true}`) },
		"a list":         func(m *webhook.Message) { m.Data = json.RawMessage(`[1]`) },
		"not UTF-8":      func(m *webhook.Message) { m.Data = json.RawMessage("{\"a\":\"\xff\"}") },
	} {
		m := settled
		change(&m)
		_, err := m.Body()
		require.ErrorIs(t, err, webhook.ErrMessage, name)
		require.Equal(t, webhook.Invalid, sender(t, webhook.Config{}).Send(t.Context(), at(t, "8.8.8.8"), m).Kind, name)
	}
}

func TestASecretHasAtLeast24Bytes(t *testing.T) {
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, good := range []int{24, 25, 32, 64} {
		_, err := webhook.ParseSecret(of(good))
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "whsec_", of(0), of(1), of(23), of(65), strings.TrimPrefix(of(32), "whsec_"), "whpk_" + strings.TrimPrefix(of(32), "whsec_"),
		"whsec_hunter2hunter2hunter2hunter2!", of(32) + "\n", strings.TrimSuffix(of(32), "="), "whsec_" + strings.Repeat("-_", 16),
	} {
		s, err := webhook.ParseSecret(bad)
		require.ErrorIs(t, err, webhook.ErrSecret, bad)
		require.NotContains(t, err.Error(), "hunter2")
		require.ErrorContains(t, sender(t, webhook.Config{}).Check(webhook.Endpoint{URL: "https://example.com", Secrets: []webhook.Secret{s}}), "no signing secret")
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	e := at(t, "8.8.8.8")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.Contains(t, fmt.Sprintf(verb, e), "[redacted]", verb)
		require.NotContains(t, fmt.Sprintf(verb, e), "0123456789abcdef", verb)
	}
	out, err := json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(out), `["[redacted]"]`)
}
