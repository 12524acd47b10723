package state

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

var update = flag.Bool("update", false, "write the documents of this schema that are not in testdata yet")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// samples are documents with every field set, by the name of their file. A
// field that is new goes into a sample of its own: the old ones stay.
func samples() map[string]any {
	origin := agentrun.Origin{Surface: "slack", Team: "T1", Channel: "C1", Root: "1700000000.000100"}
	ref := func(id, args string) approvals.CallRef {
		return approvals.ToolCall{
			ID: approvals.ToolCallID(id), Name: "delete_file", Args: json.RawMessage(args),
		}.Ref("batch-17-b")
	}
	ann := approvals.Principal{User: "U1", Groups: []approvals.GroupID{"S1"}, GroupsAt: noon}
	ending := approvals.Ending{At: noon, By: "U2", Reason: "no <longer> needed"}
	requirement := approvals.Requirement{
		Quorums: []approvals.Quorum{
			{Name: "sre", Need: 2, From: approvals.From{Users: []approvals.UserID{"U1"}, Groups: []approvals.GroupID{"S1"}}},
		},
		Deny: 2, Separation: true, Deadline: noon.Add(time.Hour),
	}
	old, now := ref("c1", `{"path":"a"}`), ref("c1", `{"path":"b"}`)
	return map[string]any{
		"thread.v1": agentrun.Thread{
			ID: "thread-17-t", Origin: origin, Active: "run-17-a", Queue: []approvals.RunID{"run-17-b"}, Messages: 3,
		},
		"run.v1": agentrun.Run{
			ID: "run-17-a", Thread: "thread-17-t", Origin: origin, Parent: "run-17-p", Batch: "batch-17-p",
			Deferred: "batch-17-b", Agent: "ops", Requester: "U1", Prompt: "clean up", Status: agentrun.RunDeferred,
			Activity: []string{"list_files"}, Steps: 2, From: 1, To: 3,
			Usage:  agentrun.Usage{Requests: 2, ToolCalls: 1, InputTokens: 3, OutputTokens: 4},
			Output: "done", Failure: "it broke", Owner: "fence", LeaseEnds: noon, CreatedAt: noon, EndedAt: noon,
		},
		"batch.v1": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "ops", Requester: "U1", OpenedAt: noon,
			Approvals: []approvals.Approval{{
				Call: now, Proposed: old.Digest, Why: "it deletes", Metadata: json.RawMessage(`{"n":9007199254740993}`),
				WriteOnly: []string{"/token"}, Requirement: requirement, Status: approvals.Withdrawn,
				Decisions: []approvals.Decision{{
					Call: "c1", By: ann, Verdict: approvals.Approve, Digest: now.Digest, Reason: "fine", At: noon,
				}},
				Amendments: []approvals.Amendment{{By: ann, From: old.Digest, To: now.Digest, At: noon}},
				Ending:     ending,
			}},
			Calls: []approvals.External{
				{Call: ref("c2", ""), Metadata: json.RawMessage(`{"a":1}`)},
				{Call: ref("c3", `{}`), Ending: ending, Result: approvals.ToolReturn{
					ReturnValue: json.RawMessage(`[1]`), Content: json.RawMessage(`"more"`), Metadata: json.RawMessage(`{}`),
				}},
				{Call: ref("c4", `{}`), Ending: ending, Result: approvals.ToolDenied{Message: ""}},
				{Call: ref("c5", `{}`), Ending: ending, Result: approvals.ToolFailed{Message: "no"}},
				{Call: ref("c6", `{}`), Ending: ending, Result: approvals.ModelRetry{Message: "again"}},
			},
		},
		"batch.v1.participants": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", Participants: []approvals.UserID{"U2", "U3"},
			OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, EditedBy: []approvals.UserID{"U3"}, Status: approvals.Pending,
				Requirement: approvals.Requirement{Separation: true, ParticipantsMaySign: true},
			}},
		},
		"batch.v1.executed": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", OpenedAt: noon,
			Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Status: approvals.Approved, Ending: ending,
				Execution: approvals.Execution{State: approvals.Ran, At: noon, Took: 1500 * time.Millisecond, Excerpt: "deleted"},
			}, {
				Call: old, Proposed: old.Digest, Status: approvals.Approved, Ending: ending,
				Execution: approvals.Execution{State: approvals.RanFailed, At: noon, Took: time.Second, Words: "no such file"},
			}},
		},
		"entry.v1.unsure": agentrun.Entry{
			Run: "run-17-a", Call: "c1", Tool: "delete_file", State: agentrun.EntryFinished, Fence: "x", At: noon,
			Finish: agentrun.Finish{
				Part:   agentrun.ToolReturn{ToolName: "delete_file", CallID: "c1", Content: json.RawMessage(`"late"`), Outcome: agentrun.OutcomeFailed, At: noon},
				Took:   time.Minute,
				Unsure: true,
			},
		},
		"batch.v1.summary": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", OpenedAt: noon,
			Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Status: approvals.Pending, Summary: "Delete {args.path}",
			}},
			Calls: []approvals.External{{Call: ref("c2", `{}`), WriteOnly: []string{"/token"}, Summary: `Refund {money args.cents "EUR"}`}},
		},
		"batch.v1.why": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", OpenedAt: noon,
			Said: approvals.Quote{Text: "I tidy <up>.", Left: 12}, Prompt: approvals.Quote{Text: "clean up"},
			Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Gate: approvals.GateRaised, GateReason: approvals.Quote{Text: "over the limit", Left: 3},
				Status: approvals.Pending,
			}},
		},
		"batch.v1.direct": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", OpenedAt: noon,
			Approvals: []approvals.Approval{
				{Call: now, Proposed: now.Digest, Status: approvals.Pending, Requirement: approvals.Requirement{Direct: approvals.DirectEveryone}},
				{Call: old, Proposed: old.Digest, Status: approvals.Pending, Requirement: approvals.Requirement{Direct: approvals.DirectNobody}},
				{Call: ref("c2", `{}`), Status: approvals.Pending, Requirement: approvals.Requirement{Direct: approvals.DirectOutside}},
			},
		},
		"batch.v1.preview": previewed(now),
		"entry.v1.precondition": agentrun.Entry{
			Run: "run-17-a", Call: "c1", Tool: "delete_file", State: agentrun.EntryFinished, Fence: "x", At: noon,
			Finish: agentrun.Finish{Aside: agentrun.AsidePrecondition},
		},
		"entry.v1.reason": agentrun.Entry{
			Run: "run-17-a", Call: "c1", Tool: "refund", State: agentrun.EntryFinished, Fence: "x", At: noon,
			Finish: agentrun.Finish{Aside: agentrun.AsideApproval, Reason: approvals.Quote{Text: "over the limit", Left: 3}},
		},
		"run.v1.remote": agentrun.Run{
			ID: "run-17-a", Thread: "thread-17-t", Origin: agentrun.Origin{Surface: "api", Team: "claude", Channel: "C1", Root: "req-1"},
			Deferred: "batch-17-b", Agent: "claude", Executor: "api", Requester: "U1", Status: agentrun.RunDeferred, To: 1, CreatedAt: noon,
		},
		"run.v1.asks": agentrun.Run{
			ID: "run-17-a", Thread: "thread-17-t", Origin: agentrun.Origin{Surface: "api", Team: "claude", Channel: "C1", Root: "req-1"},
			Deferred: "batch-17-b", Asks: 2, Agent: "claude", Executor: "api", Requester: "U1", Status: agentrun.RunDeferred, To: 1, CreatedAt: noon,
		},
		"run.v1.calls_only": agentrun.Run{
			ID: "run-17-b", Thread: "thread-17-t", Origin: agentrun.Origin{Surface: "client", Team: "claude", Channel: "C1", Root: "req-1"},
			Parent: "run-17-a", Batch: "batch-17-b", Agent: "claude", CallsOnly: true, Requester: "U1", Status: agentrun.RunWaiting,
			From: 1, To: 1, CreatedAt: noon,
		},
		"run.v1.instructions": agentrun.Run{
			ID: "run-17-a", Thread: "thread-17-t", Origin: agentrun.Origin{Surface: "web", Team: "U1", Channel: "C1", Root: "chat"},
			Agent: "ops", Requester: "U1", Prompt: "clean up", Instructions: "Answer in <French>.", Status: agentrun.RunQueued, CreatedAt: noon,
		},
		"run.v1.via": agentrun.Run{
			ID: "run-17-a", Thread: "thread-17-t", Origin: origin, Agent: "ops", Requester: "U1", Prompt: "and now?", Via: "web",
			Status: agentrun.RunQueued, CreatedAt: noon,
		},
		"batch.v1.remote": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "claude", Channel: "C1", Requester: "U1", Executor: "api",
			OpenedAt: noon, Approvals: []approvals.Approval{{Call: now, Proposed: now.Digest, Status: approvals.Pending}},
		},
		"batch.v1.untold": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "claude", Channel: "C1", Requester: "U1", Executor: "api", Untold: true,
			OpenedAt: noon, Approvals: []approvals.Approval{{Call: now, Proposed: now.Digest, Status: approvals.Pending}},
		},
		"batch.v1.place": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "ci", Channel: "C1", Requester: approvals.ServiceUser("ci"),
			Executor: "client", Limits: approvals.Limits{NoEdits: true, NoReasons: true}, OpenedAt: noon,
			Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Status: approvals.Approved, Ending: ending,
				Place:       approvals.Place{Cwd: "/srv/app", Repository: "acme/app", Branch: "main"},
				Requirement: approvals.Requirement{ClaimWithin: 5 * time.Minute},
				Execution:   approvals.Execution{State: approvals.Claimed, At: noon, By: "ci"},
			}},
			Calls: []approvals.External{{Call: ref("c2", `{}`), Place: approvals.Place{Cwd: "/srv"}}},
		},
		"batch.v1.doubt": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Requirement: requirement, Status: approvals.Confirmed, Ending: ending,
				Decisions: []approvals.Decision{{Call: "c1", By: approvals.Principal{User: "U1"}, Verdict: approvals.Happened, Digest: now.Digest, Reason: "it is gone", At: noon}},
				Doubt: approvals.Doubt{
					Began: noon, Key: "run-17-a/c1", Approved: "batch-17-a",
					Late: approvals.Execution{State: approvals.Ran, At: noon, Took: time.Minute, Excerpt: "gone"},
				},
			}},
		},
		"batch.v1.server": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "ci", Requester: "U1", Executor: "client", OpenedAt: noon,
			Approvals: []approvals.Approval{{Call: now, Proposed: now.Digest, Status: approvals.Pending, Place: approvals.Place{Cwd: "/srv", Server: "db"}}},
			Calls:     []approvals.External{{Call: ref("c2", `{}`), Place: approvals.Place{Server: "db"}}},
		},
		"batch.v1.unsure": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Requirement: requirement, Status: approvals.Pending,
				Doubt: approvals.Doubt{
					Began: noon, Key: "run-17-a/c1", Unsure: true, Said: approvals.Quote{Text: "The server did not <answer>.", Left: 3},
				},
			}},
		},
		"batch.v1.severity": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Severity: approvals.SeverityIrreversible, Requirement: requirement, Status: approvals.Pending,
			}},
		},
		"batch.v1.checked": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Requirement: requirement, Status: approvals.Pending,
				Checked: approvals.Checked{Check: "fraud", Answer: approvals.CheckAsk, Said: approvals.Quote{Text: "A <new> customer.", Left: 3}},
			}},
		},
		"batch.v1.hosted": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Hosted: true, Requirement: requirement, Status: approvals.Pending,
			}},
		},
		"batch.v1.defined": approvals.Batch{
			ID: "batch-17-b", Run: "run-17-a", Requester: "U1", OpenedAt: noon, Approvals: []approvals.Approval{{
				Call: now, Proposed: now.Digest, Definition: "sha256:1f", Requirement: requirement, Status: approvals.Pending,
			}},
		},
		"entry.v1.hosted": agentrun.Entry{
			Run: "run-17-a", Call: "c1", Tool: "docs.ask", State: agentrun.EntryFinished, Fence: "x", At: noon,
			Finish: agentrun.Finish{Part: agentrun.ToolReturn{
				ToolName: "docs.ask", CallID: "c1", Content: json.RawMessage(`"42"`), Outcome: agentrun.OutcomeSuccess, ProviderCall: "mcp_1", At: noon,
			}},
		},
		"batch.v1.policy": policied(ref("c1", `{"path":"a"}`), ref("c1", `{"path":"b"}`)),
		"entry.v1": agentrun.Entry{
			Run: "run-17-a", Call: "c1", Tool: "delete_file", State: agentrun.EntryFinished, Fence: "x", At: noon,
			Finish: agentrun.Finish{
				Part: agentrun.ToolReturn{
					ToolName: "delete_file", CallID: "c1", Content: json.RawMessage(`"gone"`),
					Outcome: agentrun.OutcomeSuccess, Metadata: json.RawMessage(`{"b":2}`), At: noon,
				},
				Prompt: "what next", Aside: agentrun.AsideExternal, Metadata: json.RawMessage(`{"c":3}`),
			},
		},
		"sheet.v1": approvals.Sheet{
			ID: "sheet-17-s", By: "U1", Verdict: approvals.Approve, Reason: "tidy", Origin: "D1/1.2",
			CreatedAt: noon, ExpiresAt: noon.Add(approvals.SheetLife), Seal: old.Digest,
			Lines: []approvals.Line{
				{
					Batch: "batch-17-b", Call: "c1", Digest: now.Digest, Tool: "delete_file", Risky: true, Chosen: true,
					Outcome: approvals.LineSkipped, Why: approvals.WhyStale,
				},
				{Batch: "batch-03-b", Call: "c2", Digest: old.Digest, Tool: "list_files"},
			},
			Status: approvals.SheetSubmitted, Request: "r", SubmittedAt: noon, Owner: "fence", LeaseEnds: noon,
			Principal: approvals.Principal{User: "U1", Groups: []approvals.GroupID{"S1"}, GroupsAt: noon, For: []approvals.Absent{
				{User: "U3", Groups: []approvals.GroupID{"C9"}, Until: noon},
			}},
		},
		"ledger.v1": []approvals.LedgerEntry{{Key: "run-17-a/c1", Agent: "ops", Tool: "delete_file", At: noon}},
		"search.v1": storedSearch{versioned: current, Server: "10.0.0.7:6379", Cursor: 17, DoneAt: noon},
		"parked.v1": storedParked{versioned: current, Reason: "timeout", Attempts: 12, Since: noon},
	}
}

