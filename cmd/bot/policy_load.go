package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/rulecheck"
	"github.com/countersign/countersign/internal/state"
)

// A ledger reads the ledger of the store, once the store is open.
type ledger struct{ store atomic.Pointer[state.Store] }

var errNoStoreYet = errors.New("the store is not open yet")

// Entries implements [policy.Ledger].
func (l *ledger) Entries(ctx context.Context, user approvals.UserID) ([]approvals.LedgerEntry, error) {
	s := l.store.Load()
	if s == nil {
		return nil, errNoStoreYet
	}
	return state.NewLedger(s).Entries(ctx, user)
}

// openPolicy reads the policy of the configuration; follow follows its changes.
func (b *bot) openPolicy(ctx context.Context, c config.Config, sets config.ToolSets) (err error) {
	b.path = c.Policy
	if b.policy, err = policy.Open(ctx, c.Policy, b.judging(c, sets), b.onPolicy); err != nil {
		return err
	}
	b.log.InfoContext(ctx, "the policy was loaded", slog.String("version", b.policy.Current().Version()))
	b.warnOf(ctx, b.policy.Current())
	return nil
}

// judging is what the policy is read against.
func (b *bot) judging(c config.Config, sets config.ToolSets) policy.Options {
	o := config.PolicyOptions(c, sets)
	o.Directory, o.Ledger, o.Shadow, o.Now = &b.people, &b.ledger, b.onShadow, time.Now
	o.AskCheck = b.checks.Ask
	return o
}

// newChecks returns what asks the checks of rules, or an error if a secret is missing or
// wrong.
func newChecks(c config.Config, e config.Environment, log *slog.Logger, count func(check, answer string)) (*rulecheck.Checks, error) {
	sender, err := c.Webhooks.Sender(time.Now)
	checks, secrets := c.RuleChecks(e)
	if err := errors.Join(err, secrets); err != nil {
		return nil, err
	}
	return rulecheck.New(rulecheck.Config{Checks: checks, Sender: sender, Now: time.Now, Log: log, Count: count}), nil
}

// defaultReload is the default of policy_reload.
const defaultReload = 5 * time.Second

// follow loads changes of the policy until ctx ends: every so often, and at once when
// something comes from hup, with what of the configuration can change. Nothing that is
// under way is dropped.
func (b *bot) follow(ctx context.Context, every time.Duration, hup <-chan os.Signal) {
	if every == 0 {
		every = defaultReload
	}
	var watching sync.WaitGroup
	watching.Go(func() { b.policy.Watch(ctx, every) })
	defer watching.Wait()
	for {
		select {
		case <-hup:
			_ = b.policy.Reload(ctx) // what came of it is reported
			b.reload(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// onPolicy logs the outcome of a policy change. A policy with a rule that
// nobody can meet is loaded too: the calls that it asks about do not run.
func (b *bot) onPolicy(ctx context.Context, before, after *policy.Policy, err error) {
	if err != nil {
		b.log.ErrorContext(ctx, "policy change rejected; the previous version stays active",
			slog.String("version", before.Version()), slog.Any("err", err))
		return
	}
	if before == after {
		b.log.InfoContext(ctx, "the policy is the active version again", slog.String("version", after.Version()))
		return
	}
	b.log.InfoContext(ctx, "the policy changed", slog.String("before", before.Version()), slog.String("version", after.Version()))
	if gone := policy.Lifted(before, after); len(gone) > 0 {
		b.log.WarnContext(ctx, "rules that denied or asked were removed", slog.Any("rules", gone))
	}
	b.warnOf(ctx, after)
	b.checkPeople(ctx)
}

// warnOf logs what the policy may not mean.
func (b *bot) warnOf(ctx context.Context, p *policy.Policy) {
	for _, w := range p.Warnings() {
		b.log.WarnContext(ctx, "the policy may not mean what it says", slog.String("warning", w))
	}
}

// onShadow says what a rule that is not enforced would have done. It never says
// the arguments.
func (b *bot) onShadow(ctx context.Context, r policy.ShadowRuling) {
	b.log.InfoContext(ctx, "shadow ruling", slog.String("rule", r.Rule), slog.String("agent", r.Agent), slog.String("tool", r.Tool),
		slog.String("would", rulingWord(r.Would)), slog.String("did", rulingWord(r.Was)))
}

// rulingWord is the ruling as a policy file calls it.
func rulingWord(r approvals.Ruling) string {
	switch r.(type) {
	case approvals.Permit:
		return "allow"
	case approvals.Refuse:
		return "deny"
	case approvals.Ask:
		return "ask"
	}
	return "nothing"
}
