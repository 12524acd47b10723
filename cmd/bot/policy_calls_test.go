package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/state/statetest"
)

// TestWhatRanCanBeJudgedByAnotherPolicy: the calls of a story are read back
// from its Redis, argument by argument, and a new policy says what it would
// have ruled.
func TestWhatRanCanBeJudgedByAnotherPolicy(t *testing.T) {
	t.Parallel()
	client, ok := statetest.Redis(t).(*redis.Client)
	require.True(t, ok)
	url := "unix://" + client.Options().Addr
	s, _ := startDemo(t, "--redis", url)
	root := s.ask(cleanUp, "")
	s.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))

	var calls, words bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"policy", "calls"}, []string{"REDIS_URL=" + url}, &calls, &words))
	require.Contains(t, words.String(), "The output contains the arguments of the calls")
	var said []string
	for line := range strings.Lines(calls.String()) {
		var r policy.Recorded
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		p := r.Proposal()
		require.Equal(t, "ops", p.Agent)
		require.EqualValues(t, alice, p.Requester)
		said = append(said, p.Call.Name+" "+string(p.Call.Args))
	}
	require.Equal(t, []string{
		`list_files {}`,
		`read_file {"path":"reports/2023-q1-sales.txt"}`, `read_file {"path":"reports/2023-q2-sales.txt"}`,
		`delete_file {"path":"reports/2023-q1-sales.txt"}`, `delete_file {"path":"reports/2023-q2-sales.txt"}`,
	}, said)

	// What is stored may have been damaged by somebody who wants to write on this screen.
	client.HSet(t.Context(), "countersign:{p05}:run:run-05-\x1b[2J", "d", "?", "v", 1)
	opened, err := approvals.EncodeEvent(approvals.Opened{Batch: "batch-05-x", Run: "run-05-\x1b[2J", At: time.Now()})
	require.NoError(t, err)
	require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: "countersign:{p05}:facts", Values: []any{"e", opened}}).Err())
	words.Reset()
	require.ErrorContains(t, run(t.Context(), []string{"policy", "calls"}, []string{"REDIS_URL=" + url}, io.Discard, &words), "1 thread could not be read")
	require.Contains(t, words.String(), `\u001b[2J`)
	require.NotContains(t, words.String(), "\x1b")

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const asks = "groups: {sre: S0SRE}\ndefault: {quorums: [{name: sre, need: 1, from: {groups: [sre]}}]}\n"
	was := file("was.yaml", asks)
	will := file("will.yaml", asks+"rules:\n  - {name: keep, tools: [delete_file], when: 'args.path.contains(\"q1\")', deny: Kept.}\n")
	var out bytes.Buffer
	replay := []string{"policy", "replay", "--old", was, "--new", will, file("calls.jsonl", calls.String())}
	require.NoError(t, run(t.Context(), replay, nil, &out, &words), "stricter is no failure")
	require.Contains(t, out.String(), "delete_file")
	require.Contains(t, out.String(), "5 calls")
}
