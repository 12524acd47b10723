package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/state"
)

// kept says for each kind of key what it holds and how long that is kept.
var kept = map[string]string{
	"thread":     "conversations, until nothing is open and nobody has used them for retention.threads",
	"messages":   "the messages of conversations, as long as the conversations",
	"run":        "runs, as long as their conversations",
	"journal":    "what runs executed, as long as the runs",
	"batch":      "requests with their decisions, as long as their conversations",
	"args":       "the exact arguments of calls, as long as their requests",
	"facts":      "what happened to requests, for audits, forever",
	"idle":       "an index of the conversations in which nothing is open, until they are removed",
	"memo":       "what surfaces remember, such as where a card is, as long as the request or run",
	"due":        "an index of the work that is due, until it is done",
	"list":       "open requests by person, group and channel, as long as they are open",
	"decided":    "the last 50 decisions of a person and partition",
	"ledger":     "calls that a policy counts, two days",
	"sheet":      "lists of calls to decide at once: a day, or 30 days once finished",
	"attempts":   "failures of due work, until it succeeds",
	"parked":     "work that was given up, until an operator acts",
	"layout":     "how the store is laid out, forever",
	"parkedruns": "runs that wait for an operator",
	"request":    "changes that were made, so that a repetition counts once: mostly ten minutes",

	"memo:budget":       "how many messages channels and people got in the last minute: one for each of them",
	"memo:digest":       "messages that list many requests, 90 days after they changed last",
	"memo:digests":      "which of these messages takes requests now: one for each channel",
	"memo:group":        "members of user groups, as Slack said last: one for each group",
	"memo:intake-agent": "how many requests a remote agent made in the last minute, and its newest ones: one for each agent",
	"memo:removals":     "the search for conversations of versions that removed nothing",
	"memo:user":         "accounts, as Slack said last: one for each person",
	"memo:webhooks":     "messages for webhooks, as long as their runs, and the state of each webhook",
}

// whyKept returns what the keys of a kind hold and how long that is kept.
func whyKept(kind string) string {
	group, _, _ := strings.Cut(kind, ":")
	return cmp.Or(kept[kind], kept[group])
}

func adminSize(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, _ []string) error { return a.size(ctx, *asJSON) })
}

// sizeRow is a kind of key with the reason for it.
type sizeRow struct {
	state.Size

	Why string `json:"why"`
	// Only in the row "idle": since when the oldest conversation has nothing open, and
	// when it is removed; the zero time means never.
	Oldest    time.Time `json:"oldest,omitzero"`
	RemovedAt time.Time `json:"removed_at,omitzero"`
}

// size lists what is in Redis and why.
func (a admin) size(ctx context.Context, asJSON bool) error {
	sizes, err := state.NewBrowser(a.store).Sizes(ctx)
	if err != nil {
		return fmt.Errorf("measure what is in Redis: %w", err)
	}
	rows := make([]sizeRow, len(sizes))
	keys, bytes := 0, int64(0)
	idle, first, err := state.NewBrowser(a.store).Idle(ctx)
	if err != nil {
		return err
	}
	for i, s := range sizes {
		rows[i] = sizeRow{Size: s, Why: whyKept(s.Kind)}
		keys, bytes = keys+s.Keys, bytes+s.Bytes
		if s.Kind == "idle" && idle > 0 {
			rows[i].Oldest = first
			if a.threads > 0 {
				rows[i].RemovedAt = first.Add(a.threads)
			}
		}
	}
	if asJSON {
		return a.sayJSON(rows)
	}
	var out strings.Builder
	for _, r := range rows {
		about := ""
		if r.Estimated {
			about = "about "
		}
		fmt.Fprintf(&out, "%s\t%s\t%s%s\t%s\n", r.Kind, counted(r.Keys, "key", "keys"), about, bytesOf(r.Bytes), r.Why)
	}
	if idle > 0 {
		fmt.Fprintf(&out, "nothing is open in %s, in the oldest since %s; %s\n", counted(int(idle), "conversation", "conversations"), since(first), a.untilRemoved(first))
	}
	fmt.Fprintf(&out, "%s, %s under %s\n", counted(keys, "key", "keys"), bytesOf(bytes), a.store.Prefix())
	return a.say(out.String())
}

// untilRemoved says when a conversation is removed if nothing has been open in it since
// first.
func (a admin) untilRemoved(first time.Time) string {
	if a.threads <= 0 {
		return "they are kept forever (retention.threads is 0s)"
	}
	return fmt.Sprintf("that one is removed on %s (retention.threads is %s)", since(first.Add(a.threads)), a.threads)
}

// bytesOf formats a size for people.
func bytesOf(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}

// since formats a time for people, in UTC.
func since(at time.Time) string { return at.UTC().Format(time.RFC3339) }
