package inbound

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// pressed is what Slack sends for a press on a card of 18 kB.
func pressed(tb testing.TB) []byte {
	tb.Helper()
	blocks, err := os.ReadFile("../testdata/card_became.json")
	require.NoError(tb, err)
	var compact any
	require.NoError(tb, json.Unmarshal(blocks, &compact))
	if blocks, err = json.Marshal(compact); err != nil {
		require.NoError(tb, err)
	}
	return fmt.Appendf(nil, `{"type":"block_actions","user":{"id":"U0BOB","username":"bob","name":"bob","team_id":"T0ACME"},
"api_app_id":"A1","token":"x","container":{"type":"message","message_ts":"1.2","channel_id":"C0OPS","is_ephemeral":false,"thread_ts":"1.1"},
"trigger_id":"1.2.3","team":{"id":"T0ACME","domain":"acme"},"enterprise":null,"is_enterprise_install":false,"channel":{"id":"C0OPS","name":"ops"},
"message":{"user":"UBOT","type":"message","ts":"1.2","bot_id":"B1","app_id":"A1","text":"Approve?","team":"T0ACME","thread_ts":"1.1",
"metadata":{"event_type":"card","event_payload":{"batch":"batch-07-one","part":0}},"blocks":%s},
"state":{"values":{}},"response_url":"https://hooks.slack.test/1","actions":[{"action_id":"countersign.approve.0","block_id":"x","value":"batch-07-one|c1|00","type":"button","action_ts":"1.3"}]}`, blocks)
}

func read(tb testing.TB, raw []byte) (p payload, err error) {
	tb.Helper()
	err = json.Unmarshal(raw, &p)
	return p, err
}

func TestABlockOfAMessageIsNotDecoded(t *testing.T) {
	raw := pressed(t)
	short := slackapi.Skim(nil, raw)
	require.Less(t, len(short), 1500)
	want, err := read(t, raw)
	require.NoError(t, err)
	got, err := read(t, short)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NotEmpty(t, got.Message.Metadata.Payload)
}

// FuzzSkim: what is read of a valid payload does not depend on skimming. Of one that
// is not valid, only what nothing reads may pass.
func FuzzSkim(f *testing.F) {
	f.Add(pressed(f))
	for _, raw := range []string{
		``, `{}`, ` { } `, `null`, `[]`, `{"message":null}`, `{"message":{}}`, `{"message":{"blocks":[]}}`, `{"message":{"blocks":[{}],"ts":"1"}} `,
		`{"message":{"ts":"1","blocks":"\"}\\"},"type":"a"}`, `{"view":{"blocks":[1,2,{"a":"]"}],"id":"V","state":{"values":{}}}}`,
		`{"message":{"blocks":1},"message":{"ts":"2","Blocks":3}}`, `{"message":{"ts":"1"},"type":"b\"}{"}`, `{"message":{"blocks":[}`, `{"a":1,}`, `{"blocks":[],"type":"x"}`,
		`{"message":{"blocks":}}`, `{"message":{,"ts":"1"}}`, `{"\u006dessage":{"ts":"1"}}`, `{"message":{"blocks":[],"ts":"1"}}x`, `{"message":{"ts":tru}}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, wrong := read(t, raw)
		got, err := read(t, slackapi.Skim(nil, raw))
		if wrong == nil {
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

// FuzzPayloadOf: the payload of a form is that which net/url reads.
func FuzzPayloadOf(f *testing.F) {
	f.Add([]byte("payload=" + url.QueryEscape(string(pressed(f)))))
	for _, body := range []string{
		``, `payload=`, `payload=a+b%2B%2f%2F`, `payload=%`, `payload=%4`, `payload=%4g`, `payload=%zz&payload=b`, `payload=a&payload=b`, `a=b&payload=c`,
		`payload=a;b`, `payload=a%3Bb%26c`, `payload=a=b`, `payload`, `Payload=a`, `%70ayload=a`, `payload=%C3%A9%FF`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		form, err := url.ParseQuery(string(body))
		got, refused := payloadOf(body)
		if err != nil || form.Get("payload") == "" {
			require.ErrorIs(t, refused, errBody)
			return
		}
		require.NoError(t, refused)
		require.Equal(t, form.Get("payload"), string(got))
	})
}

// BenchmarkReadPayload reads a press on a card, as it comes in the body of a request.
func BenchmarkReadPayload(b *testing.B) {
	body := []byte("payload=" + url.QueryEscape(string(pressed(b))))
	for b.Loop() {
		raw, err := payloadOf(slices.Clone(body))
		if err == nil {
			_, err = readPayload(raw)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
