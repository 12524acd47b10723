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

func TestAPageOfSomebodyElsesListIsNotDrawn(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, append(tags(1, sre), call("d", "delete_file", `{"path":"b"}`, sre))...)
	v, id := h.sheet("U0BOB", "approve all"), h.sheetID("U0BOB")
	for _, action := range []string{"countersign.sheet_page.0", "countersign.tick.1"} {
		h.delivers(map[string]any{
			"type": "block_actions", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0DAVE"}, "trigger_id": "t1",
			"actions": []any{map[string]any{"action_id": action, "value": "0", "action_ts": "1.1"}},
			"view": map[string]any{
				"id": v.ID, "type": "modal", "callback_id": "countersign.sheet", "private_metadata": `{"s":"` + string(id) + `"}`,
			},
		})
		require.NoError(t, h.ui.Server.Shutdown(t.Context()))
		require.Contains(t, shows(h.top1("U0BOB")), "someone else's", action)
		require.NotContains(t, shows(h.top1("U0BOB")), "reports/0.txt", action)
	}
}

func TestACallThatSomebodyEditedIsTickedByItself(t *testing.T) {
	h := newSheetWorkspace(t)
	both := sre
	both.Need = 2
	b := h.asks("one", "U0ALICE", time.Hour, tags(2, both)...)
	_, err := h.desk.Amend(t.Context(), b.ID, "edit", approvals.Amend{
		Call: "t0", From: b.Approvals[0].Call.Digest, Args: json.RawMessage(`{"path":"/etc/passwd"}`), At: h.now.Now(),
		By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()},
	})
	require.NoError(t, err)
	v := h.sheet("U0BOB", "approve all")
	require.Equal(t, "Approve 1 call", v.Submit, "only the one that nobody edited")
	require.Contains(t, shows(v), "edited by")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Empty(t, h.stored(b).Approvals[0].Decisions)
	require.Len(t, h.stored(b).Approvals[1].Decisions, 1)
}

func TestACallOfAnUnknownToolIsTickedByItself(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, call("odd", "odd_tool", `{"path":"a"}`, sre), tags(1, sre)[0])
	require.Equal(t, "Approve 1 call", h.sheet("U0BOB", "approve all").Submit)
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Equal(t, "pending approved", h.statuses(b))
}

// A list is drawn again at every tick. What was settled since must not look as if it
// could still be approved.
func TestAListThatIsDrawnAgainSaysWhichCallsAreNoLongerOpen(t *testing.T) {
	deletion := func(id string) approvals.Deferral { return call(id, "delete_file", `{"path":"`+id+`.txt"}`, sre) }
	const skipped = "It is no longer open, so it will be skipped."
	for name, c := range map[string]struct {
		settle func(h *sheetWorkspace, b approvals.Batch)
		want   int
	}{
		"open": {settle: func(*sheetWorkspace, approvals.Batch) {}},
		"denied by someone else": {want: 1, settle: func(h *sheetWorkspace, b approvals.Batch) {
			carol := approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()}
			_, err := h.desk.Decide(h.t.Context(), b.ID, "deny", approvals.Decide{Decision: approvals.Decision{
				By: carol, Call: "a", Digest: b.Approvals[0].Call.Digest, Verdict: approvals.Deny, At: h.now.Now(),
			}})
			require.NoError(h.t, err)
		}},
		"withdrawn": {want: 2, settle: func(h *sheetWorkspace, b approvals.Batch) {
			_, err := h.desk.Withdraw(h.t.Context(), b.ID, "stop", approvals.Withdraw{By: "U0ALICE", At: h.now.Now()})
			require.NoError(h.t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newSheetWorkspace(t)
			b := h.asks("one", "U0ALICE", time.Hour, deletion("a"), deletion("b"))
			require.NotContains(t, shows(h.sheet("U0BOB", "approve all")), skipped)
			c.settle(h, b)
			h.ticks("U0BOB", 1)
			require.Equal(t, c.want, strings.Count(shows(h.top1("U0BOB")), skipped))
		})
	}
}
