package slackui_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/slacksim"
)

// statuses are the status lines that were shown in the thread, the first one first.
func (o *workspace) statuses(root string) []string {
	o.t.Helper()
	require.NoError(o.t, o.ui.Server.Shutdown(o.t.Context())) // waits for what is done in the background
	var all []string
	for _, c := range o.Calls("assistant.threads.setStatus") {
		form, err := url.ParseQuery(c.Request)
		require.NoError(o.t, err)
		require.Equal(o.t, "C0OPS", form.Get("channel_id"))
		require.Equal(o.t, root, form.Get("thread_ts"))
		all = append(all, form.Get("status"))
	}
	return all
}

func TestTheStatusLineSaysHowManyApprovalsAreMissing(t *testing.T) {
	three := by("named", fromUser("U0BOB", "U0CAROL", "U0DAVE"))
	three.Need = 3
	o, root, b := one(t, call("c1", "delete_file", `{}`, three))
	o.draw(b)
	require.Equal(t, []string{"is waiting for 3 approvals"}, o.statuses(root), "once, and not again while nothing changes")
	o.now.move(time.Minute)
	o.signs(b, 0, "U0BOB")
	o.draw(b)
	o.now.move(time.Minute)
	o.signs(b, 0, "U0CAROL")
	o.draw(b)
	o.now.move(time.Minute)
	o.signs(b, 0, "U0DAVE")
	o.draw(b)
	require.Equal(t, []string{"is waiting for 3 approvals", "is waiting for 2 of 3 approvals", "is waiting for 1 of 3 approvals"}, o.statuses(root),
		"nothing is waited for when all have approved")
}

// A status line that Slack does not take changes nothing else.
func TestAStatusLineThatFailsDelaysNothing(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "assistant.threads.setStatus", Status: 503}}})
	o.draw(o.opens(root, call("c1", "delete_file", `{}`, sre)))
	require.NotEmpty(t, o.card("U0BOB", root).Actions())
}

func TestTheStatusLineSaysWhatAResumedRunCalls(t *testing.T) {
	o, root, b := one(t)
	require.NoError(t, o.ui.Replies.Reconcile(t.Context(), string(b.Run)))
	o.signs(b, 0, "U0BOB")
	id, err := agentrun.ResumeRunID(b.ID)
	require.NoError(t, err)
	waits, err := o.Run(t.Context(), b.Run)
	require.NoError(t, err)
	o.setRun(agentrun.Run{
		ID: id, Thread: waits.Thread, Origin: waits.Origin, Parent: waits.ID, Batch: b.ID, Agent: "ops", Requester: "U0ALICE",
		Status: agentrun.RunRunning, Activity: []string{"delete_file"}, Version: 1,
	})
	o.now.move(time.Minute)
	require.NoError(t, o.ui.Replies.Reconcile(t.Context(), string(id)))
	all := o.statuses(root)
	require.Equal(t, "is working: delete_file", all[len(all)-1])
}
