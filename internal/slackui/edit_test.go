package slackui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// toolbox is what the agents' tools declare, by name.
type toolbox map[string]agentrun.Spec

func (t toolbox) ToolSpec(_, name string) (agentrun.Spec, bool) {
	s, ok := t[name]
	return s, ok
}

const fileSchema = `{"type":"object","required":["path","size"],"properties":{
	"path":{"type":"string","description":"What is deleted"},"size":{"type":"integer"},"force":{"type":"boolean"},"token":{"type":"string"}}}`

const fileArgs = `{"path": "a.txt","size":9007199254740993, "token":"hunter2"}`

// rulings is a policy that keeps what a call needs, unless it refuses.
type rulings struct {
	approvals.Policy
	ruling approvals.Ruling
}

func (r rulings) Rule(context.Context, approvals.Proposal) (approvals.Ruling, error) {
	if r.ruling != nil {
		return r.ruling, nil
	}
	return approvals.Permit{}, nil
}

// rewrite is a workspace in which delete_file can be edited.
func rewrite(t *testing.T, p rulings, check approvals.Check, d approvals.Deferral) (o *workspace, root string, b approvals.Batch) {
	t.Helper()
	if check == nil {
		check = func(context.Context, approvals.Batch, approvals.ToolCall) error { return nil }
	}
	o = newWorkspace(t, slacksim.Config{}, func(c *slackui.Config) {
		c.Desk = approvals.NewDesk(c.Memos.(*testStore), p, check, c.Now)
		c.Tools = toolbox{"delete_file": {Name: "delete_file", Schema: json.RawMessage(fileSchema), WriteOnly: []string{"/token"}}}
	})
	root = o.say("U0ALICE", "clean up")
	b = o.opens(root, d)
	o.draw(b)
	return o, root, b
}

func deletion(q ...approvals.Quorum) approvals.Deferral {
	d := call("c1", "delete_file", fileArgs, q...)
	d.WriteOnly = []string{"/token"}
	return d
}

// edit opens the form of the first call.
func (o *workspace) edit(user, root string) slacksim.View {
	o.t.Helper()
	require.Equal(o.t, slacksim.ClickOutcome{Status: 200}, o.press(user, o.card(user, root), "edit", 0))
	views := o.Views(user)
	require.Len(o.t, views, 1)
	return views[0]
}

// under returns the block_id of the input with this label.
func under(t *testing.T, v slacksim.View, label string) string {
	t.Helper()
	for _, raw := range v.Blocks {
		b, _ := raw.(map[string]any)
		l, _ := b["label"].(map[string]any)
		if l["text"] == label {
			return b["block_id"].(string)
		}
	}
	t.Fatalf("no input %q in %s", label, v.Shown())
	return ""
}

// sends fills the form in, by label, and sends it.
func (o *workspace) sends(user string, v slacksim.View, typed map[string]string) slacksim.SubmitOutcome {
	o.t.Helper()
	values := map[string]map[string]any{}
	for label, text := range typed {
		action := "value"
		switch label {
		case "Your approval":
			action = "too"
		case "Why do you approve it?":
			action = "text"
		}
		values[under(o.t, v, label)] = map[string]any{action: text}
	}
	out, err := o.SubmitView(slacksim.Submit{User: user, ViewID: v.ID, Values: values})
	require.NoError(o.t, err)
	return out
}

// args are the current arguments of the first call.
func (o *workspace) argsOf(b approvals.Batch) string {
	return string(o.args(b.ID, o.batch(b.ID).Approvals[0].Call.Digest))
}

// hasArgs compares the bytes: what means the same is not the same.
func (o *workspace) hasArgs(b approvals.Batch, want string) {
	o.t.Helper()
	require.Equal(o.t, want, o.argsOf(b))
}

func only(name string, users ...approvals.UserID) approvals.Quorum {
	return approvals.Quorum{Name: name, Need: 1, From: approvals.From{Users: users}}
}