// previewed is a batch with what previews can put into it.
func previewed(call approvals.CallRef) approvals.Batch {
	return approvals.Batch{
		ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Requester: "U1", OpenedAt: noon,
		Approvals: []approvals.Approval{{
			Call: call, Proposed: call.Digest, Status: approvals.Pending, Preview: approvals.Preview{
				Status: approvals.PreviewMade, Reads: "read_file",
				Facts:        []approvals.Fact{{Label: "Size", Value: "3 bytes"}, {Label: "Changed", At: noon}},
				Content:      approvals.Content{Digest: approvals.PreviewDigest("batch-17-b", "c1", "-a\n+b\n"), Size: 6, Left: 3},
				Precondition: []byte("{}\xff"), CheckedAt: noon, Again: 1,
				Before: approvals.Before{
					Batch: "batch-17-a", Facts: []approvals.Fact{{Label: "Size", Value: "2 bytes"}},
					Content:   approvals.Content{Digest: approvals.PreviewDigest("batch-17-a", "c1", "-a\n"), Size: 3},
					CheckedAt: noon.Add(-time.Hour),
				},
			},
		}, {
			Call: call, Proposed: call.Digest, Status: approvals.Pending,
			Preview: approvals.Preview{Status: approvals.PreviewReadAsks, Reads: "read_file"},
		}},
	}
}

