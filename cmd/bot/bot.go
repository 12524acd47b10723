package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/policy"
	"github.com/countersign/countersign/internal/receipt"
	"github.com/countersign/countersign/internal/rulecheck"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/telemetry"
	"github.com/countersign/countersign/internal/tools/mcpreview"
	"github.com/countersign/countersign/internal/tools/mcptool"
	"github.com/countersign/countersign/internal/uistream"
)

// bot is everything wired together.
type bot struct {
	store    *state.Store
	due      *state.Due
	clock    *state.Clock
	redis    *redisWatch // nil: nothing is promised of Redis
	tasks    state.Tasks
	desk     *approvals.Desk
	bulk     *approvals.Bulk
	runner   *agentrun.Runner
	relay    *state.Relay
	catalog  *agentrun.Catalog
	intake   *intake.Service
	remote   []remoteAgent
	receipts *receipt.Signer // nil: none are signed
	keys     receipt.Keys    // with which receipts are checked
	webhooks webhooks
	outbox   *outbox.Outbox
	ui       *slackui.UI
	policy   *policy.Live
	checks   *rulecheck.Checks
	path     string // of the policy
	people   whoIsWho
	ledger   ledger
	agents   agents

	retention *state.Retention
	servers   *mcptool.Set // nil: there are none
	reviews   *mcpreview.Reviews
	metrics   *telemetry.Metrics // nil: nothing is measured
	traces    *telemetry.Traces  // nil: there are none
	log       *slog.Logger
	stopping  atomic.Bool
}

func newBot(ctx context.Context, c config.Config, e config.Environment, extra config.ToolsFor, log *slog.Logger, waits func(what string)) (*bot, error) {
	at, err := storeOptions(c, e, log)
	if err != nil {
		return nil, err
	}
	return newBotOn(ctx, at, c, e, extra, log, waits)
}

// newBotOn is newBot with the options of its store.
func newBotOn(ctx context.Context, at state.Options, c config.Config, e config.Environment, extra config.ToolsFor, log *slog.Logger, waits func(what string)) (*bot, error) {
	waits("Redis")
	c, servers, accepted, err := openServers(ctx, c, e, log)
	if err != nil {
		return nil, err
	}
	sets, err := config.NewToolSets(c, e, extra)
	if err != nil {
		return nil, err
	}
	b := &bot{log: log, servers: servers, metrics: newMetrics(c)}
	if b.traces, err = newTraces(ctx, e); err != nil {
		return nil, err
	}
	if b.checks, err = newChecks(c, e, log, b.metrics.Check); err != nil {
		return nil, err
	}
	b.agents.make = func(c config.Config, sets config.ToolSets) (map[string]agentrun.Agent, error) {
		return newAgents(c, e, sets, b.model, log)
	}
	if b.agents.tokens, err = config.NewCredentials(c, log); err != nil {
		return nil, err
	}
	if b.receipts, b.keys, err = c.Receipts.Open(); err != nil {
		return nil, err
	}
	if err := errors.Join(b.agents.load(c, sets), c.HTTPSecrets(e), b.openPolicy(ctx, c, sets)); err != nil {
		return nil, err
	}
	lease := cmp.Or(c.Runs.Lease, agentrun.DefaultLease)
	if b.store, b.clock, err = openStore(ctx, c, b.measured(at), lease); err != nil {
		return nil, err
	}
	waits("Slack")
	if err := b.wire(ctx, c, e, extra, lease, accepted); err != nil {
		return nil, errors.Join(err, b.store.Close())
	}
	return b, nil
}

// wire makes all that works on the store.
func (b *bot) wire(ctx context.Context, c config.Config, e config.Environment, extra config.ToolsFor, lease time.Duration, accepted int64) (err error) {
	b.redis = newRedisWatch(c.Redis, b.store.Servers, state.NewPast(b.store).Holds, b.log)
	b.ledger.store.Store(b.store)
	b.due = state.NewDue(b.store, state.DueOptions{Grace: shutdownWork, Clock: b.clock, Started: b.started})
	b.relay = state.NewRelay(b.store)
	perAgent, perRequester := c.Bounds()
	b.runner = agentrun.NewRunner(agentrun.Config{
		Store: b.traces.Runs(b.metrics.Runs(b.store)), Policy: b.policy, Ledger: state.NewLedger(b.store), Now: time.Now, Log: b.log,
		Lease: lease, LeaseTime: b.clock.Now, Rollout: replicasMix, Agents: b.agents.agent, Watchers: b.watchers(c), PerAgent: perAgent, PerRequester: perRequester,
		Deliver: map[approvals.Executor]agentrun.Deliverer{intake.Executor: b.deliver}, DeliverReads: intake.DeliverReads,
	})
	b.catalog = agentrun.NewCatalog(b.agents.agent, b.log)
	records := newTimely(b.store, b.clock)
	b.desk = approvals.NewDesk(b.traces.Batches(b.metrics.Batches(records)), b.policy, b.catalog.CheckCall, time.Now)
	b.bulk = approvals.NewBulk(b.desk, records, rand.Text(), time.Now)
	b.remote = newRemoteAgents(c, b.agents.tokens)
	if err = errors.Join(b.newOutbox(c, e), b.newIntake()); err != nil {
		return err
	}
	b.newReviews(c, e, extra, accepted)
	if b.ui, err = newUI(ctx, b, c, e); err != nil {
		return err
	}
	b.retention = state.NewRetention(b.store, state.RetentionOptions{Age: b.agents.threadAge, Remains: b.intake.Remains})
	b.people.open(b.ui)
	if b.tasks, err = state.NewTasks(b.measuredWork()...); err != nil {
		return err
	}
	b.warnOfRequesters(ctx)
	b.checkPeople(ctx)
	return b.watch()
}