// Three have to sign. After the first has, the one who asked corrects the
// path: what was signed counts no more, and all three sign what really runs.
func TestAnEditInTheMiddleOfASignOff(t *testing.T) {
	manager := only("manager", "U0CAROL")
	manager.Stage = 2
	o, root, b := rewrite(t, rulings{}, nil, deletion(only("operations", "U0BOB"), only("legal", "U0DAVE"), manager))
	shows := func(words ...string) {
		t.Helper()
		o.draw(b)
		for _, w := range words {
			require.Contains(t, plainWords(o.card("U0ALICE", root)), w)
		}
	}
	shows("operations: 0 of 1 approval, from U0BOB", "manager: 0 of 1 approval, from U0CAROL, asked once operations and legal have approved")
	o.press("U0BOB", o.card("U0BOB", root), "approve", 0)
	shows("operations: 1 of 1 approval by U0BOB, complete", "asked once legal has approved")

	view := o.edit("U0ALICE", root)
	require.Contains(t, view.Shown(), "no longer count.")
	require.NotContains(t, fmt.Sprint(view), "hunter2")
	out := o.sends("U0ALICE", view, map[string]string{"path": "b.txt"})
	require.False(t, out.Closed)
	require.Contains(t, plainWords(*out.View), "What U0BOB decided was about the old ones and no longer counts")
	require.Contains(t, out.View.Shown(), `path: "a.txt" → "b.txt"`)
	require.Contains(t, plainWords(*out.View), "operations: 0 of 1 approval")
	o.hasArgs(b, strings.Replace(fileArgs, "a.txt", "b.txt", 1))

	old := o.card("U0BOB", root)
	o.press("U0BOB", old, "approve", 0)
	require.Contains(t, strings.Join(o.whispers("U0BOB", root), ""), "edited the arguments", "nobody signs what they did not see")
	shows("U0ALICE changed the arguments", `"b.txt"`, "U0ALICE> edited it and can't approve", "operations: 0 of 1")
	for _, user := range []string{"U0CAROL", "U0DAVE", "U0BOB"} {
		require.Equal(t, 200, o.press(user, o.card(user, root), "approve", 0).Status)
		o.draw(b)
	}
	require.Equal(t, approvals.Approved, o.status(b, 0))
	shows("Approved by U0CAROL, U0DAVE, U0BOB", `"b.txt"`)
	results, err := o.batch(b.ID).Results(map[approvals.ToolCallID]json.RawMessage{"c1": json.RawMessage(o.argsOf(b))})
	require.NoError(t, err)
	require.Equal(t, approvals.ToolApproved{OverrideArgs: json.RawMessage(strings.Replace(fileArgs, "a.txt", "b.txt", 1))}, results.Approvals["c1"])
}

// plainWords is what is shown on one line, with the ids of mentions.
func plainWords(v any) string {
	var raw []byte
	switch v := v.(type) {
	case slacksim.Message:
		raw, _ = json.Marshal(v.Blocks)
	case slacksim.View:
		raw, _ = json.Marshal(v.Blocks)
	}
	var tree any
	_ = json.Unmarshal(raw, &tree)
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range []string{"user_id", "usergroup_id", "channel_id"} {
				if s, ok := v[key].(string); ok {
					b.WriteString(s)
				}
			}
			if s, ok := v["text"].(string); ok {
				b.WriteString(s)
			} else {
				walk(v["text"])
			}
			walk(v["elements"])
		}
	}
	walk(tree)
	return b.String()
}

// What is not touched stays as it is, byte for byte: a number that floating
// point cannot hold, a secret that nobody saw.
func TestAnEditKeepsEveryOtherByte(t *testing.T) {
	o, root, b := rewrite(t, rulings{}, nil, deletion(sre))
	view := o.edit("U0BOB", root)
	require.Equal(t, "9007199254740993", view.Values[under(t, view, "size")]["value"]["value"])
	o.sends("U0BOB", view, map[string]string{"force": "0"})
	o.hasArgs(b, `{"path": "a.txt","size":9007199254740993, "token":"hunter2","force":true}`)
	o.draw(b)
	view.ID = o.closesAndEdits("U0BOB", root).ID
	o.sends("U0BOB", o.Views("U0BOB")[0], map[string]string{"size": "9007199254740995", "token": "hunter22"})
	o.hasArgs(b, `{"path": "a.txt","size":9007199254740995, "token":"hunter22","force":true}`)
	o.draw(b)
	said := o.card("U0BOB", root).Shown()
	require.Contains(t, said, "size: 9007199254740993 → 9007199254740995")
	require.Contains(t, said, "token:\n  was (hidden, 7 characters)\n  now (hidden, 8 characters)")
	require.NotContains(t, said, "hunter")
}

func (o *workspace) closesAndEdits(user, root string) slacksim.View {
	o.t.Helper()
	for _, v := range o.Views(user) {
		require.NoError(o.t, o.CloseView(user, v.ID, true))
	}
	return o.edit(user, root)
}

