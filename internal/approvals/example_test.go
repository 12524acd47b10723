package approvals_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Two of the operators must approve before the table is dropped. Bo asked for it
// and does not count.
func Example() {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	call := approvals.ToolCall{ID: "call_1", Name: "drop_table", Args: json.RawMessage(`{"table":"orders_old"}`)}
	batch, _, err := approvals.Open(
		approvals.Batch{ID: "batch-17-a", Run: "run-17-a", Requester: "bo", OpenedAt: at},
		[]approvals.Deferral{{Call: call, Ask: approvals.Ask{Requirement: approvals.Requirement{
			Quorums:    []approvals.Quorum{{Name: "operators", Need: 2, From: approvals.From{Groups: []approvals.GroupID{"ops"}}}},
			Separation: true,
		}}}},
		nil,
	)
	if err != nil {
		panic(err)
	}
	for _, who := range []approvals.UserID{"ann", "bo", "cy"} {
		next, events, err := batch.Apply(approvals.Decide{Decision: approvals.Decision{
			Call:    call.ID,
			By:      approvals.Principal{User: who, Groups: []approvals.GroupID{"ops"}},
			Verdict: approvals.Approve,
			Digest:  approvals.DigestOf(batch.ID, call), // of what they saw
			At:      at.Add(time.Minute),
		}})
		fmt.Println(who, next.Approvals[0].Status, len(events), errors.Is(err, approvals.ErrOwnRequest))
		batch = next
	}
	results, err := batch.Results(map[approvals.ToolCallID]json.RawMessage{call.ID: call.Args})
	fmt.Printf("%T %s %v\n", results.Approvals[call.ID], results.Metadata[call.ID], err)
	// Output:
	// ann pending 1 false
	// bo pending 0 true
	// cy approved 3 false
	// approvals.ToolApproved {"approved_by":["ann","cy"],"at":"2026-01-02T03:05:05Z"} <nil>
}

// The model reads the error and can repair its call.
func ExampleCheckArgs() {
	fmt.Println(approvals.CheckArgs(json.RawMessage(`{"path":"/tmp","p\u0061th":"/"}`)))
	fmt.Println(approvals.CheckArgs(json.RawMessage(`{"name":"\ud83d"}`)))
	fmt.Println(approvals.CheckArgs(json.RawMessage(`{"n":9007199254740993}`)))
	// Output:
	// arguments: invalid JSON at byte 15: the key "path" occurs twice in one object
	// arguments: invalid JSON at byte 9: half a surrogate pair stands for no character
	// <nil>
}

// Someone who is in both groups is one signature, not two.
func ExampleApproval_Progress() {
	quorum := func(name string, group approvals.GroupID) approvals.Quorum {
		return approvals.Quorum{Name: name, Need: 1, From: approvals.From{Groups: []approvals.GroupID{group}}}
	}
	a := approvals.Approval{
		Requirement: approvals.Requirement{Quorums: []approvals.Quorum{quorum("operators", "sre"), quorum("security", "sec")}},
		Decisions: []approvals.Decision{
			{By: approvals.Principal{User: "ann", Groups: []approvals.GroupID{"sec", "sre"}}, Verdict: approvals.Approve},
		},
	}
	for _, p := range a.Progress() {
		fmt.Println(p.Quorum.Name, p.By)
	}
	// Output:
	// operators [ann]
	// security []
}

// Security or two leads must approve, and then the owner. Ann leads and is away;
// Bo signs in her place.
func ExampleApproval_Progress_alternatives() {
	until := time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC)
	a := approvals.Approval{
		Requirement: approvals.Requirement{
			Quorums: []approvals.Quorum{
				{Name: "security", Need: 1, From: approvals.From{Groups: []approvals.GroupID{"sec"}}, Choice: 1, Option: 0},
				{Name: "leads", Need: 2, From: approvals.From{Users: []approvals.UserID{"ann", "cy"}}, Choice: 1, Option: 1},
				{Name: "owner", Need: 1, From: approvals.From{Users: []approvals.UserID{"olga"}}, Stage: 1},
			},
			Delegation: true,
		},
		Decisions: []approvals.Decision{{
			By:      approvals.Principal{User: "bo", For: []approvals.Absent{{User: "ann", Until: until}}},
			Verdict: approvals.Approve, At: until.Add(-time.Hour),
		}},
	}
	for _, p := range a.Progress() {
		fmt.Println(p.Quorum.Name, p.By, p.Asked)
	}
	// Output:
	// security [] true
	// leads [bo for ann] true
	// owner [] false
}

// Bo stands in for Ann, and while Bo is away too Cy stands in for both.
func ExampleAbsences_DelegationsTo() {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	var away approvals.Absences
	for _, a := range []approvals.Absence{
		{User: "ann", Delegate: "bo", From: day(5), Until: day(12)},
		{User: "bo", Delegate: "cy", From: day(7), Until: day(9)},
		{User: "cy", Delegate: "ann", From: day(8), Until: day(20)},
	} {
		next, err := away.Set(a, day(1))
		fmt.Println(a.User, err)
		away = next
	}
	for _, a := range away.DelegationsTo("cy", day(8)) {
		fmt.Println(a.User, "until", a.Until.Format("January 2"))
	}
	// Output:
	// ann <nil>
	// bo <nil>
	// cy absence not possible: it leads in a circle, back to "cy"
	// bo until January 9
	// ann until January 9
}

// Answers are written in the shape that upstream reads.
func ExampleDeferredToolResults() {
	raw, err := json.Marshal(approvals.DeferredToolResults{
		Approvals: map[approvals.ToolCallID]approvals.ApprovalResult{
			"call_1": approvals.ToolApproved{OverrideArgs: json.RawMessage(`{"cents":1000}`)},
			"call_2": approvals.ToolDenied{Message: approvals.DeniedMessage},
		},
	})
	fmt.Println(string(raw), err)
	err = json.Unmarshal([]byte(`{"approvals":{"call_1":"yes"}}`), new(approvals.DeferredToolResults))
	fmt.Println(err)
	// Output:
	// {"calls":{},"approvals":{"call_1":{"kind":"tool-approved","override_args":{"cents":1000}},"call_2":{"kind":"tool-denied","message":"The tool call was denied."}},"metadata":{}} <nil>
	// approvals: "call_1": invalid: an approval is true, false or an object with a kind
}

func ExampleDecodeEvent() {
	e, err := approvals.DecodeEvent([]byte(`{"v":1,"kind":"settled","batch":"batch-17-a","call":"call_1","status":"approved"}`))
	fmt.Printf("%T %v %v\n", e, e.(approvals.Settled).Status, err)
	_, err = approvals.DecodeEvent([]byte(`{"v":1,"kind":"exploded"}`))
	fmt.Println(err)
	// Output:
	// approvals.Settled approved <nil>
	// invalid: event of unknown kind "exploded"
}
