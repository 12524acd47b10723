package agentrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/approvals"
)

// A worker continues one claimed run.
type worker struct {
	r        *Runner
	session  *session
	rulings  *rulings
	executor *executor
	provider *provider
	answers  *answers
	doubts   *doubts
	previews *previews
}

func newWorker(r *Runner, c *claim) *worker {
	s := &session{claim: c}
	rules := &rulings{session: s, tally: r.tally(), rollingOut: r.rollingOut}
	doubtful := &doubts{session: s, rulings: rules}
	runs := &executor{session: s, still: doubtful.still, parallel: r.c.Parallel, draining: r.isDraining}
	return &worker{
		r: r, session: s, rulings: rules, doubts: doubtful,
		answers:  &answers{session: s, rulings: rules, doubts: doubtful},
		previews: &previews{session: s, rulings: rules, parallel: r.c.Parallel},
		executor: runs, provider: &provider{session: s, executor: runs, doubts: doubtful},
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
	if !ok && w.r.rollingOut(run) {
		return &notHereError{fmt.Sprintf("the agent %q", run.Agent)}
	}
	if !ok {
		return w.session.fail(ctx, nil, fmt.Sprintf("The agent %q no longer exists.", run.Agent))
	}
	tools, twice := toolsetOf(agent.Tools)
	if tools == nil {
		// One of them may need approval that the other does not.
		return w.session.fail(ctx, nil, fmt.Sprintf("Two tools of this agent are called %s, so nothing was run. "+
			"An operator must give each tool a unique name.", twice))
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
	case !begun && run.CallsOnly:
		return w.doCalls(ctx, run)
	case !begun:
		if len(unanswered(s.history)) > 0 {
			s.log(ctx, slog.LevelError, "run refused", slog.Any("err", ErrPromptWithPendingCalls))
			return true, s.fail(ctx, nil, "The conversation still had calls without a result. They are closed now. Please ask again.")
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
	response, err := w.request(ctx, run)
	if len(providerCalls(response)) > 0 {
		return true, s.failUnapproved(ctx, charge(response), response, nil)
	}
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	if err != nil {
		return true, s.fail(ctx, nil, modelWords(err))
	}
	return w.answered(ctx, response, charge(response))
}

// answered takes up a response of the model: it is the answer, or it has calls, or it
// cannot be used.
func (w *worker) answered(ctx context.Context, response Response, used func(*Run)) (ended bool, err error) {
	s := w.session
	if words := finishWords(response.FinishReason); words != "" {
		return true, s.fail(ctx, used, words)
	}
	if why, again := unusable(s.history, response); again != "" {
		s.log(ctx, slog.LevelWarn, "response refused", slog.String("why", again))
		if askedAgain(s.history) {
			return true, s.fail(ctx, used, fmt.Sprintf("The model's answers could not be used, even after it was asked again: "+
				"the last one %s. Nothing of them was run.", why))
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

// request asks the model for a response, while those who watch see it come.
func (w *worker) request(ctx context.Context, run Run) (Response, error) {
	s := w.session
	var written func(Delta)
	if w.r.c.Watchers != nil {
		if write, closed := w.r.c.Watchers.Open(run); write != nil {
			defer closed()
			written = s.written(write)
		}
	}
	return s.ask(ctx, s.history, nil, written)
}

// instructions are those of the agent, and after them those that came with the
// message that the run is about.
func instructions(a Agent, r Run) string {
	if a.Instructions == "" || r.Instructions == "" {
		return a.Instructions + r.Instructions
	}
	return a.Instructions + "\n\n" + r.Instructions
}

// doCalls deals with the calls of the last response: what may run runs, what
// may not is answered, and the rest is set aside.
func (w *worker) doCalls(ctx context.Context, run Run) (ended bool, err error) {
	s := w.session
	calls, err := Pending(s.history)
	if err != nil {
		return true, s.refuse(ctx, err)
	}
	first := run.From
	if run.Batch != "" {
		first++ // what people's answers led to is not the model's fault
	}
	retry := retries(s.history, first)
	var plans []*plan
	for _, c := range calls {
		p := s.plan(c)
		p.proposed, p.soFar = c.Args, s.count(standIns(plans)...)
		consider := func() error {
			w.rulings.consider(ctx, run, p)
			return nil
		}
		if err := w.doubts.takeUp(ctx, run, p, consider); err != nil {
			return false, err
		}
		if run.CallsOnly && p.aside != AsideNone && p.aside != AsideDoubt {
			p.answer(returned(c, OutcomeDenied, nowAsksMessage, s.now()))
		}
		plans = append(plans, p)
	}
	return w.carryOut(ctx, run, plans, retry, !run.CallsOnly, "")
}

// takeUpAnswers is the first step of a resume run: what people and other
// systems said becomes results.
func (w *worker) takeUpAnswers(ctx context.Context, run Run) (ended bool, err error) {
	plans, ended, err := w.answers.plans(ctx, run)
	if ended || err != nil {
		return ended, err
	}
	if err := w.show(ctx, plans); err != nil {
		return false, err
	}
	return w.carryOut(ctx, run, plans, nil, false, run.Prompt)
}

// carryOut executes what the plans say, and ends the step: with a request that
// holds all results, or with what the run now waits for.
func (w *worker) carryOut(ctx context.Context, run Run, plans []*plan, retry map[string]int, charged bool, prompt string) (ended bool, err error) {
	s := w.session
	if err := context.Cause(ctx); err != nil {
		return false, err // what the plans say of a tool may come from that
	}
	executions := 0
	for _, p := range plans {
		if p.execute || p.ran {
			executions++
		}
	}
	stop := func(executions int) (words string) {
		return cmp.Or(s.agent.Limits.stop(run.Usage, executions, toSign(plans)), exhausted(plans, retry, charged))
	}
	used := func(r *Run) {
		r.Usage.ToolCalls += countRan(plans)
		r.Activity = nil
	}
	fail := func(words string) (bool, error) {
		return true, s.failWith(ctx, used, words, plans, w.lastParts(ctx, run, plans, prompt)...)
	}
	if words := stop(executions); words != "" {
		return fail(words)
	}
	answer, asking, err := w.execute(ctx, run, plans, prompt)
	ran := used
	used = func(r *Run) {
		ran(r)
		asking(r)
	}
	if none, ok := errors.AsType[*unasked](err); ok {
		return fail(modelWords(none.err))
	}
	if err != nil {
		return false, err
	}
	if answer != nil && len(providerCalls(*answer)) > 0 {
		return true, s.failUnapproved(ctx, used, *answer, plans, w.lastParts(ctx, run, plans, prompt)...)
	}
	w.rulings.giveBack(ctx, run, plans, false)
	words, err := w.askAgain(ctx, run, plans)
	if err != nil {
		return false, err
	}
	// While it ran, a call may have been set aside for people.
	if words = cmp.Or(words, stop(countRan(plans))); words != "" {
		return fail(words)
	}
	if err := w.previews.compute(ctx, run, plans); err != nil {
		return false, err
	}
	results := parts(plans, s.now)
	for _, p := range plans {
		if p.aside != AsideNone {
			return true, s.deferRun(ctx, run, plans, results, used)
		}
	}
	err = s.commit(ctx, []Message{s.request(said(results, prompt, s.now)...)}, func(r *Run, t *Thread, out *Commit) error {
		used(r)
		if err := s.conclude(ctx, out, plans, ""); err != nil || !run.CallsOnly {
			return err
		}
		r.Status = RunCompleted
		return endRun(ctx, s.claim.store, r, t, out, s.now())
	})
	if err != nil || answer == nil {
		return run.CallsOnly, err
	}
	return w.answered(ctx, *answer, func(*Run) {})
}

// lastParts returns what is known of the calls of a run that fails now, and takes those that
// did not go ahead off the ledger.
func (w *worker) lastParts(ctx context.Context, run Run, plans []*plan, prompt string) []RequestPart {
	leaveInDoubt(plans, w.session.now())
	w.rulings.giveBack(ctx, run, plans, true)
	return said(parts(plans, w.session.now), prompt, w.session.now)
}

// askAgain sets the calls aside about which people have to be asked once more: what they
// approved has changed, or the outcome is not known. words says why the run fails instead,
// if one has changed too often.
func (w *worker) askAgain(ctx context.Context, run Run, plans []*plan) (words string, err error) {
	for _, p := range plans {
		switch {
		case p.stale && p.again >= MaxReasks:
			p.answer(returned(p.call, OutcomeInterrupted, staleMessage, w.session.now()))
			p.admitDoubt(w.session.now())
			words = fmt.Sprintf(staleWords, p.call.Name, p.again+1)
		case p.doubt != nil && (p.stale || p.ran && p.aside == AsideApproval):
			p.again++
			if err := w.doubts.ask(ctx, p); err != nil {
				return "", err
			}
		case p.stale:
			p.aside, p.raised, p.again = AsideApproval, true, p.again+1
		}
		if p.aside == AsideApproval && (p.ran || p.stale) {
			p.soFar = w.session.count(parts(plans, w.session.now)...)
			w.rulings.ruleOn(ctx, run, p, approvals.GateRaised)
		}
	}
	return words, nil
}

// execute runs what may run, here and then at the provider of the model, and deals
// with what is in doubt afterwards. The answer is the last one of the model, if it gave
// one after the provider ran calls. used charges all of its answers, also those that
// were followed by another request, and is never nil.
func (w *worker) execute(ctx context.Context, run Run, plans []*plan, prompt string) (answer *Response, used func(*Run), err error) {
	used = func(*Run) {}
	for {
		for more := true; more; {
			err := w.executor.executeAll(ctx, run, plans)
			if err == nil {
				more, err = w.doubts.ended(ctx, run, plans)
			}
			if err != nil {
				return nil, used, err
			}
		}
		answer, err := w.provider.run(ctx, run, plans, prompt)
		if err != nil {
			return nil, used, err
		}
		if answer != nil {
			before, this := used, charge(*answer)
			used = func(r *Run) {
				before(r)
				this(r)
			}
			if len(providerCalls(*answer)) > 0 {
				return answer, used, nil // the run ends with it
			}
		}
		if more, err := w.doubts.ended(ctx, run, plans); !more || err != nil {
			return answer, used, err
		}
	}
}

// show lets others see which tools are about to run.
func (w *worker) show(ctx context.Context, plans []*plan) error {
	var calls []approvals.ToolCall
	for _, p := range plans {
		if p.execute {
			calls = append(calls, p.call)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return w.session.append(ctx, func(r *Run) { r.Activity = w.session.tools.names(calls) })
}
