package slackui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
	"github.com/countersign/countersign/internal/slackui/command"
	"github.com/stretchr/testify/require"
)

// private is a call that only Carol can sign, asked for elsewhere.
func (h *sheetWorkspace) private() {
	h.t.Helper()
	h.asksIn("C0SECRET", "1700000000.000800", "secret", "U0ERIN", 2*time.Hour, call("s", "pay_bonus", `{}`, by("carol", fromUser("U0CAROL"))))
}

func TestAListShowsOnlyWhatThePersonMaySee(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.asksIn("C0SECRET", "1700000000.000700", "elsewhere", "U0ALICE", 3*time.Hour, call("m", "move_file", `{}`, sre))
	h.private()
	for text, c := range map[string]struct{ has, hasNot []string }{
		"U0BOB list mine":     {[]string{"2 calls waiting for you", "Tag file", "Move file", "3 hours ago", "agent ops"}, []string{"Pay bonus"}},
		"U0BOB list":          {[]string{"2 calls waiting"}, []string{"Pay bonus"}},
		"U0BOB list channel":  {[]string{"1 call waiting in this channel", "Tag file"}, []string{"Move file", "Pay bonus"}},
		"U0CAROL list mine":   {[]string{"3 calls waiting for you", "Pay bonus"}, nil},
		"U0ALICE list all":    {[]string{"2 calls waiting", "Move file"}, []string{"Pay bonus", "waits for you"}},
		"U0ALICE list mine":   {[]string{"Nothing waits for you."}, nil},
		"U0DAVE list":         {[]string{"1 call waiting", "Tag file"}, []string{"Move file", "Pay bonus"}},
		"U0BOB list ours":     {[]string{"There is no list ours"}, nil},
		"U0BOB list mine all": {[]string{"There is no list mine all"}, nil},
	} {
		user, command, _ := strings.Cut(text, " ")
		said := h.slashes(user, command)
		for _, w := range c.has {
			require.Contains(t, said, w, text)
		}
		for _, w := range c.hasNot {
			require.NotContains(t, said, w, text)
		}
	}
	for _, filter := range []string{"all", "tool:pay_*", "from:U0ERIN"} {
		require.NotContains(t, h.slashes("U0DAVE", "approve "+filter), "pay_bonus")
		require.NotContains(t, h.slashes("U0DAVE", "approve "+filter), "Left out: 2", "nor is it counted")
	}
}

func TestAListIsTurnedPageByPage(t *testing.T) {
	h := newSheetWorkspace(t)
	seen := map[string]bool{}
	for i := range 9 {
		h.asksIn("C0OPS", fmt.Sprintf("1700000000.0009%02d", i), fmt.Sprint("b", i), "U0ALICE", time.Hour, tags(3, sre)...)
	}
	out, err := h.Command(slacksim.Command{User: "U0BOB", Channel: "C0OPS", Command: "/countersign", Text: "list mine"})
	require.NoError(t, err)
	m := *out.Message
	for page, want := range []string{"Calls 1 to 10", "Calls 11 to 20", "Calls 21 to 27"} {
		require.Contains(t, m.Shown(), want)
		raw, err := json.Marshal(m.Blocks)
		require.NoError(t, err)
		for _, id := range idsIn(string(raw)) {
			require.False(t, seen[id], "page %d shows %s again", page, id)
			seen[id] = true
		}
		if page == 2 {
			require.NotContains(t, m.Shown(), "Show the next")
			break
		}
		click, err := h.Click(slacksim.Click{User: "U0BOB", Channel: "C0OPS", TS: m.TS, ActionID: "countersign.list.0"})
		require.NoError(t, err)
		require.Equal(t, 200, click.Status)
		require.NoError(t, h.ui.Server.Shutdown(t.Context()))
		all, err := h.Messages("U0BOB", "C0OPS", "")
		require.NoError(t, err)
		m = all[len(all)-1]
	}
	require.Len(t, seen, 27)
}

// idsIn are the ids of calls in blocks.
func idsIn(raw string) []string {
	var found []string
	for piece := range strings.SplitSeq(raw, `"text":"`) {
		id, _, _ := strings.Cut(piece, `"`)
		if len(id) == 6 && strings.Trim(id, "0123456789abcdef") == "" {
			found = append(found, id)
		}
	}
	return found
}

func TestStatusSaysWhetherAllIsWell(t *testing.T) {
	var store error
	parked, looking := 0, true
	h := newSheetWorkspace(t, func(c *slackui.Config) {
		c.Health = command.Health{
			Store: func(context.Context) error { return store }, Looking: func() bool { return looking },
			Parked: func(context.Context) (int, error) { return parked, nil }, Policy: func() string { return "0123abcd" },
		}
	})
	h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
	h.private()
	said := h.slashes("U0BOB", "status")
	for _, w := range []string{"Countersign is working.", "version: `0123abcd`", "Waiting for you: 1 request, the oldest since", "Waiting in this channel: 1 request."} {
		require.Contains(t, said, w)
	}
	require.Contains(t, h.slashes("U0DAVE", "status"), "Waiting for you: 0 requests.")
	store, parked, looking = errors.New("away"), 2, false
	said = h.slashes("U0BOB", "status")
	for _, w := range []string{"Countersign has a problem.", "The store can't be used now", "2 pieces of work failed", "stopped updating cards"} {
		require.Contains(t, said, w)
	}
	require.Contains(t, h.slashes("U0BOB", "status now"), "takes nothing after it")
}

