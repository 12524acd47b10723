package card_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
)

var openedAt = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// request is a batch of one call that one member of a group has to approve.
func request(args string) card.Card {
	call := approvals.ToolCall{ID: "call-1", Name: "delete_file", Args: json.RawMessage(args)}
	b := approvals.Batch{
		ID: "batch-07-clean-up", Agent: "ops", Requester: "U0BO", Channel: "C0OPS", OpenedAt: openedAt,
		Approvals: []approvals.Approval{{
			Call:   approvals.CallRef{ID: call.ID, Name: call.Name, Digest: approvals.DigestOf("batch-07-clean-up", call)},
			Status: approvals.Pending,
			Requirement: approvals.Requirement{
				Quorums:  []approvals.Quorum{{Name: "operations", From: approvals.From{Groups: []approvals.GroupID{"S0OPS"}}, Need: 1}},
				Deadline: openedAt.Add(4 * time.Hour), Separation: true,
			},
		}},
	}
	return card.Card{
		Batch: b, Calls: map[approvals.ToolCallID]approvals.ToolCall{call.ID: call},
		Tools: map[string]agentrun.Spec{"delete_file": {Name: "delete_file"}},
	}
}

// The text of a message is what a notification shows and a screen reader
// reads. Names that a model or a person wrote are escaped in it.
func ExampleCard_Message() {
	c := request(`{"path":"/srv/old.log"}`)
	fmt.Println(c.Message(openedAt).Text)

	c.Batch.Agent = "<!channel>"
	fmt.Println(c.Message(openedAt).Text)

	fmt.Println(c.Message(openedAt.Add(5 * time.Hour)).Text)
	// Output:
	// <@U0BO> asked ops: Delete file (path: "/srv/old.log"). Risk not stated. Waiting for approval from <!subteam^S0OPS>. Expires <!date^1772456400^{date_short_pretty} at {time}|2026-03-02 13:00 UTC>.
	// <@U0BO> asked &lt;!channel&gt;: Delete file (path: "/srv/old.log"). Risk not stated. Waiting for approval from <!subteam^S0OPS>. Expires <!date^1772456400^{date_short_pretty} at {time}|2026-03-02 13:00 UTC>.
	// <@U0BO> asked &lt;!channel&gt;: Delete file (path: "/srv/old.log"). Expired.
}

// An open call is drawn as its title, its arguments, how far its approval is,
// what else holds for it, and its buttons. A letter of another script than its
// word is named.
func ExampleRender() {
	c := request(`{"path":"/srv/old.log","note":"p\u0430th"}`)
	for _, b := range card.Render(c, openedAt) {
		fmt.Println(b.BlockType())
	}
	fmt.Println(c.Shows(c.Batch.Approvals[0], openedAt))
	boxes, _ := blockkit.DrawArguments(blockkit.Arguments(c.Calls["call-1"].Args, nil), card.Details[0])
	fmt.Println(boxes[0].Text)
	// Output:
	// header
	// rich_text
	// rich_text
	// context
	// actions
	// true
	// path: "/srv/old.log"
	// note: "p⟦Cyrillic а⟧th"
}

// A call that is too long for a card is approved where all of it is shown.
func ExampleCard_Shows() {
	long, _ := json.Marshal(map[string]string{"text": strings.Repeat("a line of a script; ", 100)})
	for _, args := range []string{`{"path":"/srv/old.log"}`, string(long)} {
		c := request(args)
		fmt.Println(c.Shows(c.Batch.Approvals[0], openedAt))
	}
	// Output:
	// true
	// false
}
