package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools"
)

const steadyAbout = `People approve calls of an agent at a constant rate. "To tool" is from the moment of the click to the call of the tool: the decision, the
resumption of the run, and what is written down before a call may run. CPU and commands are of all that follows a click: the tool, the
model's last answer, the card and the reply.`

// rates are how often people click in a second.
var rates = []int{20, 200}

// steady measures from clicks to the calls that they approve.
func (b *bench) steady(ctx context.Context) error {
	t := Table{
		Name: "steady", About: steadyAbout,
		Columns: []string{"clicks", "failed", "p50 ms", "p99 ms", "to tool p50 ms", "to tool p99 ms", "CPU ms", "commands", "AOF bytes"},
	}
	for _, rate := range rates {
		r, err := b.steadyAt(ctx, rate)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, r)
	}
	return b.table(t)
}

func (b *bench) steadyAt(ctx context.Context, rate int) (_ Row, err error) {
	n := max(8, int(b.Length.Seconds()*float64(rate)))
	b.said("steady: %d clicks, %d a second", n, rate)
	a := &agent{now: b.Now, called: map[string]time.Time{}}
	model, err := b.serve(ctx, openaisim.New(a.story()))
	if err != nil {
		return Row{}, err
	}
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return Row{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := b.replicaWith(ctx, c, "http://"+model+"/v1", a.tools)
	if err != nil {
		return Row{}, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	all, err := b.mention(ctx, s, n)
	if err != nil {
		return Row{}, err
	}
	sent, err := b.buttons(ctx, all)
	if err != nil {
		return Row{}, err
	}
	runtime.GC() // what the preparation has left would be collected beside the first clicks
	before, err := b.redis.cost(ctx)
	if err != nil {
		return Row{}, err
	}
	began := b.Now()
	every := time.Second / time.Duration(rate)
	took, err := load{addrs: []string{r.addr}, conns: connections, every: every, now: b.Now}.send(ctx, sent)
	if err != nil {
		return Row{}, err
	}
	looks, err := b.drained(ctx, s)
	if err != nil {
		return Row{}, err
	}
	after, err := b.redis.cost(ctx)
	if err != nil {
		return Row{}, err
	}
	spent, tool := after.minus(before).minus(looks), times{each: a.since(began, every, n)}
	if len(tool.each)+took.failed < n {
		return Row{}, fmt.Errorf("%d clicks were answered, and %d calls ran", n-took.failed, len(tool.each))
	}
	return Row{fmt.Sprintf("%d clicks/s", rate), []float64{
		float64(n), float64(took.failed), ms(took.at(0.5)), ms(took.at(0.99)), ms(tool.at(0.5)), ms(tool.at(0.99)),
		ms(spent.process) / float64(n), spent.commands / float64(n), spent.aof / float64(n),
	}}, nil
}

// An agent is a model that calls the tool that the person names.
type agent struct {
	now func() time.Time

	mu     sync.Mutex
	called map[string]time.Time // when its tool was called, by what with
}

const archive = "archive_report"

func (*agent) story() openaisim.Story {
	return openaisim.Story{
		Name: "archive", Prompt: "archive KEY", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) > 0 {
				return openaisim.Reply{Text: "It is archived."}
			}
			words := strings.Fields(c.User)
			return openaisim.Reply{Calls: []openaisim.Call{{Name: archive, Args: fmt.Sprintf(`{"report":%q}`, words[len(words)-1])}}}
		},
	}
}

func (a *agent) tools(string) ([]agentrun.Tool, error) {
	t, err := tools.New(tools.Spec[reported]{Name: archive, Description: "Archives a report.", Approval: tools.Always},
		func(_ context.Context, _ agentrun.Call, r reported) (string, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.called[r.Report] = a.now()
			return "archived", nil
		})
	return []agentrun.Tool{t}, err
}

type reported struct {
	Report string `json:"report"`
}

// since returns how long after its click each call ran, in order.
func (a *agent) since(began time.Time, every time.Duration, n int) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []time.Duration
	for i := range n {
		if at, ok := a.called[key(i)]; ok {
			all = append(all, at.Sub(began.Add(time.Duration(i)*every)))
		}
	}
	slices.Sort(all)
	return all
}

func key(i int) string { return fmt.Sprintf("report-%d", i) }

// A thread is a request of a person whose agent waits for an approval.
type thread struct {
	root  string
	batch approvals.Batch
}

// mention has n people ask the agent, each in a thread, and returns when all wait for
// an approval and nothing is left to draw.
func (b *bench) mention(ctx context.Context, s *state.Store, n int) ([]thread, error) {
	ask := b.mentioner(s)
	all, runs := make([]thread, n), make([]approvals.RunID, n)
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range all {
		g.Go(func() (err error) {
			all[i].root, runs[i], err = ask(asking, "archive "+key(i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := b.quiet(ctx, s); err != nil {
		return nil, err
	}
	for i := range all {
		run, err := s.Run(ctx, runs[i])
		if err == nil && run.Deferred == "" {
			err = fmt.Errorf("the run does not wait: it is %s: %s", run.Status, run.Failure)
		}
		if err == nil {
			all[i].batch, err = s.Batch(ctx, run.Deferred)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mentioner returns what a person does who asks the agent in a new thread.
func (b *bench) mentioner(s *state.Store) func(ctx context.Context, text string) (root string, run approvals.RunID, err error) {
	runner := agentrun.NewRunner(agentrun.Config{
		Store: s, Policy: rule{}, Ledger: state.NewLedger(s), Now: b.Now,
		Agents: func(string) (agentrun.Agent, bool) { return agentrun.Agent{}, true },
	})
	return func(ctx context.Context, text string) (string, approvals.RunID, error) {
		root, err := b.slack.PostAs(slacksim.Post{User: alice, Channel: ops, Text: text}) //nolint:contextcheck // it has none
		if err != nil {
			return "", "", err
		}
		run, err := runner.Mention(ctx, agentrun.Mention{
			Event: root, Agent: "ops", Requester: alice, Text: text,
			Origin: agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: root},
		})
		return root, run.ID, err
	}
}

// buttons are the clicks that approve these calls.
func (b *bench) buttons(ctx context.Context, all []thread) ([]request, error) {
	first, err := b.card(ctx, all[0].root, all[0].batch.ID)
	if err != nil {
		return nil, err
	}
	seen := drawn{batch: all[0].batch}
	if seen.payload, err = b.press(ctx, first); err != nil {
		return nil, err
	}
	out := make([]request, len(all))
	for i, t := range all {
		ts, err := b.card(ctx, t.root, t.batch.ID)
		if err != nil {
			return nil, err
		}
		at := seen
		at.payload = strings.NewReplacer(first, ts, all[0].root, t.root).Replace(seen.payload)
		one, err := b.clicksOn(at, []approvals.Batch{t.batch})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}