// newUI asks Slack for the bot's identity, so that a wrong token fails the start. It waits
// for Slack as long as that cannot be reached.
func newUI(ctx context.Context, b *bot, c config.Config, e config.Environment) (*slackui.UI, error) {
	var who *slack.AuthTestResponse
	api := slack.New(e.SlackToken.Open(), slack.OptionAPIURL(e.SlackAPIURL), slack.OptionHTTPClient(slackapi.HTTPClient(0, nil)))
	err := slackapi.UntilAnswered(ctx, b.log, func(ctx context.Context) (err error) {
		who, err = api.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask Slack who this bot is (auth.test): %w", err)
	}
	if who.BotID == "" { // Slack takes tokens of people, and of the app as such, too
		return nil, errors.New(`SLACK_BOT_TOKEN is not the token of a bot: copy the "Bot User OAuth Token" of the app, from "OAuth & Permissions"`)
	}
	byChannel, anywhere := map[string]string{}, ""
	for _, a := range c.Agents {
		for _, ch := range a.Channels {
			byChannel[ch] = a.Name
		}
		if len(a.Channels) == 0 {
			anywhere = a.Name
		}
	}
	ui, err := slackui.New(slackui.Config{
		BotToken: e.SlackToken.Open, SigningSecret: e.SigningSecret.Open, AppToken: e.AppToken.Open, Answered: b.metrics.Envelope,
		APIURL: e.SlackAPIURL, Transport: b.metrics.Slack(http.DefaultTransport), Team: who.TeamID, Enterprise: who.EnterpriseID, Agent: anywhere, Agents: byChannel, MayAsk: c.MayAsk(),
		Overhear: c.Overhear(), Pending: c.Pending(),
		Desk: b.desk, Runs: b.store, Runner: b.runner, Memos: memos{b.store, b.clock}, Lists: b.store, Tools: b.catalog, Fulfillers: c.Fulfillers,
		CardsPerMinute: c.Slack.CardsPerMinute, MessagesPerMinute: c.Slack.MessagesPerMinute,
		Bulk: b.bulk, Health: b.health(),
		ToolReviews: b.toolReviews(), Owners: c.OwnedBy(), ToolChannels: ownersAsked(c),
		ChatPage:   func(run agentrun.Run) string { return c.Web.PageOf(uistream.ChatID(run.Origin)) },
		Membership: c.Slack.GroupsMaxAge, Awaits: state.Awaited, Background: state.Handled, Attend: b.due.Attend, Lease: c.Runs.Lease, Now: time.Now, Log: b.log,
	})
	if err != nil || ui.Socket == nil {
		return ui, err
	}
	return ui, slackapi.UntilAnswered(ctx, b.log, ui.Socket.Check)
}

// receive takes what comes in Socket Mode until ctx ends, and finishes what
// was begun.
func (b *bot) receive(ctx context.Context) {
	if b.ui.Socket != nil {
		b.ui.Socket.Run(ctx)
	}
}

// handler serves the endpoints of operations, and Slack, unless that comes in
// Socket Mode.
func (b *bot) handler() http.Handler {
	return b.metrics.HTTP("slack", b.traces.HTTP(false, b.routes()))
}

func (b *bot) routes() http.Handler {
	mux := http.NewServeMux()
	if b.ui.Socket == nil {
		mux.Handle("/slack/", b.ui.Server)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := b.ready(r.Context()); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		if b.redis.weak() > 0 {
			answer(w, http.StatusOK, "ready, but Redis keeps less than redis.durability requires; the log says why")
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	return mux
}

// ready says why this process should not be given work, if it should not.
func (b *bot) ready(ctx context.Context) error {
	if b.stopping.Load() {
		return errors.New("stopping")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := b.store.Ping(ctx); err != nil {
		return errors.New(state.NoAnswer(err))
	}
	if err := b.store.Writable(ctx); err != nil {
		return errors.New(state.Refusal(err)) // its own text may hold an address
	}
	if skew, ok := errors.AsType[*state.SkewError](b.clock.Check(ctx)); ok {
		return skew
	}
	if !b.due.Healthy(time.Now()) {
		return errors.New("the reconcilers have stopped")
	}
	if b.ui.Socket != nil && b.ui.Socket.Ready() != nil {
		return errors.New("no connection to Slack is open")
	}
	return nil
}

// close waits for the work that follows answers, and closes the store.
func (b *bot) close(ctx context.Context) error {
	err := errors.Join(b.ui.Server.Shutdown(ctx), b.store.Close())
	if lost := b.traces.Close(ctx); lost != nil { // a collector that fails does not make the stop fail
		b.log.WarnContext(ctx, "traces", slog.Any("err", lost))
	}
	return err
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") //nolint:gosec // plain text by its type, with words of ours; an error cannot be reported any more
}