// policied is a batch with what policies, quorums and time can put into it.
func policied(old, now approvals.CallRef) approvals.Batch {
	sre := approvals.From{Groups: []approvals.GroupID{"S1"}}
	leads := approvals.From{Users: []approvals.UserID{"U3"}, Groups: []approvals.GroupID{"C9"}}
	deputy := approvals.Principal{User: "U4", Groups: []approvals.GroupID{"S1"}, GroupsAt: noon, For: []approvals.Absent{
		{User: "U3", Groups: []approvals.GroupID{"C9"}, Until: noon.Add(24 * time.Hour)}, {User: "U5"},
	}}
	return approvals.Batch{
		ID: "batch-17-b", Run: "run-17-a", Thread: "thread-17-t", Agent: "ops", Channel: "C1", Requester: "U1", OpenedAt: noon,
		SoFar: approvals.SoFar{
			Steps: 3, Executed: map[string]int{"delete_file": 2, "list_files": 1},
			Failed: map[string]int{"delete_file": 1}, Denied: map[string]int{"write_file": 1},
		},
		Approvals: []approvals.Approval{{
			Call: now, Proposed: old.Digest, Why: "it deletes", Rule: "prod-delete@0123abcd", Status: approvals.Pending,
			Requirement: approvals.Requirement{
				Quorums: []approvals.Quorum{
					{Name: "operations", Need: 2, From: sre},
					{Name: "security", Need: 1, From: leads, Choice: 1, Option: 1},
					{Name: "leads", Need: 2, From: leads, Choice: 1, Option: 2},
					{Name: "manager", Need: 1, From: approvals.From{Users: []approvals.UserID{"U5"}}, Stage: 2},
				},
				Vetoes:        []approvals.Quorum{{Name: "security", Need: 1, From: leads}},
				EditorMaySign: true, Delegation: true, ReasonNeeded: true, Deadline: noon.Add(8 * time.Hour),
				Ladder: []approvals.Rung{
					{At: noon.Add(2 * time.Hour), Kind: approvals.Remind},
					{At: noon.Add(4 * time.Hour), Kind: approvals.Escalate, Quorum: "operations", Add: leads, Channel: "C9"},
				},
			},
			Decisions: []approvals.Decision{{
				Call: "c1", By: deputy, Verdict: approvals.Approve, Digest: now.Digest, Reason: "for U3", At: noon,
			}},
			Amendments: []approvals.Amendment{{
				By: deputy, From: old.Digest, To: now.Digest, Cleared: []approvals.UserID{"U6", "U7"}, At: noon,
			}},
			Climbed: 1,
		}},
	}
}

