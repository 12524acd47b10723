package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/outbox"
)

func adminList(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	most := in.flags.Int("most", 200, "The largest `NUMBER` of requests to list.")
	doubt := in.flags.Bool("in-doubt", false, "List only requests with a call that may or may not have taken effect.")
	return administer(ctx, in, func(a admin, _ []string) error {
		if *most < 1 {
			return in.wrong("--most must be 1 or more")
		}
		return a.list(ctx, *most, *doubt, *asJSON)
	})
}

func adminDeliveries(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, args []string) error { return a.deliveries(ctx, args[0], *asJSON) })
}

// waitingRow is a request that waits for people.
type waitingRow struct {
	Batch     approvals.BatchID `json:"batch"`
	Run       approvals.RunID   `json:"run"`
	Agent     string            `json:"agent"`
	Requester approvals.UserID  `json:"requester,omitempty"`
	OpenedAt  time.Time         `json:"opened_at"`
	Deadline  time.Time         `json:"deadline,omitzero"` // the next one
	Calls     []waitingCall     `json:"calls"`
}

type waitingCall struct {
	Call   approvals.ToolCallID `json:"call"`
	Tool   string               `json:"tool"`
	Rule   string               `json:"rule,omitempty"`
	Status approvals.Status     `json:"status"`
	Check  string               `json:"check,omitempty"`         // of the rule
	Answer string               `json:"answer,omitempty"`        // of the check
	Doubt  time.Time            `json:"in_doubt_since,omitzero"` // when it began, if it may or may not have taken effect
}

// list prints the requests that wait for people, the oldest first, or those of them
// with a call in doubt. It does not read their arguments.
func (a admin) list(ctx context.Context, most int, doubt, asJSON bool) error {
	rows := []waitingRow{}
	var cursor approvals.Cursor
	for len(rows) < most {
		page, next, err := a.waiting(ctx, cursor, min(most-len(rows), 100))
		if err != nil {
			return err
		}
		for _, b := range page {
			if !doubt || slices.ContainsFunc(b.Approvals, approvals.Approval.InDoubt) {
				rows = append(rows, waitingOf(b))
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if asJSON {
		return a.sayJSON(rows)
	}
	var out strings.Builder
	for _, r := range rows {
		out.WriteString(r.line())
	}
	more := ""
	if cursor != "" {
		more = ", and there are more"
	}
	which := ""
	if doubt {
		which = " with a call in doubt"
	}
	fmt.Fprintf(&out, "%s%s%s\n", counted(len(rows), "request waits", "requests wait"), which, more)
	return a.say(out.String())
}

// line describes the request for people. Calls of which it says the same are counted.
func (r waitingRow) line() string {
	var calls []string
	times := map[string]int{}
	for _, c := range r.Calls {
		said := c.Tool + " " + string(c.Status)
		if c.Rule != "" {
			said += " (rule " + c.Rule + ")"
		}
		if !c.Doubt.IsZero() {
			said += ", in doubt since " + c.Doubt.UTC().Format(time.RFC3339)
		}
		if times[said]++; times[said] == 1 {
			calls = append(calls, said)
		}
	}
	for i, said := range calls {
		if n := times[said]; n > 1 {
			calls[i] = fmt.Sprintf("%d× %s", n, said)
		}
	}
	columns := []string{string(r.Batch), "since " + since(r.OpenedAt), "agent " + r.Agent, "for " + string(r.Requester), string(r.Run), strings.Join(calls, ", ")}
	if !r.Deadline.IsZero() {
		columns = append(columns, "until "+since(r.Deadline))
	}
	return tableLine(columns...)
}

// waiting returns a page of the requests that wait for people, the oldest first, and where
// the next page begins; that is empty if there is none.
func (a admin) waiting(ctx context.Context, from approvals.Cursor, most int) ([]approvals.Batch, approvals.Cursor, error) {
	page, next, err := a.store.Inbox(ctx, []approvals.ListKey{approvals.Everything}, from, most)
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

func waitingOf(b approvals.Batch) waitingRow {
	r := waitingRow{Batch: b.ID, Run: b.Run, Agent: b.Agent, Requester: b.Requester, OpenedAt: b.OpenedAt, Deadline: b.Deadline()}
	for _, x := range b.Approvals {
		r.Calls = append(r.Calls, waitingCall{x.Call.ID, x.Call.Name, x.Rule, x.Status, x.Checked.Check, string(x.Checked.Answer), x.Doubt.Began.UTC()})
	}
	return r
}

// deliveries prints where the webhook messages about a request stand.
func (a admin) deliveries(ctx context.Context, request string, asJSON bool) error {
	if err := a.known(ctx, approvals.RunID(request)); err != nil {
		return err
	}
	o, err := a.outbox()
	if err != nil {
		return err
	}
	list, err := o.Deliveries(ctx, request)
	if err != nil {
		return fmt.Errorf("list the deliveries: %w", err)
	}
	if asJSON {
		return a.sayJSON(append([]outbox.Delivery{}, list...))
	}
	var out strings.Builder
	for _, d := range list {
		columns := []string{d.ID, d.Agent, d.Endpoint, d.Type, d.State, counted(d.Attempts, "attempt", "attempts"), d.LastError}
		if !d.Next.IsZero() {
			columns = append(columns, "next "+since(d.Next))
		}
		if d.Held {
			columns = append(columns, "waits for bot admin enable, because the webhook is disabled")
		}
		out.WriteString(tableLine(columns...))
	}
	fmt.Fprintf(&out, "%s\n", counted(len(list), "message", "messages"))
	return a.say(out.String())
}

// sayJSON prints a document.
func (a admin) sayJSON(v any) error {
	doc, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return a.say(escaped(string(doc)) + "\n")
}
