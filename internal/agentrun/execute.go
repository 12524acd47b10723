package agentrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/approvals"
)

// An executor runs the calls that may run, each at most once, and keeps the
// journal of what it does.
type executor struct {
	session  *session
	still    func(ctx context.Context, run Run, p *plan) (bool, error) // whether a call may run now
	parallel int
	draining func() bool  // no more executions begin
	unwaited bool         // nor here: nobody waits for them
	begun    atomic.Int32 // executions whose outcome is not stored
}

// uncertain reports whether an execution has begun whose outcome is not stored.
func (x *executor) uncertain() bool { return x.begun.Load() > 0 }

// executeAll runs what is to be executed here, in parallel between tools that run alone.
// After an error no other call begins, and executeAll waits for those that have begun.
func (x *executor) executeAll(ctx context.Context, run Run, plans []*plan) error {
	var group errgroup.Group
	group.SetLimit(x.parallel)
	var stopped atomic.Bool
	start := func(p *plan) error {
		if stopped.Load() {
			return nil
		}
		still, err := x.still(ctx, run, p)
		if err == nil && still {
			err = x.execute(ctx, run, p)
		}
		if err != nil {
			stopped.Store(true)
		}
		return err
	}
	for _, p := range plans {
		if !p.execute || p.ran || p.request != "" {
			continue
		}
		if !p.tool.Spec().Sequential {
			group.Go(func() error { return start(p) })
			continue
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := start(p); err != nil {
			return err
		}
	}
	return group.Wait()
}

// execute runs one call, with an entry in the journal before and after. Its
// plan has the outcome afterwards. The effect happens only under the claim,
// with most of the lease ahead, after its beginning is stored, and once.
func (x *executor) execute(ctx context.Context, run Run, p *plan) error {
	if x.repeatable(p) {
		return x.executeUnstarted(ctx, run, p)
	}
	entry, err := x.start(ctx, run, p)
	if entry == nil || err != nil {
		return err
	}
	finish, known, outcome := x.call(ctx, run, p)
	return x.end(ctx, p, entry, finish, known, outcome)
}

// repeatable reports whether the call may run again if this worker dies meanwhile: it
// changes nothing, and nothing of it is in the journal.
func (x *executor) repeatable(p *plan) bool {
	return p.entry == nil && p.precondition == nil && x.session.journal[p.call.ID].State == "" &&
		x.session.agent.effect(p.tool.Spec()) == EffectPure
}

// executeUnstarted runs a repeatable call. What it gave is stored with the results of
// the step, and in no commit of its own.
func (x *executor) executeUnstarted(ctx context.Context, run Run, p *plan) error {
	if err := x.may(ctx, p); err != nil {
		return err
	}
	x.logStart(ctx, p)
	finish, known, outcome := x.call(ctx, run, p)
	x.logEnd(ctx, p, finish, outcome)
	if !known {
		return context.Cause(ctx)
	}
	x.session.journalLater(Entry{
		Run: run.ID, Call: p.call.ID, Tool: p.call.Name, State: EntryFinished, Fence: x.session.claim.fence, At: x.session.now(), Finish: finish,
	})
	p.finished(finish)
	return nil
}

// may is nil if an execution may begin.
func (x *executor) may(ctx context.Context, p *plan) error {
	if x.draining() {
		return errDraining
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if x.unwaited && p.doubt == nil { // what is in doubt had begun while its caller waited
		return errNobodyWaits
	}
	return nil
}

func (x *executor) logStart(ctx context.Context, p *plan) {
	x.session.log(ctx, slog.LevelInfo, "call started", slog.String("call", string(p.call.ID)), slog.String("tool", p.call.Name))
}

func (x *executor) logEnd(ctx context.Context, p *plan, finish Finish, outcome string) {
	x.session.log(ctx, slog.LevelInfo, "call finished", slog.String("call", string(p.call.ID)), slog.String("tool", p.call.Name),
		slog.String("outcome", outcome), slog.Duration("took", finish.Took))
}

// call calls the tool. known is as in finishOf.
func (x *executor) call(ctx context.Context, run Run, p *plan) (f Finish, known bool, how string) {
	began := x.session.now()
	tool, call := p.tool, p.toolCall(run) // a tool that hangs must not read the plan later
	result, err, late := guard(ctx, timeout(tool), func(ctx context.Context) (Result, error) { return tool.Execute(ctx, call) })
	took := x.session.now().Sub(began)
	f, known = x.finishOf(ctx, p, result, err, late)
	f.Took = max(0, took)
	return f, known, outcome(f, err, late)
}

// start stores that the execution of a call begins. It returns no entry if nothing is
// to be executed: the precondition does not hold.
func (x *executor) start(ctx context.Context, run Run, p *plan) (*Entry, error) {
	if err := x.may(ctx, p); err != nil {
		return nil, err
	}
	entry := x.session.journal[p.call.ID]
	if p.entry != nil {
		entry = *p.entry
	}
	entry.Run, entry.Call, entry.Tool, entry.Fence = run.ID, p.call.ID, p.call.Name, x.session.claim.fence
	// A call that was begun stays so in the journal until its end is known. Otherwise the
	// entry is claimed before its precondition is compared, which takes a while.
	if !p.begun && p.precondition != nil {
		if err := x.record(ctx, &entry, EntryClaimed); err != nil {
			return nil, err
		}
	}
	if holds, err := x.precondition(ctx, run, p); err != nil {
		return nil, err
	} else if !holds {
		return nil, x.refuse(ctx, &entry, p)
	}
	if err := x.session.claim.fresh(ctx); err != nil {
		return nil, err
	}
	x.begun.Add(1)
	entry.Finish = Finish{}
	if err := x.record(ctx, &entry, EntryStarted); err != nil {
		return nil, x.stepBack(ctx, &entry, p, err)
	}
	// The store may have said so after the lease, when another worker has asked people about
	// the call.
	if err := x.session.claim.fresh(ctx); err != nil {
		if p.begun {
			return nil, err
		}
		return nil, cmp.Or(x.undo(ctx, &entry), err)
	}
	x.logStart(ctx, p)
	return &entry, nil
}

// end stores how an execution ended, if that is known.
func (x *executor) end(ctx context.Context, p *plan, entry *Entry, finish Finish, known bool, outcome string) error {
	// The line is logged before the outcome is stored: if the store does not
	// answer, it is the only record that the call ran.
	x.logEnd(ctx, p, finish, outcome)
	if !known {
		return context.Cause(ctx)
	}
	if p.begun && finish.Aside != AsideNone {
		// This execution did nothing, and of the one before nothing is known.
		x.begun.Add(-1)
		p.finished(finish)
		p.begun, p.entry = true, entry
		return nil
	}
	entry.Finish = finish
	if err := x.keep(ctx, entry, EntryFinished); err != nil {
		if errors.Is(err, errClaimLost) {
			reporting, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.session.claim.lease)
			defer cancel()
			x.report(reporting, *entry)
		}
		return err
	}
	x.begun.Add(-1)
	p.finished(entry.Finish)
	p.entry = entry
	return nil
}

// stepBack is for a call whose beginning is stored and may be lost with the
// store's machine: it must not begin. Only this worker knows that, so it writes
// it into the entry; otherwise the call would stay in doubt for ever.
func (x *executor) stepBack(ctx context.Context, e *Entry, p *plan, cause error) error {
	if p.begun {
		return cause
	}
	if !errors.Is(cause, approvals.ErrNotDurable) {
		// Nothing began, and without this worker's fence the entry is not stored later. If
		// it is stored now, the next worker finds the call in doubt.
		x.begun.Add(-1)
		return cause
	}
	e.Version++
	err := x.record(ctx, e, EntryClaimed)
	if err == nil || errors.Is(err, approvals.ErrNotDurable) {
		x.begun.Add(-1) // if this is lost, the entry says started, and the call is in doubt
	}
	return cause
}

// undo stores that an execution which was to begin did not.
func (x *executor) undo(ctx context.Context, e *Entry) error {
	if err := x.keep(ctx, e, EntryClaimed); err != nil {
		return err
	}
	x.begun.Add(-1)
	return nil
}

// finishOf returns what the journal keeps of an execution. known is false if
// the worker itself is stopping and the tool did not report an outcome.
func (x *executor) finishOf(ctx context.Context, p *plan, result Result, err error, late bool) (f Finish, known bool) {
	var (
		asked    *ApprovalRequired
		deferred *CallDeferred
		retry    *RetryError
		failed   *FailedError
		unsure   *UnsureError
	)
	call := slog.String("call", string(p.call.ID))
	switch {
	case err == nil:
		return x.session.succeeded(ctx, p.call, result), true
	case p.failedPrecondition(err):
		return Finish{Aside: AsidePrecondition}, true
	case errors.As(err, &asked):
		return Finish{Aside: AsideApproval, Metadata: x.session.metadata(ctx, p.call, asked.Metadata), Reason: approvals.QuoteOf(p.secrets().scrub(asked.Reason))}, true
	case errors.As(err, &deferred):
		return Finish{Aside: AsideExternal, Metadata: x.session.metadata(ctx, p.call, deferred.Metadata)}, true
	case errors.As(err, &retry):
		return Finish{Part: again(p.call, cut(retry.Message), x.session.now())}, true
	case errors.As(err, &failed):
		part := returned(p.call, OutcomeFailed, cut(failed.Message), x.session.now())
		part.Metadata = x.session.metadata(ctx, p.call, failed.Metadata)
		return Finish{Part: part}, true
	}
	x.session.log(ctx, slog.LevelError, "tool failed", call, slog.String("tool", p.call.Name), slog.String("err", class(err)))
	words := failedMessage
	switch {
	case errors.Is(err, errPanicked):
		words = panickedMessage
	case ctx.Err() != nil:
		return Finish{}, false
	case errors.As(err, &unsure):
		words = cut(unsure.Message)
	case late:
		words = fmt.Sprintf(lateMessage, timeout(p.tool))
	default:
		return Finish{Part: returned(p.call, OutcomeFailed, words, x.session.now())}, true
	}
	if x.session.agent.effect(p.tool.Spec()) == EffectPure { // nothing is in doubt: it changes nothing
		return Finish{Part: returned(p.call, OutcomeFailed, words, x.session.now())}, true
	}
	said := approvals.QuoteOf(p.secrets().scrub(words))
	words = strings.TrimSpace(words + " " + unknownMessage)
	return Finish{Part: returned(p.call, OutcomeFailed, words, x.session.now()), Unsure: true, Reason: said}, true
}

// outcome names, for the log, how an execution ended. The empty Finish has an
// unknown outcome.
func outcome(f Finish, err error, late bool) string {
	_, said := errors.AsType[*FailedError](err)
	_, unsure := errors.AsType[*UnsureError](err)
	switch part := f.Part.(type) {
	case RetryPrompt:
		return "retry"
	case ToolReturn:
		switch {
		case part.Outcome != OutcomeFailed || said:
			return string(part.Outcome)
		case errors.Is(err, errPanicked):
			return "panicked"
		case unsure:
			return "unsure"
		case late:
			return "timeout"
		}
		return string(part.Outcome)
	case UserPrompt, nil: // no execution ends in a prompt
	}
	switch f.Aside {
	case AsideApproval:
		return "approval_required"
	case AsideExternal:
		return "deferred"
	case AsidePrecondition:
		return "precondition_failed"
	case AsideNone, AsideDoubt:
	}
	return "unknown"
}