func TestEveryAnswerAndFormOfCommandsIsAsKept(t *testing.T) {
	h := newSheetWorkspace(t, func(c *slackui.Config) {
		c.Health = command.Health{Policy: func() string { return "0123abcd" }}
	})
	d := call("d1", "delete_file", `{"path":"reports/2023.txt","force":true}`, sre)
	d.Ask.Requirement.Deadline = noon.Add(8 * time.Hour)
	own := call("own", "tag_file", `{}`, sre)
	own.Ask.Requirement.Separation = true
	one := h.asks("one", "U0ALICE", time.Hour, append(tags(2, sre), d, call("o1", "odd_tool", `{"text":"`+strings.Repeat("x", 500)+`"}`, sre))...)
	h.asks("three", "U0BOB", 2*time.Hour, own)
	for name, text := range map[string]string{
		"help": "help", "help_approve": "help approve", "help_deny": "help deny", "help_list": "help list", "help_status": "help status", "help_odd": "help *me*",
		"odd": "<!here> *all*", "list": "list", "list_mine": "list mine", "list_none": "list ours", "status": "status", "approve": "approve", "deny": "deny",
		"approve_odd": "approve tols:*x*", "approve_word": "approve everything", "approve_none": "approve tool:drop_*", "approve_left": "approve from:U0BOB",
	} {
		h.slashes("U0BOB", text)
		kept(t, "slash_"+name+".json", h.answer())
	}
	bare1 := func(v slacksim.View) any {
		raw, err := json.Marshal(v.Blocks)
		require.NoError(t, err)
		var blocks any
		require.NoError(t, json.Unmarshal(raw, &blocks))
		return map[string]any{"title": v.Title, "submit": v.Submit, "blocks": bare(blocks)}
	}
	kept(t, "sheet_deny.json", bare1(h.sheet("U0BOB", "deny tool:tag_* not <today>")))
	kept(t, "sheet_approve.json", bare1(h.sheet("U0BOB", "approve all")))
	h.ticks("U0BOB", 2)
	kept(t, "sheet_ticked.json", bare1(h.top1("U0BOB")))
	id := h.sheetID("U0BOB")
	kept(t, "sheet_sent.json", bare1(*h.sendsSheet("U0BOB").View))
	// Carol is first with one of them.
	b := h.stored(one)
	_, err := h.desk.Decide(t.Context(), b.ID, "carol", approvals.Decide{Decision: approvals.Decision{
		Call: "t1", Verdict: approvals.Approve, Digest: b.Approvals[1].Call.Digest, At: noon,
		By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: noon},
	}})
	require.NoError(t, err)
	h.finishes(id)
	sent := h.sent()
	blocks, _ := json.Marshal(sent["blocks"])
	var plain any
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(blocks), string(id), "SHEET")), &plain))
	kept(t, "answer.json", map[string]any{"text": sent["text"], "blocks": plain})
	all, err := h.Messages("U0BOB", "D0BOB", "")
	require.NoError(t, err)
	click, err := h.Click(slacksim.Click{User: "U0BOB", Channel: "D0BOB", TS: all[len(all)-1].TS, ActionID: "countersign.result.0"})
	require.NoError(t, err)
	require.Equal(t, 200, click.Status)
	kept(t, "answer_list.json", bare1(h.top1("U0BOB")))
}

func TestTheWholeListIsForWhoeverSentIt(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, tags(90, sre)...)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	all, err := h.Messages("U0BOB", "D0BOB", "")
	require.NoError(t, err)
	_, err = h.Click(slacksim.Click{User: "U0BOB", Channel: "D0BOB", TS: all[0].TS, ActionID: "countersign.result.0"})
	require.NoError(t, err)
	require.Contains(t, shows(h.top1("U0BOB")), "Page 1 of 3.")
	for _, page := range []int{1, 2} {
		_, err = h.Click(slacksim.Click{User: "U0BOB", ViewID: h.top1("U0BOB").ID, ActionID: fmt.Sprintf("countersign.result_page.%d", page)})
		require.NoError(t, err)
	}
	require.Contains(t, shows(h.top1("U0BOB")), "Page 3 of 3.")
	require.Equal(t, 200, h.deliver(pressed("U0CAROL", "t1", "result.0", string(id))))
	opened := h.Calls("views.open")
	require.Contains(t, opened[len(opened)-1].Request, "someone else's")
}

func TestAPersonIsToldOfASheetThatWasGivenUp(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, tags(2, sre)...)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	for range 2 {
		require.NoError(t, h.ui.Answers.Parked(t.Context(), string(id)))
	}
	require.Len(t, h.letters("U0BOB"), 1)
	require.Contains(t, h.letters("U0BOB")[0], "0 calls are decided and 2 calls are still open")
}
