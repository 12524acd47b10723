package slackui

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// amendmentsShown is how many changes of the arguments a card tells in full,
// the newest.
const amendmentsShown = 2

// amendments tells who changed the arguments, what that changed, and whose
// decisions it undid, in a group of paragraphs each. What is long is cut around
// what changed.
func (c Card) amendments(a approvals.Approval, d detail) [][]para {
	var groups [][]para
	first := max(0, len(a.Amendments)-amendmentsShown)
	for i, m := range a.Amendments[first:] {
		var out []para
		if i == 0 && first > 0 {
			out = append(out, line(say(count(first, "earlier change")+" of the arguments not shown here.")))
		}
		spans := []span{named(m.By.User), styled(" changed the arguments", bold)}
		if !m.At.IsZero() {
			spans = append(spans, say(" ("), dated(m.At), say(")"))
		}
		spans = append(append(spans, say(". ")), cleared(m)...)
		out = append(out, line(spans...))
		was, known := c.Earlier[m.From]
		now, also := c.Earlier[m.To]
		if m.To == a.Call.Digest {
			now, also = c.Calls[a.Call.ID]
		}
		if known && also {
			out = append(out, differences(changes(was.Args, now.Args, approvals.HiddenAt(a.WriteOnly)), d)...)
		} else {
			out = append(out, line(styled("What it changed cannot be shown.", italic)))
		}
		groups = append(groups, out)
	}
	return groups
}

// cleared says whose word was about other arguments.
func cleared(m approvals.Amendment) []span {
	if len(m.Cleared) == 0 {
		return []span{say("Nobody had decided yet.")}
	}
	spans := append([]span{say("What ")}, several(people(m.Cleared), namesShown)...)
	return append(spans, say(" decided was about the old ones and no longer counts."))
}

// A difference is one value that differs, in words that are harmless.
type difference struct{ path, was, now string }

// changes lists what differs between two sets of arguments, by the key of each
// value, and in the order of the old ones. Objects are entered as deep as a
// form does it.
func changes(was, now []byte, hide approvals.Hidden) []difference {
	return differ(nil, object(was), object(now), hide)
}

func differ(path []string, was, now []byte, hide approvals.Hidden) []difference {
	if bytes.Equal(was, now) {
		return nil
	}
	old, fresh := keysOf(was), keysOf(now)
	enter := !hide.Here() && was != nil && now != nil && was[0] == '{' && now[0] == '{' && len(path) < maxPath
	if !enter {
		return []difference{{path: labelOf(path), was: onOneLine(was, hide), now: onOneLine(now, hide)}}
	}
	var out []difference
	for _, m := range old {
		other, _ := valueAt(now, []string{m.key})
		out = append(out, differ(append(slices.Clip(path), m.key), was[m.start:m.end], other, hide.Below(m.key))...)
	}
	for _, m := range fresh {
		if _, there := valueAt(was, []string{m.key}); !there {
			out = append(out, differ(append(slices.Clip(path), m.key), nil, now[m.start:m.end], hide.Below(m.key))...)
		}
	}
	if len(out) == 0 { // the blanks between, or the order
		return []difference{{path: labelOf(path), was: "written otherwise", now: "means the same"}}
	}
	return out
}

// differences draws changes in one box, a line each if they are short.
func differences(all []difference, d detail) []para {
	var lines []string
	const most, runes, short = 10, 120, 48
	for i, x := range all {
		if i == min(most, d.keys) {
			lines = append(lines, remarkOf(count(len(all)-i, "more difference")+" not shown here"))
			break
		}
		was, now := contrast(x.was, x.now, min(runes, d.value/2))
		if was == now { // only where values are hidden
			now += " " + remarkOf("another value")
		}
		if said := x.path + ": " + was + " → " + now; utf8.RuneCountInString(said) <= short {
			lines = append(lines, said)
			continue
		}
		lines = append(lines, x.path+":", "  was "+was, "  now "+now)
	}
	if len(lines) == 0 {
		return []para{line(styled("They mean the same as before.", italic))}
	}
	return []para{box(strings.Join(lines, "\n"))}
}

func remarkOf(s string) string { return "⟦" + s + "⟧" }

// contrast cuts two values to this many runes each, so that where they begin
// to differ stays in sight.
func contrast(was, now string, most int) (string, string) {
	if utf8.RuneCountInString(was) <= most && utf8.RuneCountInString(now) <= most {
		return was, now
	}
	alike, runes := 0, 0
	for i, r := range was {
		if !strings.HasPrefix(now[i:], string(r)) {
			break
		}
		alike, runes = i+utf8.RuneLen(r), runes+1
	}
	if lead := 20; runes > 2*lead {
		alike -= len(lastRunes(was[:alike], lead))
		note := remarkOf(count(runes-lead, "character")+" alike") + " "
		was, now = note+was[alike:], note+now[alike:]
	}
	was, _ = shorten(was, most)
	now, _ = shorten(now, most)
	return was, now
}
