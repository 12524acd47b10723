package state

import (
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A wake is what a change says about one kind: the entries that it makes due soon, and
// when the first of those is due that it makes due later but before the next sweep; 0
// for none.
type wake struct {
	kind    Kind
	entries []entry
	later   score
}

// with adds an entry that is due after a while, and reports whether it is to be told of.
func (w wake) with(e entry, after time.Duration) (wake, bool) {
	switch {
	case after < near:
		w.entries = append(w.entries, e)
	case after < horizon:
		w.later = earliest(w.later, e.at)
	default:
		return w, false
	}
	return w, true
}

// earliest returns the earlier of two scores. A score of 0 does not count.
func earliest(a, b score) score {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// What lines of a message begin with that are not about entries that are due soon.
// Versions that do not know such lines ignore them: no kind begins like that.
const (
	lineLater = "@" // a kind follows, and when an entry of it is due
	lineFrom  = "=" // the name of the store follows that made the change
)

// wakeMessage is what is published about a change: the partition, which is to be looked
// at, and lines for each kind. If people wait for the work and there is one entry of a
// kind, its score and id follow the kind, and nobody has to look. from names the store
// that made the change, if its process works on what is due.
func wakeMessage(partition int, wakes []wake, awaited bool, from string) string {
	b := make([]byte, 0, 512)
	b = strconv.AppendInt(b, int64(partition), 10)
	for _, w := range wakes {
		if len(w.entries) > 0 {
			b = append(append(b, '\n'), w.kind...)
		}
		if awaited && len(w.entries) == 1 {
			e := w.entries[0]
			b = append(strconv.AppendInt(append(b, ' '), int64(e.at), 10), ' ')
			b = append(b, e.id...)
		}
		if w.later != 0 {
			b = append(append(append(b, '\n'), lineLater...), w.kind...)
			b = strconv.AppendInt(append(b, ' '), int64(w.later), 10)
		}
	}
	if from != "" {
		b = append(append(append(b, '\n'), lineFrom...), from...)
	}
	return string(b)
}

// probeMessage is what is published when the store of that name asks the partition for
// work. It is a message about no kind.
func probeMessage(partition int, from string) string { return wakeMessage(partition, nil, false, from) }

// news is what a message says.
type news struct {
	partition int
	entries   map[Kind]entry // an entry has no id if the message names none
	later     map[Kind]score // when to look
	from      string         // the store that made the change; empty if its process does not do the work
}

// probe reports whether a process has asked for work, and nothing has changed.
func (w news) probe() bool { return len(w.entries)+len(w.later) == 0 }

// parseWakes reads a message.
func parseWakes(message string) (w news, ok bool) {
	number, lines, _ := strings.Cut(message, "\n")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= approvals.Partitions {
		return news{}, false
	}
	w = news{partition: n, entries: make(map[Kind]entry), later: make(map[Kind]score)}
	for line := range strings.SplitSeq(lines, "\n") {
		if line == "" {
			continue
		}
		if from, is := strings.CutPrefix(line, lineFrom); is {
			w.from = from
			continue
		}
		kind, named, _ := strings.Cut(line, " ")
		at, id, _ := strings.Cut(named, " ")
		when, err := strconv.ParseInt(at, 10, 64)
		if k, is := strings.CutPrefix(kind, lineLater); is {
			if err == nil {
				w.later[Kind(k)] = score(when)
			}
			continue
		}
		e := entry{partition: n}
		if err == nil && id != "" { // otherwise it can be looked up
			e.id, e.at = id, score(when)
		}
		w.entries[Kind(kind)] = e
	}
	return w, true
}
