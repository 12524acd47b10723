package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/tools"
)

const loopAbout = `What one more step of an agent costs: the model asks for a call that needs no approval, and the call runs. Runs of %d steps are
compared with runs of %d, until their replies are in Slack. "No store" is the same model and the same tool in a loop that keeps nothing.
"A step" is the time from one call of the tool to the next; the first column compares it, with as many runs at once.`

// The numbers of steps of the runs that are compared.
const (
	fewSteps  = 4
	manySteps = 16
)

// loopRuns are the numbers of runs at the same time.
var loopRuns = []int{1, 16}

// loop measures what a step costs of an agent whose calls need no approval.
func (b *bench) loop(ctx context.Context) (err error) {
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	t := Table{
		Name: "loop", About: fmt.Sprintf(loopAbout, manySteps, fewSteps),
		Columns: []string{"a step / it", "a step, ms", "CPU ms", "Redis CPU ms", "commands", "round trips", "AOF bytes"},
	}
	model, err := running.serve(ctx, openaisim.New(stepStory()))
	if err != nil {
		return err
	}
	model = "http://" + model + "/v1"
	all, err := b.agentLoops(ctx, &running, model)
	if err != nil {
		return err
	}
	plain, err := b.plainLoop(model)
	if err != nil {
		return err
	}
	others, missing := b.otherLoops(ctx, &running, model)
	t.About += missing
	all = append(append(all, plain), others...)
	for _, atOnce := range loopRuns {
		b.said("loop: %d at once, %d rounds", atOnce, b.Rounds)
		rounds := make([][][]float64, len(all))
		for range b.Rounds {
			for i, l := range all {
				got, err := b.stepCosts(ctx, l, atOnce)
				if err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				rounds[i] = append(rounds[i], got)
			}
		}
		ours := median(rounds[0])
		for i, l := range all {
			m := median(rounds[i])
			t.Rows = append(t.Rows, Row{fmt.Sprintf("%s, %d at once", l.name, atOnce), append([]float64{ours[0] / m[0]}, m...)})
		}
	}
	return b.table(t)
}

// A loopSubject is an agent loop that is measured.
type loopSubject struct {
	name   string
	run    func(ctx context.Context, key string, steps int) error // returns when the run is over
	median func() time.Duration                                   // of the steps since it was called last
	store  *state.Store                                           // nil if it has none
	used   func() (time.Duration, bool)                           // the CPU time of another process; nil if it runs in this one
}

// stepCosts returns what a step takes, and costs, while so many runs go on at once.
func (b *bench) stepCosts(ctx context.Context, l *loopSubject, atOnce int) ([]float64, error) {
	n := atLeast(b, max(8, atOnce), 2) * max(1, int(b.Length.Seconds()))
	few, _, _, err := b.steps(ctx, l, fewSteps, n, atOnce)
	if err != nil {
		return nil, err
	}
	many, step, known, err := b.steps(ctx, l, manySteps, n, atOnce)
	if err != nil {
		return nil, err
	}
	spent := many.minus(few).each(float64(n * (manySteps - fewSteps)))
	used := ms(spent.process)
	if !known {
		used = unknown
	}
	return []float64{ms(step), used, ms(spent.server), spent.commands, spent.trips, spent.aof}, nil
}

// steps executes n runs, and returns what they cost, how long a step of them took, and
// whether the CPU time is known.
func (b *bench) steps(ctx context.Context, l *loopSubject, steps, n, atOnce int) (spent cost, step time.Duration, known bool, err error) {
	before, err := b.redis.cost(ctx)
	if err != nil {
		return cost{}, 0, false, err
	}
	own, _ := cpuOf(l.used)
	b.started++
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error { return l.run(running, fmt.Sprintf("run-%d-%d", b.started, i), steps) })
	}
	if err := g.Wait(); err != nil {
		return cost{}, 0, false, err
	}
	var looks cost
	if l.store != nil {
		if looks, err = b.drained(ctx, l.store); err != nil {
			return cost{}, 0, false, err
		}
	}
	after, err := b.redis.cost(ctx)
	owned, known := cpuOf(l.used)
	spent = after.minus(before).minus(looks)
	spent.process += owned - own
	return spent, l.median(), known, err
}

