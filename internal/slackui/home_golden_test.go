package slackui_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// asKept compares a view with its golden file. Slack took it: the simulator
// refuses what Slack refuses.
func asKept(t *testing.T, name string, v slacksim.View) {
	t.Helper()
	raw, err := json.Marshal(v.Blocks)
	require.NoError(t, err)
	var blocks any
	require.NoError(t, json.Unmarshal(raw, &blocks))
	kept(t, name+".json", bare(blocks))
}

// busy is a workspace at noon with something in every part of bob's Home.
func busy(t *testing.T) *workspace {
	t.Helper()
	o := atNoon(t, slacksim.Config{}, inLists)
	hostile := "delete_file\u202e<!channel> *b*"
	two := approvals.Quorum{Name: "sre <@U0DAVE>", Need: 2, From: sre.From}
	o.another("one", -time.Hour, until(call("c1", "delete_file", `{"path":"a.txt"}`, sre), noon.Add(3*time.Hour), true))
	o.another("two", -2*time.Hour, call("c1", "read_file", `{}`, sre), call("c2", "read_file", `{"n":2}`, sre), call("c3", hostile, `{}`, two))
	half := o.another("half", -3*time.Hour, call("c1", "delete_file", `{"path":"b.txt"}`, two))
	over := o.another("over", -4*time.Hour, call("c1", "delete_file", `{"path":"c.txt"}`, sre))
	for _, b := range []approvals.Batch{half, over} {
		o.approvesAs("U0BOB", b)
		require.NoError(t, o.stirs(b))
	}
	o.command("U0BOB", "away for 3 days, ask <@U0CAROL>")
	o.command("U0DAVE", "away for 2 days, ask <@U0BOB>")
	return o
}

func TestHomesAreAsKept(t *testing.T) {
	o := busy(t)
	asKept(t, "home_busy", o.atHome("U0BOB"))
	asKept(t, "home_empty", o.atHome("U0DAVE"))
	asKept(t, "home_requester", o.atHome("U0ALICE"))
	for i := range 40 {
		o.another("more"+string(rune('a'+i%26))+string(rune('a'+i/26)), time.Duration(i-60)*time.Minute, call("c1", "delete_file", `{}`, sre))
	}
	o.pass(3 * time.Second)
	home := o.atHome("U0BOB")
	o.uses("U0BOB", home, "Less urgent")
	home, _ = o.Home("U0BOB")
	asKept(t, "home_second_page", home)
}

func TestReviewsAreAsKept(t *testing.T) {
	o := busy(t)
	o.uses("U0BOB", o.atHome("U0BOB"), "Review")
	asKept(t, "review_open", o.top("U0BOB"))
	review := o.top("U0BOB")
	o.uses("U0BOB", review, "Approve")
	asKept(t, "review_decided", o.top("U0BOB"))
	o.uses("U0BOB", o.top("U0BOB"), "Next waiting for you")
	asKept(t, "review_several", o.top("U0BOB"))
	o.approvesAs("U0CAROL", o.batch("batch-07-two"))
	o.uses("U0BOB", o.top("U0BOB"), "Approve")
	asKept(t, "review_refused", o.top("U0BOB"))
	o.leaves()
	o.another("big", 0, many(20, `{"path":"a.txt"}`)...)
	o.lends("U0BOB", "batch-07-big")
	asKept(t, "review_large", o.top("U0BOB"))
	o.leaves()
	root := o.say("U0ALICE", "nothing here")
	o.reviewsHere(root)
	asKept(t, "review_nothing", o.top("U0BOB"))
}

func TestADirectCopyIsAsKept(t *testing.T) {
	o := atNoon(t, slacksim.Config{}, inLists)
	b := o.opens(o.say("U0ALICE", "clean up"), directCall(sre))
	o.draw(b)
	raw, err := json.Marshal(o.directs("U0BOB")[0].Blocks)
	require.NoError(t, err)
	var blocks []any
	require.NoError(t, json.Unmarshal(raw, &blocks))
	kept(t, "card_direct_message.json", bare(any(blocks[:1])))
}

// inLists gives a workspace lists, and tools that are known.
func inLists(c *slackui.Config) {
	c.Lists, _ = c.Memos.(*testStore)
	c.Tools = knownTools
}
