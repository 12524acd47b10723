package slackui_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/memo"
)

// damages makes all memos of a surface impossible to read. It returns how many there are
// that cannot be read.
func (o *workspace) damages(surface string) (damaged func() int) {
	o.t.Helper()
	keys, err := server.Keys(o.t.Context(), o.Store.Prefix()+":{*}:memo:"+surface+":*").Result()
	require.NoError(o.t, err)
	require.NotEmpty(o.t, keys, surface)
	for _, k := range keys {
		require.NoError(o.t, server.HSet(o.t.Context(), k, "d", "damaged").Err())
	}
	return func() (n int) {
		for _, k := range keys {
			if server.HGet(o.t.Context(), k, "d").Val() == "damaged" {
				n++
			}
		}
		return n
	}
}

// What Homes remember can be made again: if it is damaged, Homes are drawn all the same,
// and it is made again as people open them and requests change.
func TestAHomeIsDrawnWhateverIsDamagedOfWhatItRemembers(t *testing.T) {
	for _, surface := range []string{"groups", "visitors", "home", "homes", "user", "group"} {
		t.Run(surface, func(t *testing.T) {
			o := newListWorkspace(t)
			o.atHome("U0BOB")
			first := o.another("n0", 0, call("c1", "look", `{}`, sre))
			o.settles(first)
			damaged := o.damages(surface)
			require.Positive(t, damaged())

			o.rests()
			second := o.another("n1", 0, call("c1", "delete_file", `{}`, sre))
			o.atHome("U0BOB")
			o.settles(first, second)
			o.rests()
			home := o.atHome("U0BOB")
			require.Contains(t, home.Shown(), "Look")
			require.Contains(t, home.Shown(), "Delete file")
			require.Zero(t, damaged())
		})
	}
}

// Which messages show a request is not stored elsewhere. If that is damaged, no second card
// is posted.
func TestADamagedRecordOfMessagesStaysAnError(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	b := o.another("n0", 0, call("c1", "look", `{}`, sre))
	o.drawsAll(b)
	damaged := o.damages("cards")
	require.ErrorIs(t, o.ui.Cards.Reconcile(t.Context(), string(b.ID)), memo.ErrUnreadable)
	require.Positive(t, damaged())
	require.Len(t, o.Calls("chat.postMessage"), 1)
}

// A request that finds no room goes into a new digest if that of its channel, or which one
// that is, is damaged: never into one that is far up in the channel.
func TestADamagedDigestKeepsNoFurtherRequestFromPeople(t *testing.T) {
	for _, surface := range []string{"digest", "digests", "updates"} {
		t.Run(surface, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) { c.CardsPerMinute = 1 })
			listed := o.another("n1", 0, call("c1", "look", `{}`, sre))
			o.drawsAll(o.another("n0", 0, call("c1", "look", `{}`, sre)), listed)
			require.Len(t, o.digests(), 1)
			o.drawsAll(o.another("n2", 0, call("c1", "look", `{}`, sre)))
			damaged := o.damages(surface)

			o.drawsAll(o.another("n3", 0, call("c1", "delete_file", `{}`, sre)))
			digests := o.digests()
			require.Contains(t, digests[len(digests)-1].Shown(), "Delete file")
			if surface != "digest" {
				require.Zero(t, damaged())
				return
			}
			require.Len(t, digests, 2)
			require.ErrorIs(t, o.ui.Cards.Reconcile(t.Context(), string(listed.ID)), memo.ErrUnreadable)
		})
	}
}
