package agentrun_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// brokeOff is an answer that broke off after the provider made these calls.
func brokeOff(calls ...agentrun.ProviderCall) *agentrun.ModelError {
	err := *errLost
	err.Ran = calls
	return &err
}

// unasked is a call that nobody approved.
func unasked() agentrun.ProviderCall {
	c := ran("mcpr_other", `{"x":9}`, "gone")
	c.ID = "mcp_9"
	return c
}

// unapproved are the entries of the journal about calls that nobody approved.
func (w *world) unapproved(id approvals.RunID) []agentrun.Entry {
	w.t.Helper()
	entries, err := w.store.Journal(w.t.Context(), id)
	require.NoError(w.t, err)
	var all []agentrun.Entry
	for _, e := range entries {
		if e.Unapproved() {
			all = append(all, e)
		}
	}
	return all
}

func (w *world) requireUnapproved(id approvals.RunID) {
	w.t.Helper()
	entries := w.unapproved(id)
	require.Len(w.t, entries, 1)
	require.Equal(w.t, "docs.ask", entries[0].Tool)
	require.Equal(w.t, agentrun.EntryFinished, entries[0].State)
	require.Equal(w.t, "mcp_9", entries[0].Finish.Part.(agentrun.ToolReturn).ProviderCall)
	require.JSONEq(w.t, `"gone"`, string(entries[0].Finish.Part.(agentrun.ToolReturn).Content))
}

func TestWhatTheProviderRanIsJournaledAlthoughItsAnswerBrokeOff(t *testing.T) {
	var log bytes.Buffer
	w := hosting(t)
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	run := w.say(brokeOff(unasked()))
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Contains(t, run.Failure, "The model provider ran docs.ask without approval. Its answer broke off, the calls may have taken effect")
	require.Equal(t, []string{`ran mcp_9 docs.ask{"x":9}: gone`}, w.added())
	require.Contains(t, log.String(), "level=ERROR msg=\"the model provider ran a call without approval\" call=mcp_9 tool=docs.ask")
	require.NotContains(t, log.String(), "gone")
	w.requireUnapproved(run.ID)
	require.Equal(t, agentrun.RunCompleted, w.work(w.mention("go on").ID).Status, "the thread can go on")

	w = hosting(t)
	unsure := unasked()
	unsure.Failed, unsure.Unsure = true, true
	run = w.say(brokeOff(unsure))
	require.True(t, w.unapproved(run.ID)[0].Finish.Unsure, "nobody knows whether it took effect")
}

// What was approved is in doubt as ever, and what was not is a fact.
func TestWhatTheProviderRanBesideAnApprovedCallIsJournaled(t *testing.T) {
	for name, together := range map[string][]agentrun.ProviderCall{
		"alone":           {unasked()},
		"after it":        {ran("mcpr_h", `{"x":1}`, "42"), unasked()},
		"before it":       {unasked(), ran("mcpr_h", `{"x":1}`, "42")},
		"while it failed": {ran("mcpr_h", `{"x":1}`, "no"), unasked()},
	} {
		t.Run(name, func(t *testing.T) {
			w := hosting(t)
			run := w.say(requests(), brokeOff(together...))
			w.decide(run.Deferred, "h", approvals.Approve, "")
			resumed := w.resume(run.Deferred)
			require.Equal(t, agentrun.RunFailed, resumed.Status)
			require.Contains(t, resumed.Failure, "ran docs.ask without approval")
			w.requireUnapproved(resumed.ID)
			require.Equal(t, approvals.InDoubt, w.executionOf(run.Deferred, "h").State)
		})
	}
	w := hosting(t)
	run := w.say(requests(), brokeOff(ran("mcpr_h", `{"x":1}`, "42")))
	w.decide(run.Deferred, "h", approvals.Approve, "")
	resumed := w.resume(run.Deferred)
	require.Equal(t, agentrun.RunDeferred, resumed.Status, "people are asked about the approved one")
	require.Empty(t, w.unapproved(resumed.ID))
}

// The next worker would ask the model again, so a worker that is told to stop ends the
// run first.
func TestAWorkerThatIsToldToStopJournalsWhatTheProviderRan(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (agentrun.Response, error){
		"the answer broke off": func(context.Context) (agentrun.Response, error) { return agentrun.Response{}, brokeOff(unasked()) },
		"the answer is there":  func(context.Context) (agentrun.Response, error) { return saysAfter("Done.", unasked()), nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := hosting(t)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			w.model.answers = []any{func(ctx context.Context) (agentrun.Response, error) {
				kill()
				return answer(ctx)
			}}
			id := w.mention("go").ID
			require.NoError(t, w.runner().Work(ctx, id))
			require.Equal(t, agentrun.RunFailed, w.run(id).Status)
			w.requireUnapproved(id)
			require.Len(t, w.model.requests, 1)
		})
	}
}

// The run belongs to another worker by now, and goes on. The fact is in its journal.
func TestAWorkerThatLostItsClaimJournalsWhatTheProviderRan(t *testing.T) {
	for name, approve := range map[string]bool{"of a run": false, "of a resume run": true} {
		t.Run(name, func(t *testing.T) {
			w := hosting(t)
			late := brokeOff(unasked())
			var id approvals.RunID
			lose := func(context.Context) (agentrun.Response, error) {
				w.now = func() time.Time { return epoch.Add(time.Hour) } // its lease is over
				w.work(id)                                               //nolint:contextcheck // another worker has a context of its own
				return agentrun.Response{}, late
			}
			if approve {
				run := w.say(requests(), lose)
				w.decide(run.Deferred, "h", approvals.Approve, "")
				require.NoError(t, w.runner().Resume(t.Context(), run.Deferred))
				var err error
				id, err = agentrun.ResumeRunID(run.Deferred)
				require.NoError(t, err)
			} else {
				w.model.answers = []any{lose}
				id = w.mention("go").ID
			}
			require.NoError(t, w.runner().Work(t.Context(), id))
			require.Contains(t, []agentrun.Status{agentrun.RunCompleted, agentrun.RunDeferred}, w.run(id).Status)
			w.requireUnapproved(id)
		})
	}
}

// A commit whose reply is lost is there, and one that was not made is made again.
func TestWhatTheProviderRanIsInTheJournalOnceWhateverTheStoreAnswers(t *testing.T) {
	errAway := errors.New("away")
	for name, hook := range map[string]func(*hooked, func(int, agentrun.Commit) error){
		"it is not made":    func(s *hooked, f func(int, agentrun.Commit) error) { s.before = f },
		"its reply is lost": func(s *hooked, f func(int, agentrun.Commit) error) { s.after = f },
	} {
		t.Run(name, func(t *testing.T) {
			w := hosting(t)
			failed := 0
			hook(w.store, func(_ int, c agentrun.Commit) error {
				if len(c.Entries) > 0 && failed < 2 {
					failed++
					return errAway
				}
				return nil
			})
			run := w.say(brokeOff(unasked()))
			require.Equal(t, agentrun.RunFailed, run.Status)
			require.Positive(t, failed)
			w.requireUnapproved(run.ID)
			require.Len(t, w.model.requests, 1, "the model is not asked again")
		})
	}
}

func TestCallsOfTheProviderWithOneIDAreTwoFacts(t *testing.T) {
	w := hosting(t)
	run := w.say(saysAfter("Done.", unasked(), unasked()))
	require.Equal(t, agentrun.RunFailed, run.Status)
	require.Len(t, w.unapproved(run.ID), 2)
}
