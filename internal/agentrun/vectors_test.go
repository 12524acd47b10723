package agentrun_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// A vector is a case that was observed by running PydanticAI.
type vector struct {
	Name     string          `json:"name"`
	JSON     json.RawMessage `json:"json"`
	Accepted bool            `json:"accepted"`

	History       json.RawMessage  `json:"message_history"`
	Results       *vectorResults   `json:"deferred_tool_results"`
	Prompt        *string          `json:"user_prompt"`
	OK            bool             `json:"ok"`
	Reason        string           `json:"reason"`
	Output        json.RawMessage  `json:"output"`
	NewMessages   []map[string]any `json:"new_messages"`
	ToolsExecuted []struct {
		Tool string
		X    int
	} `json:"tools_executed"`
	Requests int `json:"model_requests"`
	Counted  int `json:"tool_calls_counted"`
}

func (v vector) executions() []string {
	var names []string
	for _, e := range v.ToolsExecuted {
		names = append(names, fmt.Sprintf("%s:%d", e.Tool, e.X))
	}
	return names
}

type vectorResults struct {
	Approvals map[approvals.ToolCallID]json.RawMessage `json:"approvals"`
	Calls     map[approvals.ToolCallID]json.RawMessage `json:"calls"`
}

func vectors(t *testing.T, section string) []vector {
	t.Helper()
	raw, err := os.ReadFile("../approvals/testdata/deferred-tools.json")
	require.NoError(t, err)
	var small bytes.Buffer // arguments are kept byte for byte, also their spaces
	require.NoError(t, json.Compact(&small, raw))
	var file map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(small.Bytes(), &file))
	var cases []vector
	require.NoError(t, json.Unmarshal(file[section], &cases))
	require.NotEmpty(t, cases)
	return cases
}

func TestVectorsLoadMessages(t *testing.T) {
	for _, v := range vectors(t, "model_messages_load") {
		t.Run(v.Name, func(t *testing.T) {
			_, err := unmarshalMessages(v.JSON)
			require.Equal(t, v.Accepted, err == nil, "%v", err)
		})
	}
}

// refused is how a run ends whose answers do not fit: nothing is executed, the
// model is not asked, and the history can be continued.
func refused(t *testing.T, w *world, got outcome) {
	t.Helper()
	require.Equal(t, agentrun.RunFailed, got.run.Status)
	require.NotEmpty(t, got.run.Failure)
	require.Empty(t, w.executed())
	require.Empty(t, w.model.requests)
	requireAnswered(t, w.history())
}

// neverSettles: the core refuses to record the answer, so nothing is resumed.
func neverSettles(t *testing.T, w *world, got outcome) {
	t.Helper()
	require.Error(t, got.settling)
	require.Equal(t, agentrun.RunDeferred, got.run.Status)
	require.Empty(t, w.executed())
	require.Empty(t, w.model.requests)
}

// stricter are the cases in which we do not do what upstream does, each with
// the rows of the contract that say so.
var stricter = map[string]struct {
	rows  string
	check func(t *testing.T, w *world, got outcome)
}{
	"override args": {"12, 40", func(t *testing.T, w *world, got outcome) {
		t.Helper()
		require.Equal(t, agentrun.RunCompleted, got.run.Status)
		require.Equal(t, []string{"gated:9"}, w.executed())
		require.Equal(t, []string{
			"user: go", `call g1 gated{"x":1}`, `g1 success: "gated:9"`,
			`user: The arguments of call g1 (gated) were changed by a person before it was run. It was run with: {"x":9}`,
			"text: done",
		}, brief(w.history()))
	}},
	"override args invalid": {"41", func(t *testing.T, w *world, got outcome) {
		t.Helper()
		require.Equal(t, agentrun.RunCompleted, got.run.Status)
		require.Empty(t, w.executed())
		require.Equal(t, []string{
			"user: go", `call g1 gated{"x":1}`, "g1 retry: x: Input should be a valid integer",
			"user: The arguments of call g1 (gated) had been changed by a person, and it was not run with them.",
			"text: done",
		}, brief(w.history()))
	}},
	"approval answered through calls (tool skipped)": {"29", neverSettles},
	"calls wins over approvals for one id":           {"28", neverSettles},
	"no results, mixed, prompt: same":                {"35", refused},
}

// In these the batch is not what the history says, as if one of them had been
// tampered with: it has exactly the calls that are answered.
var asAnswered = map[string]bool{
	"missing result": true, "unknown extra id": true, "duplicate ids in history": true,
	"no response in history": true, "last response has no tool calls": true,
}

