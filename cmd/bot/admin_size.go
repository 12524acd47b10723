package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/state"
)

// untilRemoved is how long a conversation is there.
const untilRemoved = "for ever, or until nobody has used them for retention.threads (30 days if left out)"

// kept says why a kind of key is there, and for how long.
var kept = map[string]string{
	"thread":     "conversations, " + untilRemoved,
	"messages":   "what was said in them, as long as they",
	"run":        "runs, as long as their conversations",
	"journal":    "what runs executed, as long as they",
	"batch":      "requests with their decisions, as long as their conversations",
	"args":       "the exact arguments of calls, as long as their requests",
	"facts":      "what happened to requests, for audits, for ever",
	"idle":       "conversations in which nothing is open, until they are removed",
	"memo":       "what surfaces remember, such as where a card is, as long as what it is about",
	"due":        "the index of work that is due, as long as it is",
	"list":       "open requests by person, group and channel, as long as they are open",
	"decided":    "the last 50 decisions of a person and partition",
	"ledger":     "calls that a policy counts, two days",
	"sheet":      "lists of calls to decide at once: a day, or 30 days once finished",
	"attempts":   "failures of due work, until it succeeds",
	"parked":     "work that was given up, until an operator acts",
	"layout":     "the number of partitions, for ever",
	"parkedruns": "runs that wait for an operator",
	"request":    "changes that were made, so that a repetition counts once: mostly ten minutes",
}

func adminSize(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, _ []string) error { return a.size(ctx, *asJSON) })
}

// sizeRow is a kind of key with the reason for it.
type sizeRow struct {
	state.Size

	Why string `json:"why"`
}

// size lists what is in Redis and why.
func (a admin) size(ctx context.Context, asJSON bool) error {
	sizes, err := state.NewBrowser(a.store).Sizes(ctx)
	if err != nil {
		return fmt.Errorf("measure what is in Redis: %w", err)
	}
	rows := make([]sizeRow, len(sizes))
	keys, bytes := 0, int64(0)
	for i, s := range sizes {
		kind, _, _ := strings.Cut(s.Kind, ":")
		rows[i] = sizeRow{Size: s, Why: kept[kind]}
		keys, bytes = keys+s.Keys, bytes+s.Bytes
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
	fmt.Fprintf(&out, "%s, %s under %s\n", counted(keys, "key", "keys"), bytesOf(bytes), a.store.Prefix())
	return a.say(out.String())
}

// bytesOf is a size for people.
func bytesOf(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}

// since is a time for people, in UTC.
func since(at time.Time) string { return at.UTC().Format(time.RFC3339) }
