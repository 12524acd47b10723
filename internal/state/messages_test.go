package state_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// Arguments that a batch has are not stored again in the message that made the call, which
// is read as it was written. What is missing fails the reader, unless it was removed with
// its batch.
func cites(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	prefix := prefix()
	s, in := openStoreAt(t, c, newClock().Now, prefix), ids{9}
	key := func(rest string) string { return prefix + ":{p09}:" + rest }
	thread := agentrun.Thread{ID: in.thread("t"), Messages: 2}
	opens := openBatch(t, in.batch("b"), in.run("r"), 1, start0)
	const noise = 1000 // bytes that cannot be packed
	long := func(id approvals.ToolCallID) approvals.ToolCall {
		content := ""
		for len(content) < noise {
			content += rand.Text()
		}
		return approvals.ToolCall{ID: id, Name: "write_file", Args: fmt.Appendf(nil, `{ "path": "\u00e9 <a&b>", "content": %q}`, content)}
	}
	asked, also, permitted := long("asked"), long("also"), long("permitted")
	digests := map[approvals.ToolCallID]approvals.Digest{}
	for _, call := range []approvals.ToolCall{asked, also} {
		digests[call.ID] = approvals.DigestOf(opens.Batch.ID, call)
		opens.Args[digests[call.ID]] = call.Args
	}
	short := approvals.ToolCall{ID: "short", Name: "delete_file"}
	for _, args := range opens.Args {
		if len(args) < 100 {
			short.Args = args
		}
	}
	messages := []agentrun.Message{
		agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: string(asked.Args), At: start0}}, At: start0},
		agentrun.Response{At: start0, Parts: []agentrun.ResponsePart{
			agentrun.Text{Content: "I'll write both."},
			agentrun.CallPart{ToolCall: asked, Rule: "files@1"},
			agentrun.CallPart{ToolCall: permitted},
			agentrun.CallPart{ToolCall: short},
			agentrun.CallPart{ToolCall: also},
			agentrun.ProviderCall{ToolCall: permitted, Output: "done"},
		}},
	}
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{
		Thread: &thread, Opens: &opens, Append: &agentrun.Append{Thread: thread.ID, Messages: messages},
	}))
	read := func() []agentrun.Message {
		t.Helper()
		got, err := s.Messages(t.Context(), thread.ID, 0, 2)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, messages, read())

	stored, err := c.LIndex(t.Context(), key("messages:"+string(thread.ID)), 1).Result()
	require.NoError(t, err)
	if behind, ok := c.(*held); ok && behind.apart {
		require.Greater(t, len(stored), 3*noise, "older versions cannot read what cites")
		return
	}
	require.Less(t, len(stored), 3*noise)

	of := key("args:" + string(opens.Batch.ID) + ":" + digests["also"].String())
	require.NoError(t, c.Set(t.Context(), of, "\x01\xff", 0).Err())
	_, err = s.Messages(t.Context(), thread.ID, 0, 2)
	require.ErrorIs(t, err, agentrun.ErrUnreadable)
	require.NoError(t, c.Del(t.Context(), of).Err())
	_, err = s.Messages(t.Context(), thread.ID, 1, 2)
	require.ErrorIs(t, err, agentrun.ErrUnreadable)
	require.NoError(t, c.Del(t.Context(), key("batch:"+string(opens.Batch.ID))).Err())
	response := messages[1].(agentrun.Response)
	response.Parts[4] = agentrun.CallPart{ToolCall: approvals.ToolCall{ID: also.ID, Name: also.Name, Args: json.RawMessage(`{"countersign":"These arguments were removed with their request."}`)}}
	require.Equal(t, messages, read())
}

// What a call would change may be, byte for byte, its arguments. It is removed when the call
// is edited, and the message that made the call is read as before.
func citesNoPreview(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	s, in := openStore(t, c, newClock().Now), ids{9}
	thread := agentrun.Thread{ID: in.thread("t"), Messages: 1}
	batch := in.batch("b")
	opens := agentrun.OpenBatch{Args: map[approvals.Digest]json.RawMessage{}}
	args := fmt.Appendf(nil, `{"path":"%0300d"}`, 1)
	var asked []approvals.Deferral
	var response agentrun.Response
	for n := range 10 {
		call := approvals.ToolCall{ID: approvals.ToolCallID(fmt.Sprint(n)), Name: "write_file", Args: args}
		content := approvals.PreviewDigest(batch, call.ID, string(args))
		opens.Args[content], opens.Args[approvals.DigestOf(batch, call)] = args, args
		asked = append(asked, approvals.Deferral{
			Call: call, Preview: approvals.Preview{Status: approvals.PreviewMade, Content: approvals.Content{Digest: content, Size: len(args)}},
			Ask: approvals.Ask{Requirement: approvals.Requirement{Quorums: []approvals.Quorum{{Name: "ops", Need: 1, From: approvals.From{Users: []approvals.UserID{"ann"}}}}}},
		})
		response.Parts = append(response.Parts, agentrun.CallPart{ToolCall: call})
	}
	b, events, err := approvals.Open(approvals.Batch{ID: batch, Run: in.run("r"), OpenedAt: start0}, asked, nil)
	require.NoError(t, err)
	opens.Batch, opens.Events = b, events
	require.NoError(t, s.Commit(t.Context(), agentrun.Commit{
		Thread: &thread, Opens: &opens, Append: &agentrun.Append{Thread: thread.ID, Messages: []agentrun.Message{response}},
	}))
	for _, a := range b.Approvals {
		edited := approvals.ToolCall{ID: a.Call.ID, Name: a.Call.Name, Args: json.RawMessage(`{"path":"other"}`)}
		next, events, err := b.Apply(approvals.Amend{
			Call: edited.ID, From: a.Call.Digest, Args: edited.Args, Ruling: approvals.Permit{}, By: approvals.Principal{User: "ann"}, At: start0,
		})
		require.NoError(t, err)
		require.NoError(t, s.CommitBatch(t.Context(), approvals.BatchCommit{
			Before: b, Batch: next, Events: events, Args: map[approvals.Digest]json.RawMessage{approvals.DigestOf(batch, edited): edited.Args},
		}))
		b = next
	}
	got, err := s.Messages(t.Context(), thread.ID, 0, 1)
	require.NoError(t, err)
	require.Equal(t, []agentrun.Message{response}, got)
}
