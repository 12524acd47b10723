package slackui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

// separated is a call with separation that people of the quorum sign.
func separated(id string, q ...approvals.Quorum) approvals.Deferral {
	d := call(id, "delete_file", `{"path":"secret.txt"}`, q...)
	d.Ask.Requirement.Separation = true
	return d
}

// opensAfter opens a batch of alice's after these people wrote to the agent.
func (o *workspace) opensAfter(root string, wrote []approvals.UserID, calls ...approvals.Deferral) approvals.Batch {
	o.t.Helper()
	b := o.opens(root, calls...)
	o.moves(b, func(now *approvals.Batch) { now.Participants = wrote })
	return o.batch(b.ID)
}

func TestTheCardNamesThoseWhoAskedToo(t *testing.T) {
	narrow := separated("c2", sre)
	narrow.Ask.Requirement.ParticipantsMaySign = true
	for name, c := range map[string]struct {
		calls []approvals.Deferral
		wrote []approvals.UserID
		want  []string
	}{
		"alice alone": {[]approvals.Deferral{separated("c1", sre)}, nil, []string{"<@U0ALICE> can't approve · digest"}},
		"bob too": {[]approvals.Deferral{separated("c1", sre)}, []approvals.UserID{"U0BOB"}, []string{
			" also wrote to the agent in this thread, so neither ", " can approve it.", "<@U0ALICE> can't approve · <@U0BOB> can't approve",
		}},
		"bob and carol too": {[]approvals.Deferral{separated("c1", sre)}, []approvals.UserID{"U0BOB", "U0CAROL"}, []string{
			" also wrote to the agent in this thread, so none of them can approve it, nor can ", "<@U0BOB> and <@U0CAROL> can't approve",
		}},
		"the rule lets them": {[]approvals.Deferral{narrow}, []approvals.UserID{"U0BOB"}, []string{"<@U0ALICE> can't approve · digest"}},
		"one of the rules does": {[]approvals.Deferral{separated("c1", sre), narrow}, []approvals.UserID{"U0BOB"}, []string{
			" also wrote to the agent in this thread, so neither ", " can approve the calls that say so.",
			"<@U0ALICE> can't approve · <@U0BOB> can't approve", "<@U0ALICE> can't approve · digest",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkspace(t, slacksim.Config{})
			root := o.say("U0ALICE", "clean up")
			o.draw(o.opensAfter(root, c.wrote, c.calls...))
			shown := o.thread("U0DAVE", root)[0].Shown()
			for _, want := range c.want {
				require.Contains(t, shown, want)
			}
			require.Equal(t, strings.Contains(c.want[0], "also wrote"), strings.Contains(shown, "also wrote"))
		})
	}
}

func TestAParticipantReadsWhyTheyCannotApproveAndDenies(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opensAfter(root, []approvals.UserID{"U0BOB"}, separated("c1", sre))
	o.draw(b)
	o.press("U0BOB", o.thread("U0BOB", root)[0], "approve", 0)
	require.Empty(t, o.batch(b.ID).Approvals[0].Decisions)
	said := strings.Join(o.whispers("U0BOB", root), "")
	require.Contains(t, said, "You wrote to the agent in this thread before it made this call, so someone else must approve it. Nothing changed.")
	require.Contains(t, said, "You can still deny it.")
	require.NotContains(t, said, "To stop it", "that is for whoever asked")
}

// Whoever asked reads at once that nobody is left, and what can be done.
func TestWhoeverAskedReadsThatNobodyCanApprove(t *testing.T) {
	bob, both := by("named", fromUser("U0BOB")), by("named", fromUser("U0ALICE", "U0BOB"))
	expiring := separated("c1", bob)
	expiring.Ask.Requirement.Deadline = noon.Add(4 * time.Hour)
	two := sre
	two.Need = 2
	for name, c := range map[string]struct {
		call  approvals.Deferral
		wrote []approvals.UserID
		want  string // nothing: nobody is told
	}{
		"a new thread helps":       {expiring, []approvals.UserID{"U0BOB"}, "start a new thread"},
		"one of two is not enough": {separated("c1", two), []approvals.UserID{"U0BOB"}, "start a new thread"},
		"the next rung helps": {
			laddered(separated("c1", bob), reminds(time.Hour), adds(2*time.Hour, "named", fromGroup("S0SEC"))),
			[]approvals.UserID{"U0BOB"},
			"more people can approve it",
		},
		"only the second rung helps": {
			laddered(separated("c1", bob), adds(time.Hour, "named", fromUser("U0ALICE")), adds(3*time.Hour, "named", fromUser("U0DAVE"))),
			[]approvals.UserID{"U0BOB"},
			"more people can approve it",
		},
		"nobody else is asked": {separated("c1", by("named", fromUser("U0ALICE"))), []approvals.UserID{"U0BOB"}, "someone else must ask"},
		"somebody is left":     {separated("c1", sre), []approvals.UserID{"U0BOB"}, ""},
		"nobody took part":     {separated("c1", both), nil, ""},
		"no separation":        {call("c1", "delete_file", `{}`, bob), []approvals.UserID{"U0BOB"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := atNoon(t, slacksim.Config{})
			root := o.say("U0ALICE", "clean up")
			b := o.opensAfter(root, c.wrote, c.call)
			o.draw(b)
			o.notify(b)
			o.notify(b)
			if c.want == "" {
				require.Empty(t, o.Calls("conversations.open"))
				return
			}
			got := o.letters("U0ALICE")
			require.Len(t, got, 1)
			require.Contains(t, got[0], "Nobody can approve 1 call that you asked for")
			require.Contains(t, got[0], c.want)
			require.Contains(t, got[0], `Delete file (path: "secret.txt")`)
			require.Empty(t, o.letters("U0BOB"))
			switch name {
			case "a new thread helps":
				kept(t, "notice_nobody.json", o.sent())
			case "the next rung helps":
				kept(t, "notice_nobody_yet.json", o.sent())
			}
		})
	}
}

// An edit can leave nobody too.
func TestWhoeverAskedReadsThatAnEditLeavesNobody(t *testing.T) {
	o := atNoon(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	b := o.opensAfter(root, []approvals.UserID{"U0BOB"}, separated("c1", sre))
	o.draw(b)
	o.notify(b)
	require.Empty(t, o.letters("U0ALICE"))
	o.moves(b, func(now *approvals.Batch) {
		next, _, err := now.Apply(approvals.Amend{
			Call: "c1", From: now.Approvals[0].Call.Digest, Args: []byte(`{"path":"b"}`), Ruling: approvals.Permit{},
			By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}}, At: o.now.Now(),
		})
		require.NoError(t, err)
		next.Version = now.Version
		*now = next
	})
	o.notify(b)
	require.Len(t, o.letters("U0ALICE"), 1)
}
