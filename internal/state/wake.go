package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// A wake is the wake-up of one kind in a change: the entries that it makes due soon.
type wake struct {
	channel string
	entries []entry
}

// message is what is published: the partition, which is to be looked at. If people wait
// for the work and there is one entry, its score and id follow, and nobody has to look.
func (w wake) message(awaited bool) string {
	e := w.entries[0]
	if !awaited || len(w.entries) > 1 {
		return strconv.Itoa(e.partition)
	}
	return fmt.Sprintf("%d %s %s", e.partition, e.at, e.id)
}

// parseWake reads a message. The entry has no id if the message names none.
func parseWake(message string) (e entry, ok bool) {
	number, named, isNamed := strings.Cut(message, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= approvals.Partitions {
		return entry{}, false
	}
	e.partition = n
	if !isNamed {
		return e, true
	}
	at, id, _ := strings.Cut(named, " ")
	when, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" {
		return e, true // it can be looked up
	}
	e.id, e.at = id, score(when)
	return e, true
}