// A stepTool is the tool that the runs call. It records when it is called.
type stepTool struct {
	agentrun.Tool

	now func() time.Time

	mu    sync.Mutex
	last  map[string]time.Time // of each run that goes on
	over  map[string]chan struct{}
	times stepTimes
}

// stepTimes collects how long steps took.
type stepTimes struct {
	mu   sync.Mutex
	each []time.Duration
}

func (t *stepTimes) took(each ...time.Duration) {
	t.mu.Lock()
	t.each = append(t.each, each...)
	t.mu.Unlock()
}

// median returns that of what was collected since it was called last.
func (t *stepTimes) median() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.each)
	out := times{each: t.each}.at(0.5)
	t.each = nil
	return out
}

// stepArgs are the arguments of the tool.
type stepArgs struct {
	Run  string `json:"run"`
	Step int    `json:"step"`
	Of   int    `json:"of"`
}

func newStepTool(now func() time.Time, name string, effect agentrun.Effect) (*stepTool, error) {
	t := &stepTool{now: now, last: map[string]time.Time{}, over: map[string]chan struct{}{}}
	var err error
	t.Tool, err = tools.New(tools.Spec[stepArgs]{Name: name, Description: "Looks something up.", Approval: tools.Never, Effect: effect},
		func(_ context.Context, _ agentrun.Call, s stepArgs) (string, error) { t.called(s); return "found", nil })
	return t, err
}

func (t *stepTool) called(s stepArgs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if before, ok := t.last[s.Run]; ok {
		t.times.took(now.Sub(before))
	}
	t.last[s.Run] = now
	if s.Step == s.Of {
		delete(t.last, s.Run)
		close(t.over[s.Run])
	}
}

// starts returns what is closed with the last call of a run.
func (t *stepTool) starts(run string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over[run] = make(chan struct{})
	return t.over[run]
}

// otherLoops starts the agents of others. One that does not start is left out; the table
// says so.
func (b *bench) otherLoops(ctx context.Context, running *ends, model string) (all []*loopSubject, missing string) {
	for _, p := range b.Agents {
		at, err := p.start(ctx, running, "OPENAI_BASE_URL="+model, "OPENAI_API_KEY=scripted")
		if err != nil {
			missing += p.missing(err)
			continue
		}
		took := &stepTimes{}
		all = append(all, &loopSubject{
			name: p.Name, median: took.median, used: at.used,
			run: func(ctx context.Context, key string, steps int) error {
				each, err := at.runs(ctx, fmt.Sprintf("call look_up %s %d", key, steps))
				if err == nil && len(each) != steps-1 {
					err = fmt.Errorf("it took %d steps, not %d", len(each)+1, steps)
				}
				took.took(each...)
				return err
			},
		})
	}
	return all, missing
}

// runs has an agent run once, and returns how long its steps took.
func (p process) runs(ctx context.Context, prompt string) ([]time.Duration, error) {
	asked, err := json.Marshal(map[string]string{"prompt": prompt})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.addr, bytes.NewReader(asked))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", answer.Status)
	}
	var took struct{ Steps []float64 }
	if err := json.NewDecoder(answer.Body).Decode(&took); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	each := make([]time.Duration, len(took.Steps))
	for i, ms := range took.Steps {
		each[i] = time.Duration(ms * float64(time.Millisecond))
	}
	return each, nil
}

// stepStory is a model that calls the tool as often as the prompt says.
func stepStory() openaisim.Story {
	return openaisim.Story{
		Name: "steps", Prompt: "call TOOL RUN STEPS", Match: func(string) bool { return true },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			s, tool := stepArgs{Step: len(c.Results) + 1}, ""
			_, asked, _ := strings.Cut(c.User, "call ")
			if _, err := fmt.Sscanf(asked, "%s %s %d", &tool, &s.Run, &s.Of); err != nil || s.Step > s.Of {
				return openaisim.Reply{Text: "It is done."}
			}
			args, _ := json.Marshal(s) // it can be encoded
			return openaisim.Reply{Calls: []openaisim.Call{{Name: tool, Args: string(args)}}}
		},
	}
}

