package approvals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// What a check said is about the arguments that it was asked about.
func TestAnEditForgetsWhatACheckSaidOfTheOldArguments(t *testing.T) {
	call := ToolCall{ID: "c1", Name: "refund", Args: []byte(`{"cents":5}`)}
	said := Checked{Check: "fraud", Answer: CheckAsk, Said: Quote{Text: "A new customer."}}
	b, events, err := Open(Batch{ID: "batch-01-x", Run: "run-01-x", Requester: "U1", OpenedAt: opened}, []Deferral{
		{Call: call, Ask: Ask{Requirement: all(of(1, "ann")), Checked: said}},
		{Call: ToolCall{ID: "c2", Name: "refund", Args: []byte(`{}`)}, Ask: Ask{Requirement: all(of(1, "ann"))}},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, said, b.Approvals[0].Checked)
	require.Equal(t, []CheckedCall{{Call: "c1", Check: "fraud", Answer: CheckAsk}}, events[0].(Opened).Checked, "a call without a check is not in it")

	for name, c := range map[string]struct {
		ruling Ruling
		want   Checked
	}{
		"the policy permits it":   {Permit{}, Checked{}},
		"no check asks about it":  {Ask{Requirement: all(of(1, "ann"))}, Checked{}},
		"its check is heard anew": {Ask{Requirement: all(of(1, "ann")), Checked: Checked{Check: "fraud", Answer: CheckOK}}, Checked{Check: "fraud", Answer: CheckOK}},
	} {
		t.Run(name, func(t *testing.T) {
			next, _, err := b.Apply(Amend{
				Call: "c1", From: call.Ref(b.ID).Digest, Args: []byte(`{"cents":6}`), By: Principal{User: "ann"}, At: opened.Add(time.Minute), Ruling: c.ruling,
			})
			require.NoError(t, err)
			require.Equal(t, c.want, next.Approvals[0].Checked)
		})
	}
}
