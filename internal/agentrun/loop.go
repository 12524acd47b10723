package agentrun

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/approvals"
)

// A worker goes on with one claimed run.
type worker struct {
	r        *Runner
	session  *session
	rulings  *rulings
	executor *executor
	answers  *answers
}

func newWorker(r *Runner, c *claim) *worker {
	s := &session{claim: c}
	rules := &rulings{session: s, policy: r.c.Policy}
	return &worker{
		r: r, session: s, rulings: rules,
		answers:  &answers{session: s, rulings: rules},
		executor: &executor{session: s, parallel: r.c.Parallel, draining: r.isDraining},
	}
}

// loop takes steps until the run has ended. What to do next follows from the
// history, so a worker that takes over does what the last one would have done.
func (w *worker) loop(ctx context.Context) error {
	if err := w.session.load(ctx); err != nil {
		return err
	}
	run := w.session.claim.snapshot()
	agent, ok := w.r.c.Agents(run.Agent)
	if !ok {
		return w.session.fail(ctx, nil, fmt.Sprintf("There is no agent named %q any more.", run.Agent))
	}
	tools, twice := toolsetOf(agent.Tools)
	if tools == nil {
		// One of them may need a signature that the other does not.
		return w.session.fail(ctx, nil, fmt.Sprintf("Two tools of this agent are called %s, so nothing was run. "+
			"Its operator must give each tool a name of its own.", twice))
	}
	w.session.agent, w.session.tools = agent, tools
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

// step does the one thing that the history asks for, and reports whether the
// run has ended with it.
func (w *worker) step(ctx context.Context) (ended bool, err error) {
	s := w.session
	run := s.claim.snapshot()
	begun := run.To > run.From
	s.authors = nil
	switch {
	case !begun && run.Batch != "":
		return w.takeUpAnswers(ctx, run)
	case !begun:
		if len(unanswered(s.history)) > 0 {
			s.log(ctx, slog.LevelError, "run refused", slog.Any("err", ErrPromptWithPendingCalls))
			return true, s.fail(ctx, nil, "The conversation still had calls without a result. They are closed now; please ask again.")
		}
		s.authors = []approvals.UserID{run.Requester}
		return false, s.append(ctx, nil, s.request(UserPrompt{Content: run.Prompt, At: s.now()}))
	case len(unanswered(s.history)) > 0:
		return w.doCalls(ctx, run)
	}
	return w.ask(ctx, run)
}

// ask asks the model, and commits what it answers before anything of it is done.
func (w *worker) ask(ctx context.Context, run Run) (ended bool, err error) {
	s := w.session
	if words := s.agent.Limits.stop(run.Usage, 0, 0); words != "" {
		return true, s.fail(ctx, nil, words)
	}
	response, err := s.agent.Model.Request(ctx, ModelRequest{
		Instructions: s.agent.Instructions,
		Messages:     forModel(s.history),
		Tools:        definitions(s.agent.Tools),
	})
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	if err != nil {
		s.log(ctx, slog.LevelWarn, "model failed", slog.String("err", modelClass(err)))
		return true, s.fail(ctx, nil, modelWords(err))
	}
	response.RunID, response.At = run.ID, s.now()
	used := func(r *Run) {
		r.Steps++
		r.Usage.Requests++
		r.Usage.InputTokens += response.Usage.InputTokens
		r.Usage.OutputTokens += response.Usage.OutputTokens
	}
	if words := finishWords(response.FinishReason); words != "" {
		return true, s.fail(ctx, used, words)
	}
	if again := unusable(response); again != "" {
		s.log(ctx, slog.LevelWarn, "response refused", slog.String("why", again))
		if askedAgain(s.history) {
			return true, s.fail(ctx, used, "The model's answers could not be used, even after it was asked again. Nothing of them was run.")
		}
		return false, s.append(ctx, used, s.request(RetryPrompt{Content: again, At: s.now()}))
	}
	response = renamed(s.history, response)
	calls := response.calls()
	if len(calls) == 0 {
		return true, s.complete(ctx, used, response)
	}
	return false, s.append(ctx, func(r *Run) {
		used(r)
		r.Activity = s.tools.names(calls)
	}, response)
}
