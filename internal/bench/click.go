package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/config"
)

const clickAbout = `Clicks over 64 connections: a distinct, valid decision each, of %d bytes. "Deciding" is a bot that does no due work; "with its
drawing" one that does all of it, whose cost counts until all cards are drawn. CPU is that of the whole process, less that of
"answers 200". Slack only reads updates of cards, and answers. The first two columns are requests per second, in proportion to the row's.`

const (
	deciding    = "bot, deciding"
	withDrawing = "bot, with its drawing"
)

// clicks measures from a click to its answer.
func (b *bench) clicks(ctx context.Context) (err error) {
	n := b.clicksOfARound()
	b.said("click: %d decisions, %d rounds, %s", n, b.Rounds, b.keeps)
	seen, err := b.draw(ctx)
	if err != nil {
		return err
	}
	var running ends
	defer func() { err = errors.Join(err, running.close()) }()
	bots := make([]subject, 2)
	for i, name := range []string{deciding, withDrawing} {
		if bots[i], err = b.clicked(ctx, &running, seen, n, i); err != nil {
			return err
		}
		bots[i].name = name
	}
	all, err := b.clickFloors(ctx, &running, bots[0].sent)
	if err != nil {
		return err
	}
	peers, missing := b.peers(ctx, &running, bots[0].sent)
	t := Table{Name: "click", About: fmt.Sprintf(clickAbout, seen.size()) + missing}
	return b.compared(ctx, t, nothing, []versus{{"deciding / it", deciding}, {"drawing / it", withDrawing}}, slices.Concat(all, peers, bots))
}

// clicksOfARound is how many clicks are measured in a round. In a very short one they
// are fewer than the connections, so that a slow machine answers them in time.
func (b *bench) clicksOfARound() int { return max(16, int(b.Length.Seconds()*800)) }

// clicked starts so many replicas of the bot, with n requests for each round whose
// cards are drawn. Without a replica it is a bot that does no due work.
func (b *bench) clicked(ctx context.Context, running *ends, seen drawn, n, replicas int) (subject, error) {
	c := b.configuration(b.fresh())
	s, err := b.store(ctx, c.Redis.Prefix)
	if err != nil {
		return subject{}, err
	}
	running.after(s.Close)
	all, err := b.ask(ctx, s, n*b.Rounds, "click", rule{})
	if err == nil {
		err = b.shown(ctx, s, seen, all)
	}
	if err != nil {
		return subject{}, err
	}
	out := subject{name: replicaWords(replicas), conns: connections, sent: func(round int) ([]request, error) {
		return b.clicksOn(seen, all[round*n:(round+1)*n])
	}}
	if replicas == 0 {
		addr, err := b.front(ctx, running, c)
		out.addrs = []string{addr}
		return out, err
	}
	out.done = func(ctx context.Context) (cost, error) { return b.drained(ctx, s) }
	if out.addrs, err = b.group(ctx, running, c, replicas); err != nil {
		return subject{}, err
	}
	return out, b.quiet(ctx, s)
}

// front starts a bot that does no due work.
func (b *bench) front(ctx context.Context, running *ends, c config.Config) (addr string, err error) {
	h, stop, err := b.Front(ctx, c, b.environment(), b.log())
	if err != nil {
		return "", err
	}
	running.after(stop)
	return running.serve(ctx, h)
}
