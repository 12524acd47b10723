package agentrun_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools/filetool"
)

// The tools that are shipped, on the store that is shipped: someone else writes
// a file that people have approved the deletion of. It stays, they are asked
// again, twice, and the run stops.
func TestAFileThatSomeoneWritesMeanwhileIsNotDeleted(t *testing.T) {
	for _, settles := range []bool{true, false} {
		t.Run(fmt.Sprint("it settles: ", settles), func(t *testing.T) {
			w, ctx, folder := newWorld(t), t.Context(), t.TempDir()
			w.now = time.Now
			path := filepath.Join(folder, "a.txt")
			writes := func(n int) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "version %d\n", n), 0o600))
			}
			writes(0)
			tools, err := filetool.New(folder)
			require.NoError(t, err)
			w.agent.Tools = tools
			client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			store, err := state.Open(ctx, state.Options{Client: client})
			require.NoError(t, err)
			runner, desk := w.runnerOn(store), approvals.NewDesk(store, w.policy, nil, time.Now)
			w.model.answers = []any{calls([3]string{"d", "delete_file", `{"path":"a.txt"}`})}
			run, err := runner.Mention(ctx, agentrun.Mention{Event: "e", Origin: origin, Agent: "ops", Requester: "alice", Text: "go"})
			require.NoError(t, err)

			for asked := 0; ; asked++ {
				require.NoError(t, runner.Work(ctx, run.ID))
				run, err = store.Run(ctx, run.ID)
				require.NoError(t, err)
				if run.Status != agentrun.RunDeferred {
					require.Equal(t, map[bool]int{true: 2, false: 3}[settles], asked)
					break
				}
				b, err := store.Batch(ctx, run.Deferred)
				require.NoError(t, err)
				p := b.Approvals[0].Preview
				require.Equal(t, approvals.PreviewMade, p.Status)
				require.Equal(t, approvals.Fact{Label: "Size", Value: "10 bytes"}, p.Facts[0])
				require.Equal(t, asked, p.Again)
				require.Equal(t, asked > 0, p.Before.Batch != "")
				if asked == 0 || !settles {
					writes(asked + 1)
				}
				_, err = desk.Decide(ctx, b.ID, approvals.RequestID("d"+string(b.ID)), approvals.Decide{Decision: approvals.Decision{
					Call: "d", By: approvals.Principal{User: "bob"}, Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: time.Now(),
				}})
				require.NoError(t, err)
				require.NoError(t, runner.Resume(ctx, b.ID))
				id, err := agentrun.ResumeRunID(b.ID)
				require.NoError(t, err)
				run.ID = id
			}
			if settles {
				require.Equal(t, agentrun.RunCompleted, run.Status, run.Failure)
				require.NoFileExists(t, path)
				return
			}
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Contains(t, run.Failure, "delete_file was not run.")
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "version 3\n", string(left))
			last, err := store.Batch(ctx, run.Batch)
			require.NoError(t, err)
			require.Equal(t, approvals.NotRun, last.Approvals[0].Execution.State)
		})
	}
}

// The content of a file that the agent may not read without approval does not
// leave it with the request to overwrite it.
func TestAFileThatMayNotBeReadIsNotPreviewed(t *testing.T) {
	for want, ruling := range map[approvals.PreviewStatus]approvals.Ruling{
		approvals.PreviewReadAsks: approvals.Ask{Requirement: signedBy("bob")}, approvals.PreviewReadRefused: approvals.Refuse{},
		approvals.PreviewMade: approvals.Permit{},
	} {
		w, folder := newWorld(t), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("hunter2\n"), 0o600))
		tools, err := filetool.New(folder)
		require.NoError(t, err)
		w.agent.Tools, w.policy.by = tools, map[string]approvals.Ruling{"read_file": ruling}
		run := w.say(calls([3]string{"w", "write_file", `{"path":"a.txt","content":"x\n"}`}))
		p := w.previewOf(run.Deferred)
		require.Equal(t, want, p.Status)
		if want != approvals.PreviewMade {
			require.Equal(t, approvals.Preview{Status: want, Reads: "read_file"}, p)
			continue
		}
		content, err := w.store.Args(t.Context(), run.Deferred, p.Content.Digest)
		require.NoError(t, err)
		require.Contains(t, string(content), "-hunter2\n+x\n")
	}
}