// prompt returns the prompt that has the model call the tool this number of times.
func (t *stepTool) prompt(run string, steps int) string {
	return fmt.Sprintf("call %s %s %d", t.Spec().Name, run, steps)
}

// agentLoops returns the loop of a bot, once with a tool of each effect.
func (b *bench) agentLoops(ctx context.Context, running *ends, model string) ([]*loopSubject, error) {
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return nil, err
	}
	running.after(s.Close)
	ask := b.mentioner(s)
	var all []*loopSubject
	var has []agentrun.Tool
	for _, x := range []struct {
		name, tool string
		effect     agentrun.Effect
	}{{"loop", "change", agentrun.EffectNone}, {"loop, pure", "look_up", agentrun.EffectPure}} {
		tool, err := newStepTool(b.Now, x.tool, x.effect)
		if err != nil {
			return nil, err
		}
		has = append(has, tool)
		all = append(all, &loopSubject{name: x.name, median: tool.times.median, store: s, run: func(ctx context.Context, key string, steps int) error {
			over := tool.starts(key)
			_, id, err := ask(ctx, tool.prompt(key, steps))
			if err != nil {
				return err
			}
			select {
			case <-over:
			case <-ctx.Done():
				return ctx.Err()
			}
			return completed(ctx, s, id)
		}})
	}
	r, err := b.replicaWith(ctx, c, model, func(string) ([]agentrun.Tool, error) { return has, nil })
	if err != nil {
		return nil, err
	}
	running.after(r.end)
	return all, nil
}

// completed waits for the end of a run that has made its last call.
func completed(ctx context.Context, s *state.Store, id approvals.RunID) error {
	for {
		run, err := s.Run(ctx, id)
		if err != nil || run.Status == agentrun.RunCompleted {
			return err
		}
		if run.Status != agentrun.RunRunning {
			return fmt.Errorf("the run is %s: %s", run.Status, run.Failure)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// plainLoop returns a loop that stores nothing.
func (b *bench) plainLoop(at string) (*loopSubject, error) {
	tool, err := newStepTool(b.Now, "look_up", agentrun.EffectPure)
	if err != nil {
		return nil, err
	}
	model, err := openaimodel.New(openaimodel.Config{APIKey: func() string { return "scripted" }, BaseURL: at, Model: "scripted", Now: b.Now})
	if err != nil {
		return nil, err
	}
	return &loopSubject{name: "no store", median: tool.times.median, run: func(ctx context.Context, key string, steps int) error {
		tool.starts(key)
		spec := tool.Spec()
		request := agentrun.ModelRequest{
			Tools:    []agentrun.ToolDefinition{{Name: spec.Name, Description: spec.Description, Parameters: spec.Schema}},
			Messages: []agentrun.Message{agentrun.Request{Parts: []agentrun.RequestPart{agentrun.UserPrompt{Content: tool.prompt(key, steps), At: b.Now()}}}},
		}
		for {
			answer, err := model.Request(ctx, request)
			if err != nil {
				return err
			}
			var results []agentrun.RequestPart
			for _, part := range answer.Parts {
				if call, ok := part.(agentrun.CallPart); ok {
					result, err := tool.Execute(ctx, agentrun.Call{ToolCall: call.ToolCall})
					if err != nil {
						return err
					}
					results = append(results, agentrun.ToolReturn{ToolName: spec.Name, CallID: call.ID, Content: result.Value, Outcome: agentrun.OutcomeSuccess})
				}
			}
			if len(results) == 0 {
				return nil
			}
			request.Messages = append(request.Messages, answer, agentrun.Request{Parts: results})
		}
	}}, nil
}
