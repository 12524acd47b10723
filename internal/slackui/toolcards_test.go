package slackui_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/toolcards"
)

const changesID = "mcp-07-abc"

// changes are reviews with one server, and what people decided.
type changes struct {
	review  toolcards.Review
	err     error
	decided []approvals.Principal
	drawn   int64
}

func (c *changes) Review(context.Context, string) (toolcards.Review, error) { return c.review, nil }

func (c *changes) Decide(_ context.Context, _, digest string, _ bool, by approvals.Principal) (toolcards.Review, error) {
	if c.err == nil && digest == c.review.Digest {
		c.decided = append(c.decided, by)
	}
	return c.review, c.err
}

func (c *changes) Drawn(_ context.Context, _ string, version int64) error {
	c.drawn = version
	return nil
}

// newChanges is a workspace in which the server of the agent has changed these tools.
func newChanges(t *testing.T, tools ...toolcards.Tool) (*workspace, *changes) {
	t.Helper()
	return newChangesOver(t, nil, tools...)
}

// newChangesOver is newChanges over a way to Slack.
func newChangesOver(t *testing.T, way http.RoundTripper, tools ...toolcards.Tool) (*workspace, *changes) {
	t.Helper()
	c := &changes{review: toolcards.Review{ID: changesID, Version: 3, Agent: "ops", Server: "bank", Digest: "sha256:ab", Tools: tools}}
	o := newWorkspace(t, slacksim.Config{}, func(cfg *slackui.Config) {
		cfg.ToolReviews, cfg.Transport = c, way
		cfg.Owners = map[string]approvals.From{"ops": {Users: []approvals.UserID{"U0DAVE", "U0GUEST"}, Groups: []approvals.GroupID{"S0SRE"}}}
		cfg.ToolChannels = map[string]string{"ops": "C0OPS"}
	})
	return o, c
}

// drawTools draws the card and returns the messages of the channel.
func (o *workspace) drawTools() []slacksim.Message {
	o.t.Helper()
	require.NoError(o.t, o.ui.ToolCards.Reconcile(o.t.Context(), changesID))
	all, err := o.Messages("U0BOB", "C0OPS", "")
	require.NoError(o.t, err)
	return all
}

func changedTool(diff string) toolcards.Tool {
	return toolcards.Tool{Name: "pay", Kind: toolcards.Changed, Diff: diff, Digest: "sha256:cd"}
}

func (o *workspace) pressTools(user string, m slacksim.Message, action string) slacksim.ClickOutcome {
	o.t.Helper()
	r, err := o.Click(slacksim.Click{User: user, Channel: "C0OPS", TS: m.TS, ActionID: action, Confirmed: true})
	require.NoError(o.t, err)
	require.NoError(o.t, o.Idle(o.t.Context()))
	return r
}

func accepts(m slacksim.Message) bool {
	return strings.Contains(fmt.Sprint(m.Blocks), "countersign.tools_accept")
}

// tellsBob waits until Bob sees the words in #ops.
func (o *workspace) tellsBob(words string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	require.NoError(o.t, o.Await(ctx, func() bool {
		all, err := o.Messages("U0BOB", "C0OPS", "")
		return err == nil && slices.ContainsFunc(all, func(m slacksim.Message) bool { return strings.Contains(m.Text, words) })
	}), words)
}

// Every difference that a card shows is whole, and within the limits of Slack.
func TestACardOfChangedToolsShowsAllOrCannotAccept(t *testing.T) {
	several := make([]toolcards.Tool, 21)
	for i := range several {
		several[i] = toolcards.Tool{Name: fmt.Sprint("t", i), Kind: toolcards.New, Diff: "+{}", Digest: "sha256:cd"}
	}
	for name, c := range map[string]struct {
		tools  []toolcards.Tool
		accept bool
	}{
		"short":              {[]toolcards.Tool{changedTool("-a\n+b\n")}, true},
		"as long as it fits": {[]toolcards.Tool{changedTool(strings.Repeat("x", 9000))}, true},
		"too long":           {[]toolcards.Tool{changedTool(strings.Repeat("x", 9001))}, false},
		// Marked, each invisible character is longer than it is.
		"too long when it can be seen": {[]toolcards.Tool{changedTool(strings.Repeat("a\u200b", 2000))}, false},
		"many short ones":              {several[:20], true},
		"too many":                     {several, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, changed := newChanges(t, c.tools...)
			all := o.drawTools()
			require.Len(t, all, 1)
			require.Equal(t, c.accept, accepts(all[0]))
			require.Contains(t, all[0].Shown(), "Keep blocked")
			require.Equal(t, !c.accept, strings.Contains(all[0].Shown(), "too long for a message"))
			require.EqualValues(t, 3, changed.drawn)
		})
	}
	o, changed := newChanges(t, changedTool("-a"))
	changed.review.Partial = true
	require.False(t, accepts(o.drawTools()[0]))
}

