package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A wake is the wake-up of one kind in a change: the entries that it makes due soon.
type wake struct {
	kind    Kind
	entries []entry
}

// wakeMessage is what is published about a change: the partition, which is to be looked
// at, and a line for each kind. If people wait for the work and there is one entry of a
// kind, its score and id follow the kind, and nobody has to look.
func wakeMessage(partition int, wakes []wake, awaited bool) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(partition))
	for _, w := range wakes {
		fmt.Fprintf(&b, "\n%s", w.kind)
		if e := w.entries[0]; awaited && len(w.entries) == 1 {
			fmt.Fprintf(&b, " %s %s", e.at, e.id)
		}
	}
	return b.String()
}

// parseWakes reads a message. An entry has no id if the message names none.
func parseWakes(message string) (partition int, entries map[Kind]entry, ok bool) {
	number, lines, _ := strings.Cut(message, "\n")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= approvals.Partitions {
		return 0, nil, false
	}
	entries = make(map[Kind]entry)
	for line := range strings.SplitSeq(lines, "\n") {
		kind, named, _ := strings.Cut(line, " ")
		e := entry{partition: n}
		at, id, _ := strings.Cut(named, " ")
		if when, err := strconv.ParseInt(at, 10, 64); err == nil && id != "" { // otherwise it can be looked up
			e.id, e.at = id, score(when)
		}
		entries[Kind(kind)] = e
	}
	return n, entries, true
}