// outcome is what became of a vector's run.
type outcome struct {
	run      agentrun.Run
	settling error // of recording the answers
}

func TestVectorsResume(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vectors(t, "resume") {
		seen[v.Name] = true
		t.Run(v.Name, func(t *testing.T) {
			w := newWorld(t)
			got := w.play(v)
			if s, ok := stricter[v.Name]; ok {
				t.Logf("stricter: row %s", s.rows)
				s.check(t, w, got)
				return
			}
			if !v.OK {
				refused(t, w, got)
				return
			}
			require.NoError(t, got.settling)
			require.Len(t, w.executed(), len(v.ToolsExecuted))
			require.Len(t, w.model.requests, v.Requests)
			if got.run.Status == agentrun.RunDeferred {
				require.Contains(t, string(v.Output), "approvals")
				require.Len(t, w.batch(got.run.Deferred).Approvals, 1)
			} else {
				require.Equal(t, agentrun.RunCompleted, got.run.Status, got.run.Failure)
				require.JSONEq(t, string(v.Output), jsonOf(t, got.run.Output))
				require.Equal(t, v.Counted, got.run.Usage.ToolCalls)
				require.ElementsMatch(t, v.executions(), w.executed()) // they run in parallel
			}
			require.Equal(t, plain(v.NewMessages), plain(w.messagesFrom(got.run.From, v)))
		})
	}
	for name := range stricter {
		require.True(t, seen[name], "no vector is named %q", name)
	}
	for name := range asAnswered {
		require.True(t, seen[name], "no vector is named %q", name)
	}
}

// play seeds the store with what the vector begins with, records the answers,
// and lets a runner continue.
func (w *world) play(v vector) outcome {
	t := w.t
	t.Helper()
	history, err := unmarshalMessages(v.History)
	require.NoError(t, err)
	threadID := agentrun.ThreadIDOf(origin)
	partition, err := approvals.Partition(string(threadID))
	require.NoError(t, err)
	run := agentrun.Run{
		ID: approvals.RunID(approvals.NewID("run", partition, "seed")), Thread: threadID, Origin: origin,
		Agent: "ops", Requester: "alice", Status: agentrun.RunQueued, To: len(history),
	}
	thread := agentrun.Thread{ID: threadID, Origin: origin, Active: run.ID, Messages: len(history)}
	seed := agentrun.Commit{
		Request: "seed", Thread: &thread, Append: &agentrun.Append{Thread: threadID, Messages: history},
	}
	if v.Results == nil {
		if v.Prompt != nil {
			run.Prompt, run.From = *v.Prompt, len(history)
		}
		seed.Runs = []agentrun.Run{run}
		require.NoError(t, w.store.Commit(t.Context(), seed))
		return outcome{run: w.work(run.ID)}
	}
	batch := approvals.BatchID(approvals.NewID("batch", partition, "seed"))
	run.Status, run.Deferred = agentrun.RunDeferred, batch
	seed.Runs, seed.Opens = []agentrun.Run{run}, w.opens(v, batch, run.ID, history)
	require.NoError(t, w.store.Commit(t.Context(), seed))
	if err := w.settle(batch, v.Results); err != nil {
		require.NoError(t, w.runner().Resume(t.Context(), batch))
		return outcome{run: w.run(run.ID), settling: err}
	}
	require.NoError(t, w.runner().Resume(t.Context(), batch))
	id, err := agentrun.ResumeRunID(batch)
	require.NoError(t, err)
	if v.Prompt != nil {
		resumed := w.run(id)
		resumed.Prompt = *v.Prompt
		require.NoError(t, w.store.Commit(t.Context(), agentrun.Commit{Request: "prompt", Runs: []agentrun.Run{resumed}}))
	}
	return outcome{run: w.work(id)}
}

// opens is the batch of the pending calls: what people must approve, and what runs
// elsewhere.
func (w *world) opens(v vector, id approvals.BatchID, run approvals.RunID, history []agentrun.Message) *agentrun.OpenBatch {
	w.t.Helper()
	pending, err := agentrun.Pending(history)
	if asAnswered[v.Name] {
		known := map[approvals.ToolCallID]approvals.ToolCall{}
		for _, c := range pending {
			known[c.ID] = c
		}
		pending, err = nil, nil
		for call := range v.Results.Approvals {
			c, ok := known[call]
			if !ok {
				c = approvals.ToolCall{ID: call, Name: "gated", Args: json.RawMessage(`{"x":1}`)}
			}
			pending = append(pending, c)
		}
	}
	require.NoError(w.t, err)
	open := &agentrun.OpenBatch{Args: map[approvals.Digest]json.RawMessage{}}
	var ask, elsewhere []approvals.Deferral
	for _, c := range pending {
		open.Args[approvals.DigestOf(id, c)] = c.Args
		if c.Name == "slow" {
			elsewhere = append(elsewhere, approvals.Deferral{Call: c})
			continue
		}
		ask = append(ask, approvals.Deferral{Call: c, Ask: approvals.Ask{Requirement: signedBy("bob")}})
	}
	open.Batch, open.Events, err = approvals.Open(approvals.Batch{
		ID: id, Run: run, Agent: "ops", Requester: "alice", OpenedAt: epoch,
	}, ask, elsewhere)
	require.NoError(w.t, err)
	return open
}

