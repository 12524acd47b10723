package outbox

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/webhook"
)

var writeDocuments = flag.Bool("update", false, "write the documents of this schema that are not in testdata yet")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// documents are one of each kind with everything in it.
func documents() map[string]any {
	return map[string]any{
		"messages.v1": &document{Schema: schema, Messages: []stored{{
			ID: "msg_1", Agent: "claude", Endpoint: "ci", Type: "approval.settled", At: noon, Data: json.RawMessage(`{"id":"run-17-a"}`),
			Attempts: webhook.Attempts{
				State: webhook.Undelivered, Count: 2, First: noon, Last: noon, Due: noon, LastStatus: 500, LastError: "The receiver answered 500.",
			},
			Claimed: noon,
		}, {ID: "msg_2", Agent: "claude", Endpoint: "ci", Type: "approval.created", At: noon, Data: json.RawMessage(`{}`)}}},
		"endpoints.v1": &endpoints{Schema: schema, All: []endpoint{{
			Agent: "claude", Name: "ci", Delivered: noon, SlowUntil: noon, DisabledAt: noon, Reason: "The receiver answered 500.",
			Told: true, Telling: noon, GivenUp: []string{"run-17-a"},
		}, {Agent: "claude", Name: "other"}}},
	}
}

func TestOldDocumentsDecodeForEver(t *testing.T) {
	for name, want := range documents() {
		path := filepath.Join("testdata", name+".json")
		doc, err := json.Marshal(want)
		require.NoError(t, err)
		if _, err := os.Stat(path); *writeDocuments && os.IsNotExist(err) {
			require.NoError(t, os.MkdirAll("testdata", 0o750))
			require.NoError(t, os.WriteFile(path, append(doc, '\n'), 0o600))
		}
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.JSONEq(t, string(old), string(doc), "a changed form needs a document of its own")
		got := map[string]any{"messages.v1": &document{}, "endpoints.v1": &endpoints{}}[name]
		require.NoError(t, approvals.DecodeMemo(old, schema, got))
		require.Equal(t, want, got)
	}
}

func TestDocumentsThatCannotBeUnderstoodAreErrors(t *testing.T) {
	for _, doc := range []string{``, `{`, `{}`, `{"v":2}`, `{"v":1,"new":1}`, `{"v":1}{}`, `[]`} {
		require.ErrorIs(t, approvals.DecodeMemo([]byte(doc), schema, &document{}), approvals.ErrUnreadable, doc)
	}
}

// What does not fit is left out in this order, and the message says so.
func TestAMessageThatIsTooLargeLeavesOutWhatItsReceiverCanFetch(t *testing.T) {
	notice := func(calls, args, receipt int) intake.Notice {
		n := intake.Notice{Agent: "claude", Endpoint: "ci", Type: intake.EventSettled, At: noon}
		n.Request = intake.Request{ID: "run-17-a", ExternalID: "x", State: intake.StateSettled, Trace: "00-a-b-01"}
		for range calls {
			n.Request.Calls = append(n.Request.Calls, intake.CallStatus{
				ID: "c", Tool: "t", Outcome: intake.OutcomeApproved, UsableUntil: noon,
				Args: make([]byte, args), Receipt: string(make([]byte, receipt)), By: []approvals.Seat{{User: "U0BOB"}}, Reason: "because",
			})
		}
		return n
	}
	for name, c := range map[string]struct {
		notice    intake.Notice
		arguments bool
		leftOut   []string
		calls     int
	}{
		"all":                    {notice(2, 10, 10), true, nil, 2},
		"arguments not wanted":   {notice(2, 10_000, 10), false, nil, 2},
		"arguments do not fit":   {notice(2, 10_000, 10), true, []string{"arguments"}, 2},
		"receipts do not either": {notice(30, 10, 600), true, []string{"receipts", "arguments"}, 30},
		"nor do the calls":       {notice(500, 10, 600), true, []string{"calls", "receipts", "arguments"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := About(c.notice, c.arguments)
			require.NoError(t, err)
			var got requestData
			require.NoError(t, json.Unmarshal(m.Data, &got))
			require.Equal(t, c.leftOut, got.LeftOut)
			require.Len(t, got.Calls, c.calls)
			require.Equal(t, "00-a-b-01", traceOf(m.Data), "whatever is left out")
			require.Equal(t, c.arguments && c.leftOut == nil, c.calls > 0 && got.Calls[0].Arguments != nil)
			require.NotContains(t, string(m.Data), "U0BOB", "people are not named")
			require.NotContains(t, string(m.Data), "because")
			_, err = webhook.Message{ID: "msg_1", Type: m.Type, Timestamp: m.At, Data: m.Data}.Body()
			require.NoError(t, err)
		})
	}
}

// Messages that were put before there were keys keep their ids.
func TestAKeyTellsApartMessagesOfOneType(t *testing.T) {
	m := Message{Agent: "claude", Endpoint: "ci", Type: "approval.decided"}
	plain := messageID("run-17-a", m)
	require.Equal(t, "msg_", plain[:4])
	m.Key = "c1"
	first := messageID("run-17-a", m)
	m.Key = "c2"
	require.NotEqual(t, first, messageID("run-17-a", m))
	require.NotEqual(t, plain, first)
}

// Of a call that waits, the endpoint of another agent gets no arguments, whatever it
// may have of its own requests.
func TestAMessageThatACallWaitsHasNoArguments(t *testing.T) {
	m, err := About(intake.Notice{
		Agent: "crm", Endpoint: "ci", Type: intake.EventWaiting, At: noon, Call: "c1", Tool: "lookup", Key: "c1",
		Request: intake.Request{ID: "run-17-a", Agent: "ops", State: intake.StatePending},
	}, true)
	require.NoError(t, err)
	require.Equal(t, "crm", m.Agent)
	require.JSONEq(t, `{"id":"run-17-a","agent":"ops","state":"pending","call":"c1","tool":"lookup"}`, string(m.Data))
}
