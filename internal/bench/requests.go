package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// agents are as many as it takes for requests to be in all partitions: those of one
// agent are in one.
const agents = 512

// A rule has someone in @sre approve each call, before a deadline if there is one.
type rule struct{ deadline time.Time }

// Rule implements [approvals.Policy].
func (r rule) Rule(_ context.Context, p approvals.Proposal) (approvals.Ruling, error) {
	return approvals.Ask{Why: "It changes something.", Rule: "default@1", Requirement: r.Strictest(p.At)}, nil
}

// Strictest implements [approvals.Policy].
func (r rule) Strictest(time.Time) approvals.Requirement {
	return approvals.Requirement{
		Quorums: []approvals.Quorum{{Name: "sre", Need: 1, From: approvals.From{Groups: []approvals.GroupID{sre}}}}, Deadline: r.deadline,
	}
}

// ask stores requests of agents that run elsewhere, as the doors do: n of them, of
// one call each, that wait for a decision, until the deadline of the rule if it has
// one; that may be over, and then they were made before it. A server of our own keeps them less
// safely meanwhile: storing them is not what is measured.
func (b *bench) ask(ctx context.Context, s *state.Store, n int, name string, r rule) ([]approvals.Batch, error) {
	if err := b.redis.set(ctx, state.Everysec); err != nil {
		return nil, err
	}
	now := b.Now
	if !r.deadline.IsZero() {
		now = func() time.Time { return r.deadline.Add(-time.Hour) }
	}
	runner := agentrun.NewRunner(agentrun.Config{
		Store: s, Policy: r, Ledger: state.NewLedger(s), Now: now,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, false },
	})
	in, err := intake.New(intake.Config{Store: s, Feed: state.NewFeed(s), Runner: runner, Desk: approvals.NewDesk(s, r, nil, now), Now: now, Log: b.log()})
	if err != nil {
		return nil, err
	}
	all := make([]approvals.Batch, n)
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(connections)
	for i := range all {
		g.Go(func() (err error) {
			all[i], err = askOne(asking, s, in, i, name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("store %d requests: %w", n, err)
	}
	return all, b.redis.set(ctx, b.keeps)
}

// unlimited is more than any client asks for here.
const unlimited = 100_000_000

func askOne(ctx context.Context, s *state.Store, in *intake.Service, i int, name string) (approvals.Batch, error) {
	key := fmt.Sprintf("%s-%d", name, i)
	asked, err := in.Ask(ctx, intake.Client{
		Name: fmt.Sprintf("agent-%d", i%agents), Owner: alice, Channel: ops, Credential: "token:1", OpenLimit: unlimited, PerMinute: unlimited,
	}, intake.Ask{
		Door: intake.DoorAPI, ExternalID: key, Calls: []intake.Call{{ID: "call-1", Tool: "delete_file", Args: arguments(key), Cwd: "/srv/app", Repository: "acme/reports", Branch: "main", Reason: words}},
		Prompt: words,
	})
	if err != nil {
		return approvals.Batch{}, err
	}
	run, err := s.Run(ctx, asked.ID)
	if err != nil {
		return approvals.Batch{}, err
	}
	return s.Batch(ctx, run.Deferred)
}

// arguments are those of a call of middle size. The click on its card has about 11 kB.
func arguments(key string) json.RawMessage {
	return fmt.Appendf(nil, `{"path":"/srv/reports/%s/2026-q1-sales.csv","recursive":false,"ticket":"OPS-4711","owner":"reports@example.com",`+
		`"reason":"The retention of this report ended last month, and the audit that had put a hold on it is closed since then.",`+
		`"region":"eu-central-1","bucket":"acme-reports","class":"standard","version":"3f0a9c1e","bytes":4182331,"rows":61800,"currency":"EUR",`+
		`"from":"2026-01-01","to":"2026-03-31","approved_by_audit":true,"hold":null,"notify":"finance@example.com",`+
		`"keep":["2025-q1","2025-q2","2025-q3","2025-q4"]}`, key)
}

// words are what a person asked for, and what an agent says about a call.
var words = strings.Repeat("Clean up the reports of the first quarter: the tables were moved to the warehouse, finance has signed off the figures. ", 8)

// A drawn request is one whose card is in Slack, with the click that approves it as
// Slack sends it, and what the bot keeps about what it has drawn.
type drawn struct {
	batch   approvals.Batch
	payload string
	memos   map[state.Kind]string // of those that it keeps something about
}

// draw has a bot draw the card of one request, and clicks on it.
func (b *bench) draw(ctx context.Context) (_ drawn, err error) {
	prefix := b.fresh()
	s, err := b.store(ctx, prefix)
	if err != nil {
		return drawn{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := b.replica(ctx, b.configuration(prefix))
	if err != nil {
		return drawn{}, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	// The id of a request follows from its name, and the cards that were drawn before are
	// still in Slack.
	all, err := b.ask(ctx, s, 1, "template-"+prefix, rule{})
	if err != nil {
		return drawn{}, err
	}
	d := drawn{batch: all[0], memos: map[state.Kind]string{}}
	ts, err := b.card(ctx, "", d.batch.ID)
	if err != nil {
		return drawn{}, err
	}
	if err := b.quiet(ctx, s); err != nil {
		return drawn{}, err
	}
	for _, k := range surfaces {
		memo, version, err := s.Memo(ctx, d.about(k, d.batch), string(k))
		if err != nil {
			return drawn{}, err
		}
		if version > 0 {
			d.memos[k] = string(memo)
		}
	}
	if !strings.Contains(d.memos[state.Cards], ts) {
		return drawn{}, fmt.Errorf("message %s is not the card that the bot drew: %s", ts, d.memos[state.Cards])
	}
	d.payload, err = b.press(ctx, ts)
	b.stand.is(ts)
	return d, err
}

// card waits for the card of a request in a thread, or in the channel, and returns
// which message it is.
func (b *bench) card(ctx context.Context, thread string, id approvals.BatchID) (ts string, err error) {
	for range 600 {
		all, err := b.slack.Messages(bob, ops, thread)
		if err != nil {
			return "", err
		}
		for _, m := range slices.Backward(all) {
			if slices.ContainsFunc(m.Actions(), func(a slacksim.Action) bool { return strings.Contains(a.Value, string(id)) }) {
				return m.TS, nil
			}
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("request %s has no card", id)
}

// press clicks on the first button of a message, and returns what Slack sends.
func (b *bench) press(ctx context.Context, ts string) (payload string, err error) {
	sent := make(chan string, 1)
	at, err := b.serve(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a payload that is cut off is not readable either
		form, _ := url.ParseQuery(string(body))
		sent <- form.Get("payload")
	}))
	if err != nil {
		return "", err
	}
	b.slack.SetURLs("", "http://"+at, "")
	out, err := b.slack.Click(slacksim.Click{User: bob, Channel: ops, TS: ts, ActionID: "countersign.approve.0", Confirmed: true}) //nolint:contextcheck // it has none
	if err != nil || out.Status != http.StatusOK {
		return "", errors.Join(err, fmt.Errorf("click on the card: %+v", out))
	}
	return <-sent, nil
}

// clicksOn returns clicks that approve these requests, as Slack sends them. Each is the
// click that was seen, with another request and ids of its own.
func (b *bench) clicksOn(d drawn, all []approvals.Batch) ([]request, error) {
	var seen struct {
		Trigger string `json:"trigger_id"`
		Actions []struct {
			TS string `json:"action_ts"`
		} `json:"actions"`
	}
	if err := json.Unmarshal([]byte(d.payload), &seen); err != nil || len(seen.Actions) == 0 {
		return nil, errors.Join(err, errors.New("the click cannot be read"))
	}
	out := make([]request, len(all))
	for i, batch := range all {
		payload := strings.NewReplacer(append(d.names(batch),
			`"`+seen.Trigger+`"`, fmt.Sprintf(`"%s.%d"`, seen.Trigger, i), seen.Actions[0].TS, fmt.Sprintf("%d.%06d", b.Now().Unix(), i))...).Replace(d.payload)
		out[i] = b.signed("/slack/interactivity", url.Values{"payload": {payload}})
	}
	return out, nil
}

// signed returns a request with the signature of Slack.
func (b *bench) signed(path string, form url.Values) request {
	body, stamp := []byte(form.Encode()), strconv.FormatInt(b.Now().Unix(), 10)
	return newRequest(path, map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "X-Slack-Request-Timestamp": stamp,
		"X-Slack-Signature": slacksim.Sign(b.slack.SigningSecret(), stamp, body),
	}, body)
}

// size returns the length of the body of a click, in bytes.
func (d drawn) size() int { return len("payload=") + len(url.QueryEscape(d.payload)) }

// names are what names the request in what was seen, each with that of another.
func (d drawn) names(b approvals.Batch) []string {
	return []string{
		string(d.batch.ID), string(b.ID), string(d.batch.Run), string(b.Run),
		d.batch.Approvals[0].Call.Digest.String(), b.Approvals[0].Call.Digest.String(),
		string(d.batch.Approvals[0].Call.ID), string(b.Approvals[0].Call.ID),
	}
}

// surfaces are what is drawn of a request.
var surfaces = []state.Kind{state.Cards, state.Homes, state.Announcements, state.Replies}

// about is the document that a surface draws.
func (drawn) about(k state.Kind, b approvals.Batch) string {
	if k == state.Replies {
		return string(b.Run)
	}
	return string(b.ID)
}

// shown stores that these requests are in Slack, so that nothing is due. Their cards
// are said to be the one message that is there, and can be updated.
func (b *bench) shown(ctx context.Context, s *state.Store, d drawn, all []approvals.Batch) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(connections)
	for _, batch := range all {
		g.Go(func() error {
			run, err := s.Run(ctx, batch.Run)
			if err != nil {
				return err
			}
			for _, k := range surfaces {
				version := batch.Version
				if k == state.Replies {
					version = run.Version
				}
				var memo []byte
				if seen, ok := d.memos[k]; ok {
					memo = []byte(strings.NewReplacer(d.names(batch)...).Replace(seen))
				}
				if err := s.CommitMemo(ctx, d.about(k, batch), string(k), memo, 0, version); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// quiet returns when nothing is due.
func (b *bench) quiet(ctx context.Context, s *state.Store) error {
	_, err := b.drained(ctx, s)
	return err
}