// settle records the answers, as people and other systems would give them.
func (w *world) settle(id approvals.BatchID, r *vectorResults) error {
	w.t.Helper()
	for call, raw := range r.Calls {
		if err := w.store.move(id, nil, approvals.Fulfill{Call: call, Result: callResult(w.t, raw), By: "job", At: epoch}); err != nil {
			return err
		}
	}
	for call, raw := range r.Approvals {
		var answer struct {
			Kind string          `json:"kind"`
			Args json.RawMessage `json:"override_args"`
		}
		verdict := approvals.Approve
		if string(raw) == "false" {
			verdict = approvals.Deny
		} else if raw[0] == '{' {
			require.NoError(w.t, json.Unmarshal(raw, &answer))
			w.amend(id, call, string(answer.Args))
		}
		w.decide(id, call, verdict, "")
	}
	return nil
}

func callResult(t *testing.T, raw json.RawMessage) approvals.CallResult {
	t.Helper()
	var r struct {
		Kind        string          `json:"kind"`
		PartKind    string          `json:"part_kind"`
		ReturnValue json.RawMessage `json:"return_value"`
		Content     json.RawMessage `json:"content"`
		Metadata    json.RawMessage `json:"metadata"`
		Message     string          `json:"message"`
	}
	if raw[0] == '{' {
		require.NoError(t, json.Unmarshal(raw, &r))
	}
	switch {
	case r.Kind == "tool-return":
		return approvals.ToolReturn{ReturnValue: r.ReturnValue, Content: r.Content, Metadata: r.Metadata}
	case r.Kind == "tool-failed":
		return approvals.ToolFailed{Message: r.Message}
	case r.PartKind == "retry-prompt":
		var message string
		require.NoError(t, json.Unmarshal(r.Content, &message))
		return approvals.ModelRetry{Message: message}
	}
	return approvals.ToolReturn{ReturnValue: raw}
}

// messagesFrom returns what the vector's run has added, as JSON that can be compared.
func (w *world) messagesFrom(from int, v vector) []map[string]any {
	w.t.Helper()
	if v.Results == nil {
		history, err := unmarshalMessages(v.History)
		require.NoError(w.t, err)
		from = len(history)
	}
	raw, err := marshalMessages(w.history()[from:])
	require.NoError(w.t, err)
	var out []map[string]any
	require.NoError(w.t, json.Unmarshal(raw, &out))
	return out
}

// plain removes from messages what a vector does not say.
func plain(messages []map[string]any) []map[string]any {
	out := []map[string]any{}
	for _, m := range messages {
		var parts []map[string]any
		for _, p := range m["parts"].([]any) {
			part := map[string]any{}
			for k, v := range p.(map[string]any) {
				if k != "timestamp" && v != nil {
					part[k] = v
				}
			}
			parts = append(parts, part)
		}
		out = append(out, map[string]any{"kind": m["kind"], "parts": parts})
	}
	return out
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// requireAnswered checks that every call in a history is answered exactly once,
// and before anything that a model or a person says after it.
func requireAnswered(t require.TestingT, history []agentrun.Message) {
	open := map[approvals.ToolCallID]bool{}
	for _, m := range history {
		switch m := m.(type) {
		case agentrun.Response:
			require.Empty(t, open, "unanswered before the next response")
			for _, p := range m.Parts {
				if c, ok := p.(agentrun.CallPart); ok {
					open[c.ID] = true
				}
			}
		case agentrun.Request:
			for _, p := range m.Parts {
				var id approvals.ToolCallID
				switch p := p.(type) {
				case agentrun.ToolReturn:
					id = p.CallID
				case agentrun.RetryPrompt:
					if p.ToolName == "" {
						continue
					}
					id = p.CallID
				case agentrun.UserPrompt:
					continue
				}
				require.True(t, open[id], "call %s is answered once", id)
				delete(open, id)
			}
		}
	}
	require.Empty(t, open, "unanswered at the end")
}