func TestWhatAnEditGetsWrongIsSaidUnderItsInput(t *testing.T) {
	wrong := errors.Join(
		&agentrun.ArgumentError{Pointer: "/size", Message: "must be at most 10"},
		&agentrun.ArgumentError{Pointer: "/nowhere", Message: "is not known"})
	for name, c := range map[string]struct {
		policy rulings
		check  error
		typed  map[string]string
		says   map[string]string // by label
	}{
		"nothing changed":   {typed: map[string]string{}, says: map[string]string{"path": "There is nothing to save yet"}},
		"no whole number":   {typed: map[string]string{"size": "1.0"}, says: map[string]string{"size": "Enter a whole number"}},
		"the tool's own":    {check: wrong, typed: map[string]string{"size": "11"}, says: map[string]string{"size": "Must be at most 10.", "path": "/nowhere: is not known."}},
		"refused by policy": {policy: rulings{ruling: approvals.Refuse{Reason: "Never."}}, typed: map[string]string{"size": "11"}, says: map[string]string{"size": "The policy refuses these arguments, so nobody can approve them. It says: Never."}},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, b := rewrite(t, c.policy, func(context.Context, approvals.Batch, approvals.ToolCall) error {
				if c.check != nil {
					return fmt.Errorf("check: %w", c.check)
				}
				return nil
			}, deletion(sre))
			view := o.edit("U0BOB", root)
			out := o.sends("U0BOB", view, c.typed)
			require.Len(t, out.Errors, len(c.says))
			for label, says := range c.says {
				require.Contains(t, out.Errors[under(t, view, label)], says)
			}
			require.Equal(t, b.Version, o.batch(b.ID).Version)
			require.Len(t, o.Views("U0BOB"), 1, "what was typed is still there")
		})
	}
}

// TestARefusalOfSeveralChangesIsSaidOnTopOfTheForm: no one of them is at fault,
// and what was typed stays.
func TestARefusalOfSeveralChangesIsSaidOnTopOfTheForm(t *testing.T) {
	o, root, b := rewrite(t, rulings{ruling: approvals.Refuse{Reason: "Never."}}, nil, deletion(sre))
	view := o.edit("U0BOB", root)
	typed := map[string]string{"size": "11", "path": "c.txt"}
	out := o.sends("U0BOB", view, typed)
	require.Empty(t, out.Errors)
	require.NotNil(t, out.View)
	text := words(out.View.Blocks)
	require.Contains(t, text, "The policy refuses these arguments, so nobody can approve them. It says: Never.")
	require.Less(t, strings.Index(text, "The policy refuses"), strings.Index(text, "stay exactly as they are"))
	require.Equal(t, under(t, view, "path"), under(t, *out.View, "path"), "it is the same form")
	require.Equal(t, b.Version, o.batch(b.ID).Version)
	again := o.sends("U0BOB", *out.View, nil)
	require.Contains(t, words(again.View.Blocks), "The policy refuses", "what was typed is still there")
}

