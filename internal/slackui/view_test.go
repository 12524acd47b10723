package slackui_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
)

func TestViewFullShowsEverythingPageByPage(t *testing.T) {
	o, root, b := one(t, call("c1", "write_file", `{"path":"a.txt","content":"`+strings.Repeat("x", 65_000)+`FINISH","mode":"w"}`, sre))
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0DAVE", o.card("U0DAVE", root), "view", 0))
	top := func() slacksim.View {
		t.Helper()
		views := o.Views("U0DAVE")
		require.Len(t, views, 1)
		return views[0]
	}
	text := words(top().Blocks)
	require.Contains(t, text, "Page 1 of 3.")
	require.Contains(t, text, b.Approvals[0].Call.Digest.String())
	require.NotContains(t, text, "FINISH")
	for _, page := range []string{"1", "2"} {
		out, err := o.Click(slacksim.Click{User: "U0DAVE", ViewID: top().ID, ActionID: "countersign.page." + page})
		require.NoError(t, err)
		require.Equal(t, 200, out.Status)
	}
	text = words(top().Blocks)
	require.Contains(t, text, "Page 3 of 3.")
	require.Contains(t, text, "FINISH")
	require.Contains(t, text, `mode: "w"`)
	require.Empty(t, o.whispers("U0DAVE", root))
}

func TestViewFullHidesWhatPeopleMustNotRead(t *testing.T) {
	secret := call("c1", "create_user", `{"name":"ann","password":"hunter2"}`, sre)
	secret.WriteOnly = []string{"/password"}
	o, root, _ := one(t, secret)
	o.press("U0BOB", o.card("U0BOB", root), "view", 0)
	require.Contains(t, words(o.Views("U0BOB")[0].Blocks), "password: (hidden, 7 characters)")
	for _, entry := range o.Log() {
		require.NotContains(t, entry.Request, "hunter2")
		require.NotContains(t, entry.Response, "hunter2")
	}
}

func TestViewFullIsForMembersOnly(t *testing.T) {
	people := slacksim.DefaultPeople()
	for i := range people {
		people[i].Guest = people[i].Guest || people[i].ID == "U0DAVE"
	}
	o := newWorkspace(t, slacksim.Config{People: people})
	root := o.say("U0ALICE", "clean up")
	o.draw(o.opens(root, call("c1", "x", `{"a":1}`, sre)))
	o.press("U0DAVE", o.card("U0DAVE", root), "view", 0)
	require.Empty(t, o.Views("U0DAVE"))
	require.Contains(t, strings.Join(o.whispers("U0DAVE", root), ""), "Guests")
}

func TestAFormThatComesTooLateIsExplained(t *testing.T) {
	o, root, b := one(t)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "views.open", Error: "expired_trigger_id"}}})
	require.Equal(t, 200, o.press("U0BOB", o.card("U0BOB", root), "deny", 0).Status)
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "Press the button again")
	require.Equal(t, approvals.Pending, o.status(b, 0))
}

// A person whose form is open, or opens at the second attempt, reads nothing about it.
func TestAFormIsOpenedOnceThoughSlackDoesNotAnswer(t *testing.T) {
	for name, fault := range map[string]slacksim.Fault{
		"it is open":     {Method: "views.open", LostReply: true},
		"it is not open": {Method: "views.open", Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, _ := one(t)
			o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{fault}})
			require.Equal(t, slacksim.ClickOutcome{Status: 200}, o.press("U0BOB", o.card("U0BOB", root), "deny", 0))
			require.Empty(t, o.whispers("U0BOB", root))
			require.Len(t, o.Views("U0BOB"), 1)
		})
	}
}

func TestNobodyIsAskedForAReasonThatWouldNotCount(t *testing.T) {
	o, root, _ := one(t)
	o.press("U0DAVE", o.card("U0DAVE", root), "deny", 0)
	require.Empty(t, o.Views("U0DAVE"))
	require.Contains(t, strings.Join(o.whispers("U0DAVE", root), ""), "You can't deny this")
}

func (o *workspace) command(user, text string) string {
	o.t.Helper()
	out, err := o.Command(slacksim.Command{User: user, Channel: "C0OPS", Command: "/countersign", Text: text})
	require.NoError(o.t, err)
	require.Equal(o.t, 200, out.Status)
	require.NotNil(o.t, out.Message, out.VisibleError)
	require.True(o.t, out.Message.Ephemeral)
	return out.Message.Shown()
}

