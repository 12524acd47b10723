package intake

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

var writeDocuments = flag.Bool("update", false, "write the documents of this schema that are not in testdata yet")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// documents are one of each kind with everything in it.
func documents() map[string]any {
	return map[string]any{
		"record.v1": &record{
			Schema: schema, Agent: "claude", Door: DoorHooks, Credential: "token:1", ExternalID: "toolu_1", Joins: []string{"toolu_2"},
			Group: "g", Session: "s", Carries: storedCarries{Edits: true, Reasons: true, Late: true}, Until: noon, Trace: "00-1", Notify: "hook",
			HasState: true, Reuse: true, Withdrawn: true, SupersededBy: "run-17-b", CreatedAt: noon,
			Calls: []storedCall{{
				ID: "c1", Fingerprint: "f", ClaimedAt: noon, ClaimedBy: "token:1", Refused: "frozen",
				Report: &storedReport{State: approvals.RanFailed, Took: time.Second, Words: "no", Excerpt: "x", At: noon},
			}, {ID: "c2", Fingerprint: "g"}},
		},
		"record.v1.refused": &record{
			Schema: schema, Agent: "claude", ExternalID: "x", CreatedAt: noon,
			Calls: []storedCall{{ID: "c1", Fingerprint: "f", Refused: "frozen", RefusedBy: "freeze@1", RefusedAt: noon}},
		},
		"record.v1.ended": &record{
			Schema: schema, Agent: "claude", ExternalID: "x", Calls: []storedCall{{ID: "c1", Fingerprint: "f"}},
			Withdrawn: true, EndedAt: noon, CreatedAt: noon,
		},
		"record.v1.here": &record{
			Schema: schema, Agent: "desk", Door: DoorGateway, Credential: "token:1", ExternalID: "x", Reuse: true, Here: true, AnsweredAt: noon, CreatedAt: noon,
			Calls: []storedCall{{ID: "call", Fingerprint: "f", ClaimedAt: noon, ClaimedBy: "token:1"}},
		},
		"record.v1.owed": &record{
			Schema: schema, Agent: "desk", ExternalID: "x", Reuse: true, Here: true, Owed: true, CreatedAt: noon, Calls: []storedCall{{ID: "1", Fingerprint: "f"}},
		},
		"record.v1.left": &record{
			Schema: schema, Agent: "desk", ExternalID: "x", Joins: []string{"y"}, Left: []string{"x"}, CreatedAt: noon, Calls: []storedCall{{ID: "1", Fingerprint: "f"}},
		},
		"record.v1.keys": &record{
			Schema: schema, Agent: "desk", ExternalID: "x", Keys: []string{"key_p17_k"}, CreatedAt: noon, Calls: []storedCall{{ID: "1", Fingerprint: "f"}},
		},
		"record.v1.removed": &removed{Schema: schema, Agent: "desk", RemovedAt: noon},
		"pointer.v1":        &pointer{Schema: schema, Run: "run-17-a", Replaced: []approvals.RunID{"run-17-b"}, Payload: "p", Turn: 3},
		"announced.v1":      &announcedDoc{Schema: schema, Decided: []decisionTold{{Call: "c1", By: "U1", At: noon}}},
		"agent.v1": &agentDoc{Schema: schema, Minute: noon, Made: 2, Recent: []agentRequest{
			{Run: "run-17-a", External: "x", Group: "g", At: noon, Done: true},
		}},
		"agent.v1.part": &donePart{Schema: schema, agentRequest: agentRequest{Run: "run-17-a", External: "x", Group: "g", At: noon, Done: true}},
	}
}

func TestOldDocumentsDecodeForEver(t *testing.T) {
	for name, want := range documents() {
		path := filepath.Join("testdata", name+".json")
		doc, err := json.Marshal(want)
		require.NoError(t, err)
		if _, err := os.Stat(path); *writeDocuments && os.IsNotExist(err) {
			require.NoError(t, os.WriteFile(path, append(doc, '\n'), 0o600))
		}
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.JSONEq(t, string(old), string(doc), "a changed form needs a document of its own")
		got := reflect.New(reflect.TypeOf(want).Elem()).Interface()
		require.NoError(t, approvals.DecodeMemo(old, schema, got))
		require.Equal(t, want, got)
	}
}

// A document of versions that kept all requests in it is read, and stored with its
// parts by the next change.
func TestAnOldDocumentOfAnAgentIsTakenApart(t *testing.T) {
	d, ok := documents()["agent.v1"].(*agentDoc)
	require.True(t, ok)
	d.Recent = append(d.Recent, agentRequest{Run: "run-17-b", External: "y", At: noon})
	m, err := d.change("claude", 7)
	require.NoError(t, err)
	require.EqualValues(t, 7, m.Version)
	require.NotContains(t, string(m.Data), "run-17-a")
	require.Contains(t, string(m.Data), "run-17-b", "limits are counted in the document alone")
	require.Len(t, m.Set, 1)
	part := &donePart{}
	require.NoError(t, approvals.DecodeMemo(m.Set["run-17-a"], schema, part))
	require.Equal(t, d.Recent[0], part.agentRequest)
	d.stored()
	m, err = d.change("claude", 8)
	require.NoError(t, err)
	require.Empty(t, m.Set, "nothing changes a part")
}

func TestDocumentsThatCannotBeUnderstoodAreErrors(t *testing.T) {
	for _, doc := range []string{``, `{`, `{}`, `{"v":2}`, `{"v":1,"new":1}`, `{"v":1}{}`, `[]`} {
		require.ErrorIs(t, approvals.DecodeMemo([]byte(doc), schema, &record{}), approvals.ErrUnreadable, doc)
	}
}

// Both are stored or sent to people, so that neither may change its value.
func TestAFingerprintStaysWhatItIs(t *testing.T) {
	call := Call{Tool: "Bash", Server: "s", Args: []byte(`{"command":"ls"}`), Cwd: "/srv", Repository: "acme/app", Branch: "main", Definition: "d"}
	c := Client{Name: "claude", Credential: "token:1"}
	first := Fingerprint(c, "s", call)
	require.Len(t, first, 64)
	require.Equal(t, first, Fingerprint(c, "s", call))
	require.NotEqual(t, Fingerprint(c, "", call), Fingerprint(c, "token:1", call), "a session is no credential")
	require.NotContains(t, first, "ls")
	shifted := call
	shifted.Tool, shifted.Server = "Bashs", ""
	require.NotEqual(t, first, Fingerprint(c, "s", shifted), "each part has its length in front")
}
