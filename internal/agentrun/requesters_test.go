package agentrun_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// separate makes a policy that asks bob or carol, and not the requester.
func separate() *rules {
	return &rules{by: map[string]approvals.Ruling{"gated": approvals.Ask{Requirement: approvals.Requirement{
		Quorums:    []approvals.Quorum{{Name: "ops", Need: 1, From: approvals.From{Users: []approvals.UserID{"bob", "carol"}}}},
		Separation: true,
	}}}}
}

// approves is what comes of an approval of the call by this person.
func (w *world) approves(id approvals.BatchID, call approvals.ToolCallID, user approvals.UserID) error {
	w.t.Helper()
	for _, a := range w.batch(id).Approvals {
		if a.Call.ID == call {
			return w.store.move(id, nil, approvals.Decide{Decision: approvals.Decision{
				Call: call, By: approvals.Principal{User: user}, Verdict: approvals.Approve, Digest: a.Call.Digest, At: epoch,
			}})
		}
	}
	w.t.Fatalf("no call %s in batch %s", call, id)
	return nil
}

// An approver writes what they want, someone else gets the agent going, and
// the approver would approve what follows alone.
func TestAuthorsOfTheThreadDoNotApproveWhatFollows(t *testing.T) {
	w := newWorld(t)
	w.policy = separate()
	bobs, err := w.writes("bob", "gated 1 should happen one day")
	require.NoError(t, err)
	require.Equal(t, agentrun.RunCompleted, w.work(bobs.ID).Status)
	run := w.say(calls([3]string{"g", "gated", `{"x":1}`}))

	require.ErrorIs(t, w.approves(run.Deferred, "g", "alice"), approvals.ErrOwnRequest)
	require.ErrorIs(t, w.approves(run.Deferred, "g", "bob"), approvals.ErrOwnRequest)
	require.NoError(t, w.approves(run.Deferred, "g", "carol"))
}

// A reason that is quoted to the model is as good as a prompt.
func TestAuthorsOfAReasonDoNotApproveWhatFollows(t *testing.T) {
	for reason, want := range map[string]error{"do gated 2 instead": approvals.ErrOwnRequest, " \u200b": nil} {
		w := newWorld(t)
		w.policy = separate()
		run := w.say(calls([3]string{"g1", "gated", `{"x":1}`}), calls([3]string{"g2", "gated", `{"x":2}`}))
		w.decide(run.Deferred, "g1", approvals.Deny, reason)
		resumed := w.resume(run.Deferred)
		require.Equal(t, agentrun.RunDeferred, resumed.Status, resumed.Failure)
		require.ErrorIs(t, w.approves(resumed.Deferred, "g2", "bob"), want)
	}
}

// So are arguments that a person wrote: the model is told with which the call ran.
func TestEditorsOfArgumentsDoNotApproveWhatFollows(t *testing.T) {
	w := newWorld(t)
	w.policy = separate()
	run := w.say(calls([3]string{"g1", "gated", `{"x":1}`}), calls([3]string{"g2", "gated", `{"x":2}`}))
	a := w.batch(run.Deferred).Approvals[0]
	require.NoError(t, w.store.move(run.Deferred, []byte(`{"x":7}`), approvals.Amend{
		Call: "g1", From: a.Call.Digest, Args: []byte(`{"x":7}`), Ruling: approvals.Permit{},
		By: approvals.Principal{User: "bob"}, At: epoch,
	}))
	require.NoError(t, w.approves(run.Deferred, "g1", "carol"))
	resumed := w.resume(run.Deferred)
	require.Equal(t, []string{"gated:7"}, w.executed())
	require.ErrorIs(t, w.approves(resumed.Deferred, "g2", "bob"), approvals.ErrOwnRequest)
	require.NoError(t, w.approves(resumed.Deferred, "g2", "carol"), "a signature is no word to the model")
}

// forget stores the messages of the thread as they were stored before their
// authors were noted.
func (w *world) forget() {
	w.t.Helper()
	ctx, thread := w.t.Context(), w.thread()
	key := w.store.key(w.t, "messages", string(thread.ID))
	messages, err := w.store.Messages(ctx, thread.ID, 0, thread.Messages)
	require.NoError(w.t, err)
	noted := 0
	for i, m := range messages {
		text, err := agentrun.EncodeMessage(m)
		require.NoError(w.t, err)
		old := regexp.MustCompile(`"authors":\[[^\]]*\],`).ReplaceAll(text, nil)
		noted += len(text) - len(old)
		require.NoError(w.t, server.LSet(ctx, key, int64(i), old).Err())
	}
	require.Positive(w.t, noted, "no message had authors")
}

// lose deletes a document.
func (w *world) lose(kind, id string) {
	w.t.Helper()
	require.Equal(w.t, int64(1), server.Del(w.t.Context(), w.store.key(w.t, kind, id)).Val())
}

