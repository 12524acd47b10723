package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A tale is two runs of a conversation: people approve a call, its tool does not say
// whether it took effect, and they are asked again. Times are seconds, of the clock of
// the replica that has the first run and of the one that has the second.
func tale(first, second func(seconds int) time.Time) []moment {
	call := approvals.CallRef{ID: "c1", Name: "pay"}
	other := agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "c2", Name: "look"}}
	returned := func(id, tool string, at time.Time) agentrun.ToolReturn {
		return agentrun.ToolReturn{CallID: approvals.ToolCallID(id), ToolName: tool, Outcome: agentrun.OutcomeSuccess, At: at}
	}
	var s story
	one := teller{story: &s, run: agentrun.Run{ID: "run1", Agent: "ops", Status: agentrun.RunDeferred, Deferred: "b1", CreatedAt: first(0), EndedAt: first(5)}}
	one.journal = []agentrun.Entry{{Call: "c2", Tool: "look", State: agentrun.EntryFinished, At: first(5), Finish: agentrun.Finish{Part: returned("c2", "look", first(4)), Took: time.Second}}}
	one.tell([]agentrun.Message{
		agentrun.Request{At: first(1), Parts: []agentrun.RequestPart{agentrun.UserPrompt{}}},
		agentrun.Response{At: first(2), ModelName: "m", Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "c1", Name: "pay"}}, other}},
		agentrun.Request{At: first(5), Parts: []agentrun.RequestPart{returned("c2", "look", first(4))}},
	}, []approvals.Event{
		approvals.Opened{Batch: "b1", Approvals: []approvals.CallRef{call}, At: first(5)},
		approvals.Decided{Batch: "b1", Decision: approvals.Decision{Call: "c1", By: approvals.Principal{User: "U0BOB"}, Verdict: approvals.Approve, At: second(6)}},
		approvals.Settled{Batch: "b1", Call: "c1", Status: approvals.Approved, At: second(6)},
		approvals.Resolved{Batch: "b1", At: second(6)},
		approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.InDoubt, At: second(8)},
	}, false)
	two := teller{story: &s, run: agentrun.Run{ID: "run2", Agent: "ops", Parent: "run1", Batch: "b1", Status: agentrun.RunDeferred, Deferred: "b2", CreatedAt: second(7), EndedAt: second(9)}}
	two.journal = []agentrun.Entry{{Call: "c1", Tool: "pay", State: agentrun.EntryFinished, At: second(9), Finish: agentrun.Finish{Part: returned("c1", "pay", second(8)), Took: time.Second, Unsure: true}}}
	two.tell(nil, []approvals.Event{
		approvals.Opened{Batch: "b2", Approvals: []approvals.CallRef{call}, Doubts: []approvals.ToolCallID{"c1"}, At: second(9)},
		approvals.Decided{Batch: "b2", Decision: approvals.Decision{Call: "c1", By: approvals.Principal{User: "U0BOB"}, Verdict: approvals.RunAgain, At: first(10)}},
	}, true)
	return s.moments()
}

// Nothing is told before what it follows from, whatever the clocks say.
func TestTheStoryOfARunIsInTheOrderOfCauses(t *testing.T) {
	t.Parallel()
	seconds := func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }
	behind := func(n int) time.Time { return seconds(n - 60) }
	same := func(int) time.Time { return seconds(0) }
	want := []string{
		"agent ops was asked for", "the model was given a prompt", "the model m answered (0 tokens read, 0 written)", "it calls pay", "it calls look",
		"look began", "look ended after 1s", "the model was given the result of look: success", "people are asked about pay", "the run is deferred",
		"U0BOB decided: approve", "the call is approved", "everything is decided", "agent ops takes up the answers",
		"pay began", "pay ended after 1s; whether it took effect is not known", "what became of the call: in doubt",
		"people are asked what to do about pay, which may or may not have taken effect", "the run is deferred", "U0BOB decided: run again",
	}
	for name, clocks := range map[string][2]func(int) time.Time{
		"one clock": {seconds, seconds}, "the second replica is behind": {seconds, behind}, "the first replica is behind": {behind, seconds}, "everything at once": {same, same},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, m := range tale(clocks[0], clocks[1]) {
				said = append(said, m.What)
			}
			require.Equal(t, want, said)
		})
	}
}

// What programs read has a kind and the fields that it needs, without the prose.
func TestEveryMomentOfAStoryCanBeReadByAProgram(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	var got []string
	for _, m := range tale(func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }, func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }) {
		require.Contains(t, string(doc), "`"+string(m.Kind)+"`", "docs/operate.md")
		m.What, m.At = "", time.Time{}
		line, err := json.Marshal(m)
		require.NoError(t, err)
		got = append(got, strings.Replace(string(line), `"at":"0001-01-01T00:00:00Z",`, "", 1))
	}
	for _, want := range []string{
		`{"kind":"result_given","what":"","run":"run1","call":"c2","tool":"look","outcome":"success"}`,
		`{"kind":"run_ended","what":"","run":"run1","batch":"b1","status":"deferred"}`,
		`{"kind":"decided","what":"","run":"run1","batch":"b1","call":"c1","by":"U0BOB","verdict":"approve"}`,
		`{"kind":"call_ended","what":"","run":"run2","call":"c1","tool":"pay","took_seconds":1,"unsure":true}`,
		`{"kind":"concluded","what":"","run":"run1","batch":"b1","call":"c1","state":"in_doubt"}`,
		`{"kind":"opened","what":"","run":"run2","batch":"b2","call":"c1","tool":"pay","doubt":true}`,
		`{"kind":"decided","what":"","run":"run2","batch":"b2","call":"c1","by":"U0BOB","verdict":"run_again"}`,
	} {
		require.Contains(t, got, want)
	}
}
