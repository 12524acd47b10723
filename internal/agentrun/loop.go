package agentrun

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/countersign/countersign/internal/approvals"
)

// A worker goes on with one claimed run. What it keeps in memory it has read
// from the store or committed to it.
type worker struct {
	r     *Runner
	claim *claim

	agent   Agent
	tools   toolset
	history []Message // of the whole thread
	journal journal
	lineage lineage
	authors []approvals.UserID // whose words a request of this step has

	begun atomic.Int32 // executions whose outcome is not stored
}

// loop takes steps until the run has ended. What to do next follows from the
// history, so a worker that takes over does what the last one would have done.
func (w *worker) loop(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		return err
	}
	run := w.claim.snapshot()
	agent, ok := w.r.c.Agents(run.Agent)
	if !ok {
		return w.fail(ctx, nil, fmt.Sprintf("There is no agent named %q any more.", run.Agent))
	}
	tools, twice := toolsetOf(agent.Tools)
	if tools == nil {
		// One of them may need a signature that the other does not.
		return w.fail(ctx, nil, fmt.Sprintf("Two tools of this agent are called %s, so nothing was run. "+
			"Its operator must give each tool a name of its own.", twice))
	}
	w.agent, w.tools = agent, tools
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if w.r.isDraining() {
			return errDraining
		}
		ended, err := w.step(ctx)
		if ended || err != nil {
			return err
		}
	}
}

func (w *worker) load(ctx context.Context) error {
	run := w.claim.snapshot()
	history, err := w.claim.store.Messages(ctx, run.Thread, 0, run.To)
	if err != nil {
		return fmt.Errorf("load messages of %s: %w", run.Thread, err)
	}
	if len(history) != run.To {
		return fmt.Errorf("load messages of %s: %d of %d are there", run.Thread, len(history), run.To)
	}
	entries, err := w.claim.store.Journal(ctx, run.ID)
	if err != nil {
		return fmt.Errorf("load journal of %s: %w", run.ID, err)
	}
	if w.lineage, err = lineageOf(ctx, w.claim.store, run); err != nil {
		return err
	}
	w.history, w.journal = history, journalOf(entries)
	return nil
}

// step does the one thing that the history asks for, and reports whether the
// run has ended with it.
func (w *worker) step(ctx context.Context) (ended bool, err error) {
	run := w.claim.snapshot()
	begun := run.To > run.From
	w.authors = nil
	switch {
	case !begun && run.Batch != "":
		return w.takeUpAnswers(ctx, run)
	case !begun:
		if len(unanswered(w.history)) > 0 {
			w.log(ctx, slog.LevelError, "run refused", slog.Any("err", ErrPromptWithPendingCalls))
			return true, w.fail(ctx, nil, "The conversation still had calls without a result. They are closed now; please ask again.")
		}
		w.authors = []approvals.UserID{run.Requester}
		return false, w.append(ctx, nil, w.request(UserPrompt{Content: run.Prompt, At: w.now()}))
	case len(unanswered(w.history)) > 0:
		return w.doCalls(ctx, run)
	}
	return w.ask(ctx, run)
}

// ask asks the model, and commits what it answers before anything of it is done.
func (w *worker) ask(ctx context.Context, run Run) (ended bool, err error) {
	if words := w.agent.Limits.stop(run.Usage, 0, 0); words != "" {
		return true, w.fail(ctx, nil, words)
	}
	response, err := w.agent.Model.Request(ctx, ModelRequest{
		Instructions: w.agent.Instructions,
		Messages:     forModel(w.history),
		Tools:        definitions(w.agent.Tools),
	})
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	if err != nil {
		w.log(ctx, slog.LevelWarn, "model failed", slog.String("err", modelClass(err)))
		return true, w.fail(ctx, nil, modelWords(err))
	}
	response.RunID, response.At = run.ID, w.now()
	used := func(r *Run) {
		r.Steps++
		r.Usage.Requests++
		r.Usage.InputTokens += response.Usage.InputTokens
		r.Usage.OutputTokens += response.Usage.OutputTokens
	}
	if words := finishWords(response.FinishReason); words != "" {
		return true, w.fail(ctx, used, words)
	}
	if again := unusable(response); again != "" {
		w.log(ctx, slog.LevelWarn, "response refused", slog.String("why", again))
		if askedAgain(w.history) {
			return true, w.fail(ctx, used, "The model's answers could not be used, even after it was asked again. Nothing of them was run.")
		}
		return false, w.append(ctx, used, w.request(RetryPrompt{Content: again, At: w.now()}))
	}
	response = renamed(w.history, response)
	calls := response.calls()
	if len(calls) == 0 {
		return true, w.complete(ctx, used, response)
	}
	return false, w.append(ctx, func(r *Run) {
		used(r)
		r.Activity = w.tools.names(calls)
	}, response)
}
