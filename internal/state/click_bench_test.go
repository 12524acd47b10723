package state

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// clickedOn is a batch with one call, before and after the decision of a person, and
// what happened.
func clickedOn(tb testing.TB) (before, after approvals.Batch, events []approvals.Event) {
	tb.Helper()
	at := time.Date(2026, 3, 2, 9, 30, 0, 123456000, time.UTC)
	digest, err := approvals.ParseDigest(strings.Repeat("0123456789abcdef", 4))
	require.NoError(tb, err)
	words := strings.Repeat("Clean up the reports of the first quarter: the tables were moved to the warehouse. ", 8)
	before = approvals.Batch{
		ID: "batch-07-9b0c1d52-6c1f-4a44-9a64-5ed4d1b5e0a7", Run: "run-07-1f6d0a9e-52f3-4f0e-8d6c-0c9f3f5f7a11", Thread: "thread-07-5a0f3f66-1f8e-4f6c-b7ce-2d2b4cf1f0aa",
		Agent: "coder-7", Channel: "C0OPS", Requester: "U0ALICE", Executor: "api", OpenedAt: at, Version: 1,
		Said: approvals.Quote{Text: words}, Prompt: approvals.Quote{Text: words},
		Approvals: []approvals.Approval{{
			Call:     approvals.CallRef{ID: "call-1", Name: "delete_file", Digest: digest, Size: 912},
			Proposed: digest, Why: "It changes something.", Rule: "default@1", Status: approvals.Pending,
			Place:       approvals.Place{Cwd: "/srv/app", Repository: "acme/reports", Branch: "main"},
			Requirement: approvals.Requirement{Quorums: []approvals.Quorum{{Name: "sre", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"S0SRE"}}}}},
		}},
	}
	after, events, err = before.Apply(approvals.Decide{Decision: approvals.Decision{
		Call: "call-1", By: approvals.Principal{User: "U0BOB", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: at}, Verdict: approvals.Approve, Digest: digest, At: at.Add(time.Minute),
	}})
	require.NoError(tb, err)
	return before, after, events
}

// BenchmarkDecodeBatch reads a batch as it is stored.
func BenchmarkDecodeBatch(b *testing.B) {
	before, _, _ := clickedOn(b)
	stored, err := encodeBatch(before)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeBatch(stored); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChangeOfClick makes the arguments of the script that commits a decision.
func BenchmarkChangeOfClick(b *testing.B) {
	before, after, events := clickedOn(b)
	s := &Store{conn: &conn{prefix: "countersign", now: time.Now, script: redis.NewScript(commitSource)}}
	request := approvals.RequestID("slack-" + strings.Repeat("0123456789abcdef", 4))
	b.ReportAllocs()
	for b.Loop() {
		p, err := s.partitionOf(string(after.ID))
		if err != nil {
			b.Fatal(err)
		}
		ch := newChange(p, p.request(string(after.ID), request), 0)
		ch.first = true
		w := newDueChanges(s, p, ch)
		if err := putBatch(ch, p, w, before, after, events, nil); err != nil {
			b.Fatal(err)
		}
		w.finish()
		if len(ch.args(b.Context())) == 0 {
			b.Fatal("nothing is committed")
		}
	}
}