func encodeAny(doc any) ([]byte, error) {
	switch doc := doc.(type) {
	case agentrun.Thread:
		return encodeThread(doc)
	case agentrun.Run:
		return encodeRun(doc)
	case agentrun.Entry:
		return encodeEntry(doc)
	case approvals.Batch:
		return encodeBatch(doc)
	case approvals.Sheet:
		return encodeSheet(doc)
	case []approvals.LedgerEntry:
		return encodeLedger(doc)
	default:
		return encode(doc)
	}
}

func decodeAny(kind string, d []byte) (any, error) {
	switch kind {
	case "thread":
		return decodeThread(d)
	case "ledger":
		return decodeLedger(d)
	case "run":
		return decodeRun(d)
	case "entry":
		return decodeEntry(d)
	case "batch":
		return decodeBatch(d)
	case "sheet":
		return decodeSheet(d)
	case "search":
		return decode[storedSearch](d)
	default:
		return decode[storedParked](d)
	}
}

// Every document in testdata was written once by a program that may still be
// running, and is never rewritten.
func TestOldDocumentsDecodeForEver(t *testing.T) {
	t.Parallel()
	current := map[string]string{}
	for sample, doc := range samples() {
		name := filepath.Join("testdata", sample+".json")
		current[name] = sample
		if _, err := os.Stat(name); *update && os.IsNotExist(err) {
			d, err := encodeAny(doc)
			require.NoError(t, err)
			d, err = unpack(d)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, append(d, '\n'), 0o600))
		}
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), len(current))
	for _, name := range files {
		d, err := os.ReadFile(name)
		require.NoError(t, err)
		kind, _, _ := strings.Cut(filepath.Base(name), ".")
		got, err := decodeAny(kind, d)
		require.NoError(t, err, name)
		require.Equal(t, samples()[strings.TrimSuffix(filepath.Base(name), ".json")], got, name)
		if current[name] == "" {
			continue
		}
		again, err := encodeAny(got)
		require.NoError(t, err)
		again, err = unpack(again)
		require.NoError(t, err)
		require.Equal(t, string(d), string(again)+"\n", "%s: what is written changed; raise schema and keep this file", name)
	}
}

