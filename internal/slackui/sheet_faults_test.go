package slackui_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// brittle fails when a sheet is loaded, or once one is submitted.
type brittle struct {
	*approvals.Bulk
	load, submit *error
}

func (b brittle) Sheet(ctx context.Context, id approvals.SheetID) (approvals.Sheet, error) {
	if *b.load != nil {
		return approvals.Sheet{}, *b.load
	}
	return b.Bulk.Sheet(ctx, id)
}

func (b brittle) Submit(ctx context.Context, id approvals.SheetID, r approvals.RequestID, who approvals.Principal, ticked []int, reason string) (approvals.Sheet, error) {
	s, err := b.Bulk.Submit(ctx, id, r, who, ticked, reason)
	if *b.submit != nil {
		return approvals.Sheet{}, *b.submit
	}
	return s, err
}

func TestAListIsSentAgainWhenTheStoreDidNotAnswer(t *testing.T) {
	for name, failure := range map[string]error{"slow": fmt.Errorf("load: %w", context.DeadlineExceeded), "down": errors.New("connection refused")} {
		t.Run(name, func(t *testing.T) {
			var load, submit error
			h := newSheetWorkspace(t, func(c *slackui.Config) {
				bulk, ok := c.Bulk.(*approvals.Bulk)
				require.True(t, ok)
				c.Bulk = brittle{bulk, &load, &submit}
			})
			b := h.asks("one", "U0ALICE", time.Hour, append(tags(1, sre), call("d", "delete_file", `{"path":"b"}`, sre))...)
			h.sheet("U0BOB", "approve all")
			h.ticks("U0BOB", 1)
			id := h.sheetID("U0BOB")

			load = failure
			out := h.sendsSheet("U0BOB")
			require.Contains(t, shows(*out.View), "Nothing was sent because the store didn't answer. Press the button below again.")
			require.Equal(t, "Send again", out.View.Submit)

			load, submit = nil, failure
			out = h.sendsSheet("U0BOB")
			require.Contains(t, shows(*out.View), "your decision may or may not be stored. Sending it again is safe: no call is decided twice.")
			submit = nil
			require.Contains(t, shows(*h.sendsSheet("U0BOB").View), "You already sent this list")
			require.Equal(t, 2, h.finishes(id).Summary().Signed, "what was ticked is kept")
			require.Equal(t, "approved approved", h.statuses(b))
		})
	}
}

func TestADenialThatTheStoreDidNotTakeKeepsItsReason(t *testing.T) {
	var load, submit error
	h := newSheetWorkspace(t, func(c *slackui.Config) {
		bulk, ok := c.Bulk.(*approvals.Bulk)
		require.True(t, ok)
		c.Bulk = brittle{bulk, &load, &submit}
	})
	h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "deny all not today")
	load = errors.New("connection refused")
	require.Contains(t, fmt.Sprint(h.sendsSheet("U0BOB", "not today").Errors), "Nothing was sent")
	load = nil
	require.Contains(t, shows(*h.sendsSheet("U0BOB", "not today").View), "Denying 1 call…")
}

// Over Socket Mode an answer of 20 KB is dropped.
func TestNoAnswerToAListIsTooLong(t *testing.T) {
	h := newSheetWorkspace(t)
	var calls []approvals.Deferral
	for n := range 12 {
		calls = append(calls, call(fmt.Sprint("d", n), "delete_file", fmt.Sprintf(`{"path":"%d-%s","why":"%[2]s","who":"%[2]s"}`, n, strings.Repeat("<", 250)), sre))
	}
	b := h.asks("one", "U0ALICE", time.Hour, calls...)
	v := h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	send := func(user, memo, trigger string) string {
		body := h.delivers(map[string]any{
			"type": "view_submission", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": user}, "trigger_id": trigger,
			"view": map[string]any{"id": v.ID, "callback_id": "countersign.sheet", "private_metadata": memo},
		})
		require.Less(t, len(body), 20_000)
		return body
	}
	require.Contains(t, send("U0BOB", h.memo("U0BOB"), "t1"), "Nothing is selected")
	require.Contains(t, send("U0CAROL", h.memo("U0BOB"), "t2"), "someone else's")

	h.ticks("U0BOB", 3)
	h.pass(2 * time.Minute)
	h.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Error: "internal_error"}}})
	out := h.sendsSheet("U0BOB")
	require.Contains(t, shows(*out.View), "Slack couldn't tell who is in")
	require.NotContains(t, shows(*out.View), "<<")
	require.Equal(t, "Approve 1 call", out.View.Submit)
	clicked, err := h.Click(slacksim.Click{User: "U0BOB", ViewID: v.ID, ActionID: "countersign.sheet_page.0"})
	require.NoError(t, err)
	require.Equal(t, 200, clicked.Status)
	require.Contains(t, shows(h.top1("U0BOB")), `path "3-<<`, "the list is one press away")
	require.Equal(t, "Approve 1 call", h.top1("U0BOB").Submit, "and its ticks are kept")

	require.Contains(t, send("U0BOB", h.memo("U0BOB"), "t3"), "Approving 1 call…")
	require.Contains(t, send("U0BOB", h.memo("U0BOB"), "t4"), "You already sent this list")
	require.Equal(t, 1, h.finishes(id).Summary().Signed)
	require.Len(t, h.stored(b).Approvals[3].Decisions, 1)
}

func TestTheButtonCountsTwoTicksThatCameTogether(t *testing.T) {
	h := newSheetWorkspace(t)
	h.asks("one", "U0ALICE", time.Hour, call("d1", "delete_file", `{"path":"a"}`, sre), call("d2", "delete_file", `{"path":"b"}`, sre))
	v, memo := h.sheet("U0BOB", "approve all"), h.memo("U0BOB")
	ticked := map[string]any{}
	for _, line := range []string{"0", "1"} {
		ticked["tick."+line] = map[string]any{"countersign.tick." + line: map[string]any{"selected_options": []any{map[string]any{"value": line}}}}
		h.delivers(map[string]any{
			"type": "block_actions", "team": map[string]any{"id": slacksim.TeamID}, "user": map[string]any{"id": "U0BOB"}, "trigger_id": "t",
			"actions": []any{map[string]any{"action_id": "countersign.tick." + line, "action_ts": "1.1"}},
			"view": map[string]any{
				"id": v.ID, "hash": v.Hash, "type": "modal", "callback_id": "countersign.sheet", "private_metadata": memo,
				"state": map[string]any{"values": ticked},
			},
		})
		require.NoError(t, h.ui.Server.Shutdown(t.Context()))
	}
	require.Equal(t, "Approve 2 calls", h.top1("U0BOB").Submit)
}