// What a server says is text: it mentions nobody, links nowhere and hides nothing.
func TestACardOfChangedToolsIsNotWrittenByTheServer(t *testing.T) {
	hostile := "+ <!channel> <@U0BOB> *bold* <https://evil.example|Accept> \u202ebackwards\u200b"
	o, _ := newChanges(t, toolcards.Tool{Name: "pay\u202e<!here>", Kind: toolcards.New, Diff: hostile},
		toolcards.Tool{Name: "x", Kind: toolcards.Unusable, Why: "<!channel>\u200b"})
	m := o.drawTools()[0]
	require.NotContains(t, m.Text, "<!")
	for _, shown := range []string{"⟦U+202E⟧", "⟦U+200B⟧", "<!channel>", "<https://evil.example|Accept>"} {
		require.Contains(t, m.Shown(), shown)
	}
	raw := fmt.Sprint(m.Blocks)
	require.NotContains(t, raw, "link")
	require.NotContains(t, raw, "broadcast")
}

// The person who presses is looked up as one who approves is.
func TestWhoDecidesAboutToolsIsLookedUp(t *testing.T) {
	o, c := newChanges(t, changedTool("-a"))
	m := o.drawTools()[0]
	const accept = "countersign.tools_accept.0"
	o.pressTools("U0BOB", m, accept)
	require.Len(t, c.decided, 1)
	require.Equal(t, []approvals.GroupID{"S0SRE"}, c.decided[0].Groups)
	require.WithinDuration(t, o.now.Now(), c.decided[0].GroupsAt, time.Minute)
	o.pressTools("U0DAVE", m, accept) // named, in no group
	require.Len(t, c.decided, 2)
	require.Empty(t, c.decided[1].Groups)

	// Slack does not say who is in the group: nothing is decided.
	o.now.Advance(2 * time.Minute)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	o.pressTools("U0BOB", m, accept)
	require.Len(t, c.decided, 2)
	o.tellsBob("Try again")
}

func TestWhoDoesNotDecideAboutToolsIsToldWhy(t *testing.T) {
	o, c := newChanges(t, changedTool("-a"))
	m := o.drawTools()[0]
	c.review.By, c.review.At = "U0CAROL", o.now.Now()
	for _, x := range []struct {
		err   error
		ended toolcards.Ending
		says  string
	}{
		{approvals.ErrNotEligible, "", "Only the owners of this agent can decide this. Nothing changed."},
		{approvals.ErrSettled, toolcards.Accepted, "Already accepted by <@U0CAROL>"},
		{approvals.ErrSettled, toolcards.Blocked, "Already kept blocked by <@U0CAROL>"},
		{approvals.ErrStale, "", "has changed its tools since this card was shown"},
		{approvals.ErrRefused, "", "in the lock file"},
		{approvals.ErrInvalid, "", "doesn't fit these tools"},
		{approvals.ErrConflict, "", "Try again"},
		{approvals.ErrNotFound, "", "no longer in use"},
	} {
		c.err, c.review.Ended = x.err, x.ended
		require.Empty(t, o.pressTools("U0BOB", m, "countersign.tools_block.1").VisibleError)
		o.tellsBob(x.says)
	}
	c.err = fmt.Errorf("no connection")
	require.NotEmpty(t, o.pressTools("U0BOB", m, "countersign.tools_block.1").VisibleError, "it is not known whether it counts")
}

// A server has one card while it is asked about. One that ended stays as a record.
func TestAServerHasOneCard(t *testing.T) {
	o, c := newChanges(t, changedTool("-a"))
	first := o.drawTools()[0]
	c.review.Digest, c.review.Tools = "sha256:ef", []toolcards.Tool{changedTool("-b")}
	all := o.drawTools()
	require.Len(t, all, 1)
	require.Equal(t, first.TS, all[0].TS)
	require.Contains(t, all[0].Shown(), "-b")
	c.review.Ended, c.review.By, c.review.At = toolcards.Accepted, "U0BOB", o.now.Now()
	all = o.drawTools()
	require.Len(t, all, 1)
	require.False(t, accepts(all[0]))
	c.review.Ended, c.review.Digest = "", "sha256:01"
	all = o.drawTools()
	require.Len(t, all, 2)
	require.Contains(t, all[0].Shown(), "Accepted by")
	c.review.Ended = toolcards.Reverted
	require.Contains(t, o.drawTools()[1].Shown(), "nothing to decide")
	require.Len(t, o.drawTools(), 2)
}