func TestTheListNamesWhatWaits(t *testing.T) {
	o := newListWorkspace(t)
	require.Contains(t, o.command("U0BOB", "list"), "Nothing waits")
	root := o.say("U0ALICE", "clean up")
	b := o.opens(root, many(12, `{}`)...)
	require.NoError(t, o.stirs(b))
	require.Contains(t, o.command("U0BOB", "list"), "Review", "without a card it is read in a form")
	o.draw(b)
	said := o.command("U0BOB", "list")
	require.Contains(t, said, "Calls 1 to 10 of those waiting, the oldest first")
	require.Contains(t, said, b.Approvals[0].Call.Digest.String()[:6])
	require.Contains(t, said, "waits for you")
	require.Contains(t, said, "Show the next")
	require.Contains(t, said, "Open the card")
	require.NotContains(t, said, "Review")
	require.NotContains(t, o.command("U0DAVE", "list"), "waits for you")

	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "users.info", Status: 500}}})
	require.Contains(t, o.command("U0CAROL", "list"), "didn't say which groups")
}

func TestHelpSaysWhatWasWrong(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	require.Contains(t, o.command("U0BOB", ""), "/countersign list")
	require.Contains(t, o.command("U0BOB", "help"), "/countersign list")
	said := o.command("U0BOB", "<!channel> *all*")
	require.Contains(t, said, "There is no command")
	require.Contains(t, said, "/countersign list")
	require.Contains(t, o.command("U0BOB", "list everything"), "There is no list")
}

// TestViewFullIsForThoseWhomItConcerns: a page of arguments is asked for anew,
// and whoever has left the channel and cannot sign does not get it.
func TestViewFullIsForThoseWhomItConcerns(t *testing.T) {
	o, root, _ := one(t, call("c1", "write_file", `{"content":"`+strings.Repeat("x", 65_000)+`FINISH"}`, sre))
	o.press("U0DAVE", o.card("U0DAVE", root), "view", 0)
	o.press("U0BOB", o.card("U0BOB", root), "view", 0)
	require.NoError(t, o.Leave("U0DAVE", "C0OPS"))
	require.NoError(t, o.Leave("U0BOB", "C0OPS"))
	o.now.Advance(2 * time.Minute)
	for _, user := range []string{"U0DAVE", "U0BOB"} {
		out, err := o.Click(slacksim.Click{User: user, ViewID: o.Views(user)[0].ID, ActionID: "countersign.page.1"})
		require.NoError(t, err)
		require.Equal(t, 200, out.Status)
	}
	require.Contains(t, words(o.Views("U0DAVE")[0].Blocks), "You can't read this request")
	require.NotContains(t, words(o.Views("U0DAVE")[0].Blocks), "xxx")
	require.Contains(t, words(o.Views("U0BOB")[0].Blocks), "xxx", "who can sign may look from anywhere")
}

// TestViewFullShowsWhatWouldChange: the content of a preview is for those who
// may read the arguments, and the card itself shows none of it.
func TestViewFullShowsWhatWouldChange(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{})
	root := o.say("U0ALICE", "clean up")
	diff := "-the old line\n+the new line \u202e\n"
	digest := approvals.PreviewDigest("batch-07-one", "c1", diff)
	d := call("c1", "write_file", `{"path":"a.txt"}`, sre)
	d.Preview = approvals.Preview{Status: approvals.PreviewMade, CheckedAt: o.now.Now(), Content: approvals.Content{Digest: digest, Size: len(diff), Left: 7}}
	b := o.opens(root, d)
	stored, next := o.batch(b.ID), o.batch(b.ID)
	next.Version++
	require.NoError(t, o.CommitBatch(t.Context(), approvals.BatchCommit{
		Request: "the preview", Before: stored, Batch: next, Args: map[approvals.Digest]json.RawMessage{digest: json.RawMessage(diff)},
	}))
	o.draw(b)
	shown := plainWords(o.card("U0BOB", root))
	require.Contains(t, shown, "View full shows the change.")
	require.NotContains(t, shown, "the new line")
	o.press("U0BOB", o.card("U0BOB", root), "view", 0)
	text := words(o.Views("U0BOB")[0].Blocks)
	for _, want := range []string{"What would change", "-the old line\n+the new line ⟦U+202E⟧", "7 bytes left out", `path: "a.txt"`} {
		require.Contains(t, text, want)
	}
	require.NoError(t, o.Leave("U0DAVE", "C0OPS"))
	o.now.Advance(2 * time.Minute)
	require.Equal(t, 200, o.deliver(pressed("U0DAVE", "1.2.a", "view.0", button(b, 0))))
	require.Empty(t, o.Views("U0DAVE"), "who may not read the arguments may not read it either")
}
