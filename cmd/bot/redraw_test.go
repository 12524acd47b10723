package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// An older copy of Redis has a request that waits, and its card shows the decision that
// the copy does not have. An operator has it drawn anew, and people can decide there.
func TestAfterAnOlderCopyWasRestoredCardsAreDrawnAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	card := w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "2023-q2-sales.txt", "delete_file"))
	waits := len(card.buttons("2023-q1"))
	require.NotZero(t, waits)
	statetest.Await(t, "the card is drawn completely", func() bool {
		return dueWork(t, w.redis)[state.Cards] == 0
	})
	copied := w.copied()
	w.sim.approves(root)
	w.sim.await(bob, root, "the answer", says("reports/2023-q2-sales.txt: deleted"))
	first.kill()

	require.NoError(t, w.redis.FlushAll(t.Context()).Err())
	for key, value := range copied {
		require.NoError(t, w.redis.Restore(t.Context(), key, 0, value).Err())
	}
	w.start()
	shown := func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) == waits }
	for _, m := range w.sim.thread(bob, root) {
		require.False(t, shown(m), "it is not noticed by itself")
	}
	out, err := w.admin("redraw")
	require.NoError(t, err)
	require.Equal(t, "1 request will be redrawn\n", out)
	card = w.sim.await(bob, root, "the card with its buttons", shown)
	require.Empty(t, w.sim.click(bob, card, "2023-q1", "Approve").VisibleError)
	w.sim.await(bob, root, "the decision", func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) < waits })

	_, err = w.admin("redraw", "batch-01-x")
	require.ErrorContains(t, err, `batch "batch-01-x": not found: bot admin list shows`)
}

// An operator has one request redrawn, or all, and a program reads how many.
func TestAnOperatorHasOneRequestRedrawn(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	const card = "Delete a.txt"
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"redraw", string(f.id)}, "1 request will be redrawn\n"},
		{[]string{"redraw", string(f.id), "--json"}, "{\n  \"redrawn\": 1\n}\n"},
		{[]string{"redraw", "--json"}, "{\n  \"redrawn\": 1\n}\n"},
	} {
		f.covers(card)
		require.False(t, f.reads(alice, ops, f.root, card), "it is not noticed by itself")
		require.Equal(t, c.says, f.admin(c.args...))
		f.sees("the card again", func() bool { return f.reads(alice, ops, f.root, card) })
	}
}

// covers has Slack show something else in the message with these words than what was
// drawn, once nothing is to be drawn any more.
func (f *follower) covers(words string) {
	f.t.Helper()
	statetest.Await(f.t, "the card is drawn completely", func() bool {
		return f.left()[state.Cards] == 0
	})
	messages, err := f.slack.Messages(alice, ops, f.root)
	require.NoError(f.t, err)
	i := slices.IndexFunc(messages, func(m slacksim.Message) bool { return strings.Contains(m.Shown(), words) })
	require.NotEqual(f.t, -1, i)
	api := slack.New(f.slack.BotToken(), slack.OptionAPIURL(f.env["SLACK_API_URL"]))
	_, _, _, err = api.UpdateMessageContext(f.t.Context(), ops, messages[i].TS, slack.MsgOptionText("Approved", false),
		slack.MsgOptionBlocks(slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "Approved", false, false))))
	require.NoError(f.t, err)
}

// copied is everything in Redis.
func (w *world) copied() map[string]string {
	w.t.Helper()
	keys, err := w.redis.Keys(w.t.Context(), "*").Result()
	require.NoError(w.t, err)
	all := make(map[string]string)
	for _, k := range keys {
		value, err := w.redis.Dump(w.t.Context(), k).Result()
		if !errors.Is(err, redis.Nil) { // it has expired
			require.NoError(w.t, err)
			all[k] = value
		}
	}
	return all
}
