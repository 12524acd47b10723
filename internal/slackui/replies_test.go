package slackui_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/stretchr/testify/require"
)

// runs stores a run in the thread and draws its reply.
func (o *workspace) reply(r agentrun.Run) error {
	o.t.Helper()
	o.setRun(r)
	return o.ui.Replies.Reconcile(o.t.Context(), string(r.ID))
}

func startedIn(root string) agentrun.Run {
	return agentrun.Run{
		ID: "run-07-a", Thread: "thread-07-one", Agent: "ops", Requester: "U0ALICE", Status: agentrun.RunQueued, Version: 1,
		Origin: agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: "C0OPS", Root: root},
	}
}

func TestOneMessageFollowsTheRun(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	run := startedIn(root)
	require.NoError(t, o.reply(run))
	only := func() string {
		t.Helper()
		all := o.thread("U0ALICE", root)
		require.Len(t, all, 1)
		return all[0].Shown()
	}
	require.Contains(t, only(), "about to start")

	run.Status, run.Activity, run.Steps, run.Version = agentrun.RunRunning, []string{"list_files", "read_file", "read_file"}, 1, 2
	later, ok := o.reply(run).(interface{ RetryAfter() time.Duration })
	require.True(t, ok, "a second edit within a second is put off")
	require.Positive(t, later.RetryAfter())
	o.now.Advance(time.Second)
	require.NoError(t, o.reply(run))
	require.Contains(t, only(), "read_file ×2")
	require.Equal(t, int64(2), o.drawnVersion(string(run.ID), "replies"))

	run.Status, run.Output, run.Version = agentrun.RunCompleted, "Both reports are gone.", 3
	require.NoError(t, o.reply(run), "what ends a run is shown at once")
	require.Contains(t, only(), "Both reports are gone.")

	calls := len(o.Calls("chat.update"))
	require.NoError(t, o.reply(run))
	require.Len(t, o.Calls("chat.update"), calls, "nothing is drawn twice")
}

// A message may wait for hours behind calls that people decide about. An edit would notify
// nobody of its answer, and show it far above what was said since.
func TestALateAnswerIsAMessageOfItsOwn(t *testing.T) {
	for status, want := range map[agentrun.Status]string{
		agentrun.RunCompleted: "Both reports are gone.", agentrun.RunFailed: "The model could not be reached.",
	} {
		o := newWorkspace(t, slacksim.Config{})
		root := o.say("U0ALICE", "clean up")
		b := o.opens(root, call("c1", "delete_file", `{}`, sre))
		run := o.waitsBehind(b)
		run.CreatedAt = noon
		require.NoError(t, o.reply(run))
		require.Contains(t, o.last(root), "Queued")

		o.now.Advance(time.Hour)
		run.Status, run.EndedAt, run.Version = status, o.now.Now(), 2
		run.Output, run.Failure = "Both reports are gone.", "The model could not be reached."
		require.NoError(t, o.reply(run))
		require.NoError(t, o.reply(run))
		all := o.thread("U0ALICE", root)
		require.Len(t, all, 2)
		require.Equal(t, "The result is below.", all[0].Text)
		require.Contains(t, all[1].Text, "<@U0ALICE>")
		require.Contains(t, all[1].Shown(), want)
	}
}

func TestARedrawWaitsForWhoeverDraws(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	claimed := `{"owner":"another","until":"` + o.now.Now().Add(time.Minute).Format(time.RFC3339) + `","body":{"anchors":null}}`
	require.NoError(t, o.CommitMemo(t.Context(), string(b.ID), "cards", []byte(claimed), 0, 0))
	var later *slackapi.LaterError
	require.ErrorAs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), &later)
	require.Empty(t, o.thread("U0ALICE", root))

	o.now.Advance(2 * time.Minute)
	o.draw(b)
	require.Len(t, o.thread("U0ALICE", root), 1, "a claim ends with its lease")
}

func TestAClickOnTheStoreOutageShowsSlacksWarning(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	o.draw(b)
	card := o.thread("U0BOB", root)[0]
	o.breaks(errOutage)
	out := o.press("U0BOB", card, "approve", 0)
	require.Equal(t, 500, out.Status)
	require.NotEmpty(t, out.VisibleError)
	o.breaks(nil)
	require.Equal(t, 200, o.press("U0BOB", card, "approve", 0).Status)
	require.Equal(t, approvals.Approved, o.batch(b.ID).Approvals[0].Status)
}

// busy makes somebody else the one who has just begun to draw the reply of a
// run, or ends that.
func (o *workspace) busy(id approvals.RunID, owner string) {
	o.t.Helper()
	raw, version, err := o.Memo(o.t.Context(), string(id), "replies")
	require.NoError(o.t, err)
	var note map[string]any
	require.NoError(o.t, json.Unmarshal(raw, &note))
	note["owner"], note["until"] = owner, o.now.Now().Add(8*time.Second)
	raw, err = json.Marshal(note)
	require.NoError(o.t, err)
	require.NoError(o.t, o.CommitMemo(o.t.Context(), string(id), "replies", raw, version, 0))
}

// The answer to a click that comes right after the card must not wait for
// whoever still draws what stood there before.
func TestAResumedRunIsShownBeforeTheRunThatItResumes(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, call("c1", "delete_file", `{}`, sre))
	parent := o.run(b.Run)
	require.NoError(t, o.reply(parent))
	waits := o.thread("U0ALICE", root)[0].Shown()
	require.Contains(t, waits, "Waiting for approval")

	o.approves(b, 0)
	resumed := startedIn(root)
	resumed.ID, resumed.Parent, resumed.Status, resumed.Output = "run-07-resumed", parent.ID, agentrun.RunCompleted, "Both reports are gone."
	o.busy(parent.ID, "another")
	var later *slackapi.LaterError
	require.ErrorAs(t, o.reply(resumed), &later)
	require.LessOrEqual(t, later.After, 50*time.Millisecond)
	all := o.thread("U0ALICE", root)
	require.Len(t, all, 2)
	require.Contains(t, all[1].Shown(), "Both reports are gone.", "its own message does not wait")
	require.Equal(t, waits, all[0].Shown())
	require.Zero(t, o.drawnVersion(string(resumed.ID), "replies"), "the rest is still due")

	o.now.Advance(later.After)
	o.busy(parent.ID, "")
	require.NoError(t, o.reply(resumed))
	require.NotEqual(t, waits, o.thread("U0ALICE", root)[0].Shown())
	require.Equal(t, resumed.Version, o.drawnVersion(string(resumed.ID), "replies"))
	require.Len(t, o.Calls("chat.postMessage"), 2)
}
