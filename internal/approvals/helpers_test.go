package approvals_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

var (
	opened   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deadline = opened.Add(time.Hour)
)

const theCall ToolCallID = "call_B"

var theArgs = json.RawMessage(`{"path": "/srv/a"}`)

// open opens a batch of one call, theCall, that needs what r says. The
// requester is "req".
func open(t *testing.T, r Requirement) Batch {
	t.Helper()
	b, _, err := Open(
		Batch{ID: "batch-17-b", Run: "run-17-r", Agent: "billing", Requester: "req", OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "delete", Args: theArgs}, Ask: Ask{Requirement: r, Why: "it deletes"}}},
		nil,
	)
	require.NoError(t, err)
	return b
}

// of is a quorum of need people of these.
func of(need int, users ...UserID) Quorum { return Quorum{Need: need, From: From{Users: users}} }

// in is a quorum of need people of these groups.
func in(need int, groups ...GroupID) Quorum { return Quorum{Need: need, From: From{Groups: groups}} }

func all(q ...Quorum) Requirement { return Requirement{Quorums: q} }

// say is a decision on theCall as it stands in b, a minute after it opened.
func say(b Batch, who UserID, v Verdict, groups ...GroupID) Decide {
	d := Decision{Call: theCall, By: Principal{User: who, Groups: groups}, Verdict: v, At: opened.Add(time.Minute)}
	if len(b.Approvals) > 0 {
		d.Digest = b.Approvals[0].Call.Digest
	}
	return Decide{d}
}

// must applies commands that are expected to succeed.
func must(t *testing.T, b Batch, cmds ...Command) Batch {
	t.Helper()
	for _, cmd := range cmds {
		next, _, err := b.Apply(cmd)
		require.NoError(t, err, "%T", cmd)
		b = next
	}
	return b
}

// snapshot is everything in v, down to nil and empty and to the types behind
// interfaces.
func snapshot(v any) string {
	if b, ok := v.(Batch); ok {
		s := ""
		for _, c := range b.Calls {
			s += fmt.Sprintf("%T ", c.Result)
		}
		return s + snapshot(&b)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
