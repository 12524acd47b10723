package card

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
)

// AmendmentsShown is how many changes of the arguments a card shows in full: the
// newest.
const AmendmentsShown = 2

// amendments shows who changed the arguments, the differences, and whose
// decisions that cleared, in a group of paragraphs for each change.
func (r row) amendments() [][]blockkit.Para {
	var groups [][]blockkit.Para
	first := max(0, len(r.a.Amendments)-AmendmentsShown)
	for i, m := range r.a.Amendments[first:] {
		var out []blockkit.Para
		if i == 0 && first > 0 {
			out = append(out, blockkit.Line(blockkit.Say(blockkit.Count(first, "earlier change")+sayMoreDifferences)))
		}
		spans := []blockkit.Span{blockkit.PersonSpan(m.By.User), blockkit.Styled(" changed the arguments", blockkit.Bold)}
		if !m.At.IsZero() {
			spans = append(spans, blockkit.Say(" ("), blockkit.DateSpan(m.At), blockkit.Say(")"))
		}
		spans = append(append(spans, blockkit.Say(". ")), ClearedDecisions(m)...)
		out = append(out, blockkit.Line(spans...))
		was, known := r.Earlier[m.From]
		now, also := r.Earlier[m.To]
		if m.To == r.a.Call.Digest {
			now, also = r.Calls[r.a.Call.ID]
		}
		if known && also {
			out = append(out, Differences(Changes(was.Args, now.Args, approvals.HiddenAt(r.a.WriteOnly)), r.detail)...)
		} else {
			out = append(out, blockkit.Line(blockkit.Styled(sayChangeNotShown, blockkit.Italic)))
		}
		groups = append(groups, out)
	}
	return groups
}

// ClearedDecisions says whose decisions no longer count because of the change.
func ClearedDecisions(m approvals.Amendment) []blockkit.Span {
	if len(m.Cleared) == 0 {
		return []blockkit.Span{blockkit.Say(sayNobodyDecided)}
	}
	spans := append([]blockkit.Span{blockkit.Say("What ")}, blockkit.ListSpans(blockkit.PersonSpans(m.Cleared), blockkit.NamesShown)...)
	return append(spans, blockkit.Say(sayOldDecisions))
}

// A Difference is one value that differs, before and after, as it is shown.
type Difference struct{ path, was, now string }

// Changes lists the values that differ between two sets of arguments, in the
// order of the old ones. It descends into objects as deep as a form does.
func Changes(was, now []byte, hide approvals.Hidden) []Difference {
	return differ(nil, form.Object(was), form.Object(now), hide)
}

func differ(path []string, was, now []byte, hide approvals.Hidden) []Difference {
	if bytes.Equal(was, now) {
		return nil
	}
	old, fresh := form.Members(was), form.Members(now)
	enter := !hide.Here() && was != nil && now != nil && was[0] == '{' && now[0] == '{' && len(path) < form.MaxPath
	if !enter {
		return []Difference{{path: form.LabelOf(path), was: form.OnOneLine(was, hide), now: form.OnOneLine(now, hide)}}
	}
	var out []Difference
	for _, m := range old {
		other, _ := form.ValueAt(now, []string{m.Key})
		out = append(out, differ(append(slices.Clip(path), m.Key), was[m.Start:m.End], other, hide.Below(m.Key))...)
	}
	for _, m := range fresh {
		if _, there := form.ValueAt(was, []string{m.Key}); !there {
			out = append(out, differ(append(slices.Clip(path), m.Key), nil, now[m.Start:m.End], hide.Below(m.Key))...)
		}
	}
	if len(out) == 0 { // white space, or the order of the keys
		return []Difference{{path: form.LabelOf(path), was: "written differently", now: "means the same"}}
	}
	return out
}

// Differences draws changes in one box, a line each if they are short.
func Differences(all []Difference, d blockkit.Detail) []blockkit.Para {
	var lines []string
	const most, runes, short = 10, 120, 48
	for i, x := range all {
		if i == min(most, d.Keys) {
			lines = append(lines, blockkit.Remark(blockkit.Count(len(all)-i, "more difference")+" not shown here"))
			break
		}
		was, now := cutAroundDifference(x.was, x.now, min(runes, d.Value/2))
		if was == now { // only where values are hidden
			now += " " + blockkit.Remark("another value")
		}
		if said := x.path + ": " + was + " → " + now; utf8.RuneCountInString(said) <= short {
			lines = append(lines, said)
			continue
		}
		lines = append(lines, x.path+":", "  was "+was, "  now "+now)
	}
	if len(lines) == 0 {
		return []blockkit.Para{blockkit.Line(blockkit.Styled(sayMeansSame, blockkit.Italic))}
	}
	return []blockkit.Para{blockkit.Box(strings.Join(lines, "\n"))}
}

// cutAroundDifference cuts two values to this many runes each, and keeps the
// place where they begin to differ.
func cutAroundDifference(was, now string, most int) (string, string) {
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
		alike -= len(blockkit.LastRunes(was[:alike], lead))
		note := blockkit.Remark(blockkit.Count(runes-lead, "character")+" alike") + " "
		was, now = note+was[alike:], note+now[alike:]
	}
	was, _ = blockkit.Shorten(was, most)
	now, _ = blockkit.Shorten(now, most)
	return was, now
}