func TestDocumentsThatCannotBeUnderstoodAreErrors(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"newer":       `{"v":2}`,
		"none":        `{}`,
		"not JSON":    `{"v":1`,
		"not a batch": `{"v":1,"approvals":3}`,
		"bad digest":  `{"v":1,"approvals":[{"call":{"digest":"xyz"},"proposed":""}]}`,
		"bad result":  `{"v":1,"calls":[{"call":{"digest":"` + approvals.Digest{}.String() + `"},"result":{"kind":"x"}}]}`,
		"empty":       ``,
	} {
		_, err := decodeBatch([]byte(doc))
		require.Error(t, err, name)
	}
	_, err := decodeEntry([]byte(`{"v":1,"part":{"kind":"response","parts":[]}}`))
	require.Error(t, err)
}

func TestScoresAreTheSameTextOnEveryServer(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(1_700_000_000, 0), time.Unix(2_000_000_000, 0), noon, time.Unix(1<<60, 0)} {
		s := scoreOf(at)
		require.Equal(t, score(1), s&1, at)
		require.Equal(t, s, score(float64(s)), at)
		require.LessOrEqual(t, s, score(maxScore))
		for _, k := range Kinds() {
			due := partition{}.due(k)
			stored := due.stored(s)
			require.Equal(t, score(1), stored&1, at)
			require.Equal(t, kindNumbers[k], stored>>kindBits, "it is in the range of its kind")
			require.LessOrEqual(t, stored, score(1<<53-1), "it is exact")
			require.Equal(t, s, due.at(float64(stored)))
		}
	}
	require.WithinDuration(t, noon, scoreOf(noon).time(), scoreSteps*time.Microsecond)
	require.Equal(t, scoreOf(noon)+scoreSteps, scoreOf(noon.Add(scoreSteps*time.Microsecond)))
	for ns := range time.Duration(3 * scoreSteps) {
		at := noon.Add(ns * 997)
		require.False(t, scoreAfter(at).time().Before(at), "nothing that is due then is due before")
		require.WithinDuration(t, at, scoreAfter(at).time(), scoreSteps*time.Microsecond)
	}
}