// Requests stored without authors were written by the people who began the run,
// and by those whose words it took up. Where that is not known any more, the
// requester alone is kept from approving.
func TestTheAuthorsOfOldMessagesAreThoseOfTheirRuns(t *testing.T) {
	for name, c := range map[string]struct {
		batch, runs  bool // what is lost
		participants []approvals.UserID
	}{
		"all is there":     {false, false, []approvals.UserID{"dave", "bob", "alice"}},
		"the batch is not": {true, false, []approvals.UserID{"dave", "alice"}},
		"nor are the runs": {true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy = separate()
			w.model.answers = []any{calls([3]string{"g1", "gated", `{"x":1}`})}
			daves, err := w.writes("dave", "first")
			require.NoError(t, err)
			deferred := w.work(daves.ID)
			w.decide(deferred.Deferred, "g1", approvals.Deny, "not that one")
			resumed := w.resume(deferred.Deferred)
			require.Equal(t, agentrun.RunCompleted, resumed.Status)
			alices, err := w.writes("alice", "second")
			require.NoError(t, err)
			require.Equal(t, agentrun.RunCompleted, w.work(alices.ID).Status)

			w.forget()
			if c.batch {
				w.lose("batch", string(deferred.Deferred))
			}
			if c.runs {
				for _, run := range []agentrun.Run{deferred, resumed, alices} {
					w.lose("run", string(run.ID))
				}
			}
			w.model.answers = []any{calls([3]string{"g2", "gated", `{"x":1}`})}
			erins, err := w.writes("erin", "third")
			require.NoError(t, err)
			b := w.batch(w.work(erins.ID).Deferred)
			require.Equal(t, approvals.UserID("erin"), b.Requester)
			require.Equal(t, c.participants, b.Participants)
		})
	}
}

// A store that does not say who wrote what opens no batch.
func TestWithoutItsAuthorsNoBatchOpens(t *testing.T) {
	w := newWorld(t)
	first, err := w.writes("bob", "first")
	require.NoError(t, err)
	w.work(first.ID)
	w.forget()
	w.model.answers = []any{calls([3]string{"p", "plain", `{"x":1}`}, [3]string{"g", "gated", `{"x":1}`})}
	id := w.mention("go").ID
	errDown := errors.New("no answer")
	require.ErrorIs(t, w.runnerOn(silent{w.store, first.ID, errDown}).Work(t.Context(), id), errDown)
	run := w.work(id)
	require.Equal(t, []approvals.UserID{"bob"}, w.batch(run.Deferred).Participants)
	require.Equal(t, []string{"plain:1"}, w.executed(), "what ran is not run again")
}

// silent is a store that does not tell of one run.
type silent struct {
	*hooked
	about approvals.RunID
	err   error
}

func (s silent) Run(ctx context.Context, id approvals.RunID) (agentrun.Run, error) {
	if id == s.about {
		return agentrun.Run{}, s.err
	}
	return s.hooked.Run(ctx, id)
}

// Who wrote what is noted of every request, also that nobody did.
func TestEveryRequestNotesItsAuthors(t *testing.T) {
	w := newWorld(t)
	run := w.say(calls([3]string{"p", "plain", `{"x":1}`}), calls([3]string{"g", "gated", `{"x":1}`}))
	_, err := w.writes("alice", "never mind")
	require.NoError(t, err)
	w.resume(run.Deferred)
	var authors [][]approvals.UserID
	for _, m := range w.history() {
		if r, ok := m.(agentrun.Request); ok {
			authors = append(authors, r.Authors)
		}
	}
	require.Equal(t, [][]approvals.UserID{{"alice"}, {}, {"alice"}}, authors)
}

// What waits for its turn was not before the model, and whoever wrote it may
// sign.
func TestWhatWaitsInTheThreadIsNoWordToTheModel(t *testing.T) {
	w := newWorld(t)
	w.policy = separate()
	id := w.mention("go").ID
	_, err := w.writes("bob", "and then gated 9")
	require.NoError(t, err)
	w.model.answers = []any{calls([3]string{"g", "gated", `{"x":1}`})}
	run := w.work(id)
	require.Empty(t, w.batch(run.Deferred).Participants)
	require.NoError(t, w.approves(run.Deferred, "g", "bob"))
}

// Who changed the arguments before the tool asked once more has still changed
// them.
func TestEditorsOfACallDoNotApproveItsNextStages(t *testing.T) {
	w := newWorld(t)
	w.policy = separate()
	stages := w.does("gated", agentrun.KindUnapproved)
	run, asked := stages.execute, 0
	stages.execute = func(ctx context.Context, c agentrun.Call) (agentrun.Result, error) {
		if asked++; asked < 3 {
			return agentrun.Result{}, &agentrun.ApprovalRequired{}
		}
		return run(ctx, c)
	}
	w.agent.Tools = []agentrun.Tool{stages}
	first := w.say(calls([3]string{"g", "gated", `{"x":1}`}))
	a := w.batch(first.Deferred).Approvals[0]
	require.NoError(t, w.store.move(first.Deferred, []byte(`{"x":7}`), approvals.Amend{
		Call: "g", From: a.Call.Digest, Args: []byte(`{"x":7}`), Ruling: approvals.Permit{},
		By: approvals.Principal{User: "bob"}, At: epoch,
	}))
	require.NoError(t, w.approves(first.Deferred, "g", "carol"))
	second := w.resume(first.Deferred)
	require.Equal(t, agentrun.RunDeferred, second.Status, second.Failure)
	require.ErrorIs(t, w.approves(second.Deferred, "g", "bob"), approvals.ErrOwnEdit)
	require.NoError(t, w.approves(second.Deferred, "g", "carol"))
	third := w.resume(second.Deferred)
	require.Equal(t, agentrun.RunDeferred, third.Status, third.Failure)
	require.ErrorIs(t, w.approves(third.Deferred, "g", "bob"), approvals.ErrOwnEdit)
}
