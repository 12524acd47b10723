package slackui_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestTheAnswerSaysWhyInItsFirstWords(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(3, sre)...)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	for n := range 3 {
		_, err := h.desk.Decide(t.Context(), b.ID, approvals.RequestID(fmt.Sprint("carol", n)), approvals.Decide{Decision: approvals.Decision{
			Call: b.Approvals[n].Call.ID, By: approvals.Principal{User: "U0CAROL", Groups: []approvals.GroupID{"S0SRE"}, GroupsAt: h.now.Now()},
			Verdict: approvals.Deny, Reason: "no", Digest: b.Approvals[n].Call.Digest, At: h.now.Now(),
		}})
		require.NoError(t, err)
	}
	h.finishes(id)
	posts := h.Calls("chat.postMessage")
	said, err := url.ParseQuery(posts[len(posts)-1].Request)
	require.NoError(t, err)
	require.Equal(t, "Approved 0 calls. Skipped, 3 calls that were already decided or withdrawn.", said.Get("text"))
}

// Who approved a call and means to deny it reads what to do first.
func TestAListSaysThatADecisionIsTakenBackFirst(t *testing.T) {
	h := newSheetWorkspace(t)
	two := sre
	two.Need = 2
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, two)...)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Len(t, h.stored(b).Approvals[0].Decisions, 1)
	require.Contains(t, h.slashes("U0BOB", "deny all it was a mistake"), "press Take back on the card first")
	require.Contains(t, h.slashes("U0BOB", "approve all"), "that you already decided (")
}

// Nobody decided a call that its agent withdrew.
func TestAListSaysThatACallMayHaveBeenWithdrawn(t *testing.T) {
	h := newSheetWorkspace(t)
	b := h.asks("one", "U0ALICE", time.Hour, tags(1, sre)...)
	h.sheet("U0BOB", "approve all")
	id := h.sheetID("U0BOB")
	_, err := h.desk.Withdraw(t.Context(), b.ID, "stop", approvals.Withdraw{By: "U0ALICE", At: h.now.Now()})
	require.NoError(t, err)
	h.sendsSheet("U0BOB")
	h.finishes(id)
	require.Contains(t, h.letters("U0BOB")[0], "Skipped, 1 call: it was already decided or withdrawn")
}
