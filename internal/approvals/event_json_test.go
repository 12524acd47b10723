package approvals_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEventsKeepTheirShape(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	ref := ToolCall{ID: "call_B", Name: "refund", Args: json.RawMessage(`{"cents":4200}`)}.Ref("batch-17-b")
	other := ToolCall{ID: "call_B", Name: "refund", Args: json.RawMessage(`{"cents":100}`)}.Ref("batch-17-b")
	ann := Principal{User: "ann", Groups: []GroupID{"ops", "sre"}, GroupsAt: at.Add(-time.Minute)}
	for name, e := range map[string]Event{
		"opened": Opened{
			Batch: "batch-17-b", Run: "run-17-r", Agent: "billing", Requester: "req",
			Approvals: []CallRef{ref}, Calls: []CallRef{{ID: "call_A", Name: "export"}}, At: at,
		},
		"opened_checked": Opened{
			Batch: "batch-17-b", Run: "run-17-r", Agent: "billing", Requester: "req",
			Approvals: []CallRef{ref}, At: at, Checked: []CheckedCall{{Call: "call_B", Check: "fraud", Answer: CheckAsk}},
		},
		"opened_by_several": Opened{
			Batch: "batch-17-b", Run: "run-17-r", Agent: "billing", Requester: "req",
			Approvals: []CallRef{ref}, At: at, Participants: []UserID{"ann", "bo"},
		},
		"opened_ruled": Opened{
			Batch: "batch-17-b", Run: "run-17-r", Agent: "billing", Requester: "req",
			Approvals: []CallRef{ref}, At: at, Rules: []string{"refunds@0a1b2c3d"},
		},
		"decided": Decided{Batch: "batch-17-b", Decision: Decision{
			Call: "call_B", By: ann, Verdict: Deny, Digest: ref.Digest, Reason: "not <this> month", At: at,
		}},
		"decided_for": Decided{Batch: "batch-17-b", Decision: Decision{
			Call: "call_B", By: Principal{User: "bo", For: []Absent{{User: "ann", Groups: []GroupID{"sre"}, Until: at.Add(time.Hour)}}},
			Verdict: Approve, Digest: ref.Digest, At: at,
		}},
		"reminded": Reminded{Batch: "batch-17-b", Call: "call_B", Rung: 1, At: at},
		"escalated": Escalated{
			Batch: "batch-17-b", Call: "call_B", Rung: 2, Quorum: "operations",
			Add: From{Users: []UserID{"olga"}, Groups: []GroupID{"oncall"}}, Channel: "C-war", At: at,
		},
		"retracted": Retracted{Batch: "batch-17-b", Call: "call_B", By: Principal{User: "bo"}, At: at},
		"amended": Amended{
			Batch: "batch-17-b", Call: "call_B", By: ann, From: ref.Digest, To: other.Digest,
			Cleared: []UserID{"bo", "cy"}, At: at,
		},
		"amended_ruled": Amended{
			Batch: "batch-17-b", Call: "call_B", By: ann, From: ref.Digest, To: other.Digest, Rule: "refunds@0a1b2c3d", At: at,
		},
		"fulfilled": Fulfilled{Batch: "batch-17-b", Call: "call_A", By: "exporter", At: at},
		"settled":   Settled{Batch: "batch-17-b", Call: "call_B", Status: Withdrawn, By: "ann", Reason: "run cancelled", At: at}, //nolint:misspell // as it was stored
		"concluded": Concluded{Batch: "batch-17-b", Call: "call_B", State: Ran, Took: 1500 * time.Millisecond, At: at},
		"concluded_refused": Concluded{
			Batch: "batch-17-b", Call: "call_B", State: Refused, Rule: "freeze@0a1b2c3d", At: at,
		},
		"resolved": Resolved{Batch: "batch-17-b", Run: "run-17-r", At: at},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EncodeEvent(e)
			require.NoError(t, err)
			golden := filepath.Join("testdata", "events", name+".json")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got)+"\n")

			again, err := DecodeEvent(want)
			require.NoError(t, err)
			require.Equal(t, e, again)
			require.Equal(t, BatchID("batch-17-b"), BatchOf(e), "whoever follows the batch hears of it")

			var head struct {
				V    int    `json:"v"`
				Kind string `json:"kind"`
			}
			require.NoError(t, json.Unmarshal(got, &head))
			require.Equal(t, 1, head.V)
			require.Equal(t, regexp.MustCompile("^[a-z]+").FindString(name), head.Kind)
		})
	}
}

func TestEventsOfUnknownShapeAreNamed(t *testing.T) {
	for doc, names := range map[string]string{
		`{"v":1,"kind":"exploded"}`:                          `"exploded"`,
		`{"v":1,"kind":"Opened"}`:                            `"Opened"`,
		`{"v":1}`:                                            `""`,
		`{"v":2,"kind":"opened"}`:                            `version 2`,
		`{"kind":"opened"}`:                                  `version 0`,
		`{"v":1,"kind":"decided","digest":"00"}`:             `digest`,
		`{"v":1,"kind":"resolved","at":"yesterday"}`:         `decode`,
		`{"v":1,"kind":"resolved"} {"v":1,"kind":"settled"}`: `decode`,
		``: `decode`,
	} {
		e, err := DecodeEvent([]byte(doc))
		require.ErrorIs(t, err, ErrInvalid, doc)
		require.ErrorContains(t, err, names)
		require.Nil(t, e)
	}
	_, err := EncodeEvent(nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = EncodeEvent(&Resolved{})
	require.ErrorIs(t, err, ErrInvalid)
}
