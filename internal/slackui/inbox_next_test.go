package slackui_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// pair is a quorum that needs two of the group.
func pair() approvals.Quorum {
	two := sre
	two.Need = 2
	return two
}

// signed stores so many batches, opened a second after each other, that bob has
// signed and that wait for somebody else.
func (o *workspace) signed(from time.Duration, n int) {
	o.t.Helper()
	for i := range n {
		name := fmt.Sprintf("signed-%05d", i)
		b, _, err := approvals.Open(approvals.Batch{
			ID: approvals.BatchID("batch-07-" + name), Run: approvals.RunID("run-07-" + name), Thread: "thread-07-" + name, Channel: "C0GENERAL",
			Agent: "ops", Requester: "U0ALICE", OpenedAt: o.now.Now().Add(from + time.Duration(i)*time.Second),
		}, []approvals.Deferral{call("c1", "delete_file", `{}`, pair())}, nil)
		require.NoError(o.t, err)
		b, _, err = b.Apply(approvals.Decide{Decision: approvals.Decision{
			Call: "c1", Verdict: approvals.Approve, Digest: b.Approvals[0].Call.Digest, At: o.now.Now(),
			By: approvals.Principal{User: "U0BOB", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: o.now.Now()},
		}})
		require.NoError(o.t, err)
		o.setBatch(b)
	}
}

func TestNextFindsWhatLiesBehindAllThatIsSigned(t *testing.T) {
	o := newListWorkspace(t)
	first := o.another("first", -3*time.Hour, call("c1", "tool_first", `{}`, pair()))
	o.signed(-2*time.Hour, 450)
	o.another("second", -time.Hour, call("c1", "tool_second", `{}`, pair()))
	o.another("third", -time.Minute, call("c1", "tool_third", `{}`, pair()))
	require.NoError(t, o.stirs(first))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	for _, want := range []string{"tool_first", "tool_second", "tool_third", "tool_first"} {
		require.Contains(t, plainWords(o.top("U0BOB")), want+" without arguments")
		o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	}
}

func TestNextSaysHowFarItHasLooked(t *testing.T) {
	o := newListWorkspace(t)
	first := o.another("first", -3*time.Hour, call("c1", "tool_first", `{}`, pair()))
	o.signed(-2*time.Hour, 4000)
	o.another("second", 0, call("c1", "tool_second", `{}`, pair()))
	require.NoError(t, o.stirs(first))
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	require.Contains(t, plainWords(o.top("U0BOB")), "Nothing else waits for you among the 4,000 oldest requests. Newer ones weren't checked.")
}

// Nothing is said of what was not read.
func TestWhatIsBehindAllThatIsSignedIsNotDenied(t *testing.T) {
	o := newListWorkspace(t)
	o.signed(-2*time.Hour, 1001)
	require.NoError(t, o.stirs(o.another("fresh", 0, call("c1", "tool_fresh", `{}`, pair()))))

	home := o.atHome("U0BOB")
	require.Contains(t, plainWords(home), "None of the requests checked so far waits for your approval. There are more.")
	require.NotContains(t, plainWords(home), "Nothing waits for you")
	require.NotContains(t, plainWords(home), "0 to 0")
	o.uses("U0BOB", home, "Next requests")
	home, _ = o.Home("U0BOB")
	require.Contains(t, plainWords(home), "Tool fresh")

	said := o.slash("U0BOB", "list mine")
	require.Contains(t, said, "No call is waiting for you among the 600 requests checked so far, but there are more")
	require.NotContains(t, said, "1 to 0")
}

// brokenLists answer until err is set.
type brokenLists struct {
	lists
	err *error
}

func (b brokenLists) Inbox(ctx context.Context, keys []approvals.ListKey, after approvals.Cursor, limit int) ([]approvals.Batch, approvals.Cursor, error) {
	if *b.err != nil {
		return nil, "", *b.err
	}
	return b.lists.Inbox(ctx, keys, after, limit)
}

func TestNextDoesNotTakeAFailureForNothing(t *testing.T) {
	var broken error
	o := newWorkspace(t, slacksim.Config{}, inLists, func(c *slackui.Config) { c.Lists = brokenLists{c.Lists, &broken} })
	for _, name := range []string{"one", "two"} {
		require.NoError(t, o.stirs(o.another(name, 0, call("c1", "tool_"+name, `{}`, sre))))
	}
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	broken = errors.New("the store is away")
	o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	require.Contains(t, plainWords(o.top("U0BOB")), "Countersign couldn't look up what waits for you.")
	require.NotContains(t, plainWords(o.top("U0BOB")), "Nothing else")
}
