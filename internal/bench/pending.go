package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

const pendingAbout = `What %d requests that wait for people cost, and whether few are faster than many: "/countersign status", the first page of
"/countersign list", and the Home of someone who may approve all of them, until Slack has it, and a click that approves one, until it
is answered. One at a time; times are the middle. "Bytes each" is the memory of Redis for one request, its card and what is kept about
drawing it; "start" is until a bot is ready.`

// fewPending is how many requests many are compared with.
const fewPending = 100

// mostViews is how often each view is opened at most.
const mostViews = 30

// chunk is how many requests are kept in mind at once while they are stored.
const chunk = 10_000

// pending measures what a person waits for while many requests are open.
func (b *bench) pending(ctx context.Context) error {
	b.said("pending: %d requests", b.Pending)
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	approvers := []string{bob}
	for i := range visitors {
		approvers = append(approvers, visitor(i))
	}
	if err := b.slack.SetGroup(sre, approvers); err != nil { //nolint:contextcheck // it has none
		return err
	}
	prefix := b.fresh()
	s, err := b.store(ctx, prefix)
	if err != nil {
		return err
	}
	t := Table{Name: "pending", About: fmt.Sprintf(pendingAbout, b.Pending), Columns: []string{"bytes each", "start ms"}}
	for _, v := range b.views() {
		t.Columns = append(t.Columns, v.name+" ms", v.name+" commands", v.name+" round trips")
	}
	t.Columns = append(t.Columns, "click ms")
	open := 1 // it brings the scripts along, which are no part of the others
	if _, _, err := b.fill(ctx, prefix, seen, 0, open); err != nil {
		return errors.Join(err, s.Close())
	}
	for _, n := range slices.Compact([]int{min(fewPending, b.Pending), b.Pending}) {
		each, some, err := b.fill(ctx, prefix, seen, open, n)
		if err == nil {
			open = n
			var r Row
			r, err = b.viewed(ctx, prefix, s, seen, some)
			t.Rows = append(t.Rows, Row{fmt.Sprintf("%d pending", n), append([]float64{each}, r.Values...)})
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return errors.Join(s.Close(), b.table(t))
}

// settled is how long it takes until the keys that are kept for seconds are gone.
const settled = 4 * time.Second

// fill stores requests from one number to another, and returns how much memory of
// Redis each takes, and some of them. Its connections are closed by then, so that
// their buffers do not count. What is kept for minutes counts.
func (b *bench) fill(ctx context.Context, prefix string, seen drawn, from, to int) (bytes float64, some []approvals.Batch, err error) {
	before, err := b.redis.cost(ctx)
	if err != nil {
		return 0, nil, err
	}
	s, err := b.store(ctx, prefix)
	if err != nil {
		return 0, nil, err
	}
	for at := from; at < to && err == nil; at += chunk {
		if at > from {
			b.said("pending: %d of %d are stored", at, to)
		}
		if some, err = b.ask(ctx, s, min(chunk, to-at), fmt.Sprintf("pending-%d", at), rule{}); err == nil {
			err = b.shown(ctx, s, seen, some)
		}
	}
	if err := errors.Join(err, s.Close(), sleep(ctx, atLeast(b, settled, 0))); err != nil {
		return 0, nil, err
	}
	after, err := b.redis.cost(ctx)
	return after.minus(before).memory / float64(max(1, to-from)), some, err
}

// A view is what a person opens in Slack.
type view struct {
	name string
	open func(ctx context.Context) error // returns when the person sees it
}

func (b *bench) views() []view {
	command := func(text string) func(context.Context) error {
		return func(context.Context) error {
			out, err := b.slack.Command(slacksim.Command{User: bob, Channel: ops, Command: "/countersign", Text: text}) //nolint:contextcheck // it has none
			if err == nil && out.Message == nil {
				err = fmt.Errorf("/countersign %s is not answered: %+v", text, out)
			}
			return err
		}
	}
	return []view{{"status", command("status")}, {"list", command("list all")}, {"Home", b.visited}}
}

// visitors is how many people open their Home. Each opens it once, because the Home of
// one person is not drawn again within seconds.
const visitors = 2 * (mostViews + 1)

func visitor(n int) string { return fmt.Sprintf("U0VISITOR%d", n) }

// everybody returns the people of the simulated Slack.
func everybody() []slacksim.Person {
	all := slacksim.DefaultPeople()
	for i := range visitors {
		all = append(all, slacksim.Person{ID: visitor(i), Name: fmt.Sprintf("visitor%d", i), RealName: "Visitor"})
	}
	return all
}

// visited opens the Home of somebody who has not opened it before.
func (b *bench) visited(ctx context.Context) error {
	select {
	case <-b.published:
	default:
	}
	who := visitor(b.homes)
	b.homes++
	if err := b.slack.OpenHome(who); err != nil { //nolint:contextcheck // it has none
		return err
	}
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-b.published:
		return nil
	case <-late.C:
		return fmt.Errorf("the Home of %s was not drawn within a minute", who)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// viewed measures a bot that has nothing to do: its start, the views, and clicks that
// approve some of what waits.
func (b *bench) viewed(ctx context.Context, prefix string, s *state.Store, seen drawn, some []approvals.Batch) (_ Row, err error) {
	began := b.Now()
	r, err := b.replica(ctx, b.configuration(prefix))
	if err != nil {
		return Row{}, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	out := Row{Values: []float64{ms(b.Now().Sub(began))}}
	if err := b.quiet(ctx, s); err != nil {
		return Row{}, err
	}
	at := "http://" + r.addr + "/slack/"
	b.slack.SetURLs(at+"events", at+"interactivity", at+"commands")
	n := min(mostViews, max(atLeast(b, 8, 2), int(b.Length.Seconds()*20)))
	for _, v := range b.views() {
		if err := v.open(ctx); err != nil { // what is looked up once and kept
			return Row{}, fmt.Errorf("%s: %w", v.name, err)
		}
		before, err := b.redis.cost(ctx)
		if err != nil {
			return Row{}, err
		}
		took := times{each: make([]time.Duration, n)}
		for i := range n {
			began := b.Now()
			if err := v.open(ctx); err != nil {
				return Row{}, fmt.Errorf("%s: %w", v.name, err)
			}
			took.each[i] = b.Now().Sub(began)
		}
		after, err := b.redis.cost(ctx)
		if err != nil {
			return Row{}, err
		}
		slices.Sort(took.each)
		spent := after.minus(before).each(float64(n))
		out.Values = append(out.Values, ms(took.at(0.5)), spent.commands, spent.trips)
	}
	clicks := subject{name: "a click", addrs: []string{r.addr}, conns: 1, sent: func(int) ([]request, error) {
		return b.clicksOn(seen, some[:min(n, len(some))])
	}, done: func(ctx context.Context) (cost, error) { return b.drained(ctx, s) }}
	m, err := b.measure(ctx, clicks, 0)
	if err != nil {
		return Row{}, err
	}
	out.Values = append(out.Values, m[midTime])
	return out, nil
}