// Whoever comes too late, or may not, reads why in the form or instead of it.
func TestAnEditThatCannotBeIsExplained(t *testing.T) {
	moves := func(cmd func(o *workspace, b approvals.Batch)) func(o *workspace, root string, b approvals.Batch) {
		return func(o *workspace, _ string, b approvals.Batch) { cmd(o, b) }
	}
	for name, c := range map[string]struct {
		before func(o *workspace, root string, b approvals.Batch)
		says   string
	}{
		"changed by another": {func(o *workspace, root string, _ approvals.Batch) {
			o.sends("U0CAROL", o.edit("U0CAROL", root), map[string]string{"path": "c.txt"})
		}, "so your edit wasn't saved"},
		"settled": {func(o *workspace, root string, _ approvals.Batch) {
			o.press("U0CAROL", o.card("U0CAROL", root), "approve", 0)
		}, "Already approved by <@U0CAROL>"},
		"expired": {moves(func(o *workspace, _ approvals.Batch) { o.now.Advance(3 * time.Minute) }), "Too late"},
		"gone": {moves(func(o *workspace, b approvals.Batch) {
			o.loses(b)
		}), "no longer exists"},
		"not an approver any more": {moves(func(o *workspace, _ approvals.Batch) {
			o.now.Advance(61 * time.Second)
			require.NoError(o.t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
		}), "Only the approvers and the requester of this call"},
	} {
		t.Run(name, func(t *testing.T) {
			o, root, b := rewrite(t, rulings{}, nil, until(deletion(sre), time.Now().Add(2*time.Minute), false))
			view := o.edit("U0BOB", root)
			c.before(o, root, b)
			was := o.batch(b.ID).Version
			out := o.sends("U0BOB", view, map[string]string{"path": "b.txt"})
			require.Empty(t, out.Errors)
			require.NotNil(t, out.View)
			require.Contains(t, words(out.View.Blocks), c.says)
			require.Equal(t, was, o.batch(b.ID).Version)
		})
	}
}

func TestAnOutsiderEditsNothing(t *testing.T) {
	o, root, b := rewrite(t, rulings{}, nil, deletion(sre))
	require.Equal(t, 200, o.press("U0DAVE", o.card("U0DAVE", root), "edit", 0).Status)
	require.Empty(t, o.Views("U0DAVE"))
	told := strings.Join(o.whispers("U0DAVE", root), "")
	require.Contains(t, told, "Only the approvers and the requester of this call")
	require.Contains(t, told, "<!subteam^S0SRE>")
	require.Equal(t, b.Version, o.batch(b.ID).Version)
}

func TestAnOutageDuringAnEditKeepsTheForm(t *testing.T) {
	o, root, b := rewrite(t, rulings{}, nil, deletion(sre))
	view := o.edit("U0BOB", root)
	o.breaks(errOutage)
	require.Equal(t, 500, o.sends("U0BOB", view, map[string]string{"path": "b.txt"}).Status)
	o.breaks(nil)
	o.sends("U0BOB", view, map[string]string{"path": "b.txt"})
	require.Contains(t, o.argsOf(b), "b.txt")
}

// Where the policy lets editors sign, they can in the same step; and then the
// reason that an approval needs is asked for there too.
func TestAnEditorMayApproveAsChanged(t *testing.T) {
	d := deletion(sre)
	d.Ask.Requirement.EditorMaySign, d.Ask.Requirement.ReasonNeeded = true, true
	o, root, b := rewrite(t, rulings{}, nil, d)
	require.NotContains(t, o.edit("U0ALICE", root).Shown(), "Approve as changed", "she is in no quorum")
	view := o.edit("U0BOB", root)
	out := o.sends("U0BOB", view, map[string]string{"path": "b.txt", "Your approval": "yes"})
	require.Contains(t, words(out.View.Blocks), "needs a reason", "the change is made, the approval is not")
	require.Equal(t, approvals.Pending, o.status(b, 0))
	o.draw(b)
	out = o.sends("U0BOB", o.closesAndEdits("U0BOB", root), map[string]string{
		"path": "c.txt", "Your approval": "yes", "Why do you approve it?": "It is a copy.",
	})
	require.Contains(t, words(out.View.Blocks), "Your approval of the new arguments counts.")
	require.Equal(t, approvals.Approved, o.status(b, 0))
	require.Contains(t, o.argsOf(b), "c.txt")
	require.Equal(t, []int{2, 1}, []int{o.log.Count("arguments changed"), o.log.Count("decision committed")})
}

// A form that is delivered again changes nothing a second time, and the log does
// not say that it did.
func TestAnEditIsLoggedOnce(t *testing.T) {
	o, root, b := rewrite(t, rulings{}, nil, deletion(sre))
	view := o.edit("U0BOB", root)
	form := denied("U0BOB", view.ID, "", button(b, 0))
	form["view"].(map[string]any)["callback_id"] = "countersign.edit"
	view.Values[under(t, view, "path")]["value"]["value"] = "b.txt"
	form["view"].(map[string]any)["state"] = map[string]any{"values": view.Values}
	for range 2 {
		require.Equal(t, 200, o.deliver(form))
		o.now.Advance(time.Second)
	}
	require.Len(t, o.batch(b.ID).Approvals[0].Amendments, 1)
	require.Equal(t, 1, o.log.Count("arguments changed"))
}

func TestNobodyIsOfferedAnEditThatNoFormCanMake(t *testing.T) {
	for tool, want := range map[string]bool{"delete_file": true, "other": false} {
		d := deletion(sre)
		d.Call.Name = tool
		o, root, _ := rewrite(t, rulings{}, nil, d)
		card := o.card("U0BOB", root)
		require.LessOrEqual(t, len(card.Actions()), 5)
		require.Equal(t, want, strings.Contains(fmt.Sprint(card.Actions()), "Edit…"))
	}
}
