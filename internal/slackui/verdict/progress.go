package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// QuorumsShown is how many quorums are shown one by one.
const QuorumsShown = 5

// Progress is a line for each quorum, with alternatives in a list, and one that names
// who approved without a place in any. It never names someone as missing who can't
// approve.
func Progress(b approvals.Batch, a approvals.Approval) []blockkit.Para {
	all := a.Progress()
	for i := range all {
		all[i].Quorum.From = b.Unbarred(a, all[i].Quorum.From)
	}
	if len(all) == 0 {
		return []blockkit.Para{blockkit.Line(blockkit.Styled(sayNoApprovers, blockkit.Bold))}
	}
	var out []blockkit.Para
	lines := 0
	for _, g := range groupQuorums(all) {
		if lines >= QuorumsShown {
			out = append(out, blockkit.Line(blockkit.Say(sayMoreQuorums+blockkit.Number(len(all))+" quorums in all.")))
			break
		}
		if g.choice == 0 {
			out = append(out, blockkit.Line(quorum(g.options[0][0], earlierQuorums(all, g.options[0][0].Quorum.Stage), false)...))
			lines++
			continue
		}
		out = append(out, g.paras(earlierQuorums(all, g.options[0][0].Quorum.Stage))...)
		lines += len(g.options)
	}
	if besides := placeless(a, all); len(besides) > 0 {
		spans := append([]blockkit.Span{blockkit.Say(sayApprovedToo)}, blockkit.ListSpans(blockkit.PersonSpans(besides), blockkit.NamesShown)...)
		out = append(out, blockkit.Line(append(spans, blockkit.Say(sayNoPlace))...))
	}
	return out
}

// placeless returns who approved and fills no place: their quorums are complete without
// them, or someone approved in their place while they were away.
func placeless(a approvals.Approval, all []approvals.Progress) []approvals.UserID {
	return slices.DeleteFunc(a.Deciders(a.Yes()), func(u approvals.UserID) bool {
		return slices.ContainsFunc(all, func(q approvals.Progress) bool {
			return slices.ContainsFunc(q.By, func(s approvals.Seat) bool { return s.User == u })
		})
	})
}

// A quorumGroup is one quorum without alternatives, or all options of a choice.
type quorumGroup struct {
	choice  int
	options [][]approvals.Progress
}

// groupQuorums orders the quorums by stage, with the options of a choice
// together.
func groupQuorums(all []approvals.Progress) []quorumGroup {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y approvals.Progress) int { return x.Quorum.Stage - y.Quorum.Stage })
	var out []quorumGroup
	for _, q := range all {
		g := -1
		if q.Quorum.Choice != 0 {
			g = slices.IndexFunc(out, func(g quorumGroup) bool { return g.choice == q.Quorum.Choice })
		}
		if g < 0 {
			g, out = len(out), append(out, quorumGroup{choice: q.Quorum.Choice})
		}
		o := slices.IndexFunc(out[g].options, func(o []approvals.Progress) bool { return o[0].Quorum.Option == q.Quorum.Option })
		if o < 0 {
			o, out[g].options = len(out[g].options), append(out[g].options, nil)
		}
		out[g].options[o] = append(out[g].options[o], q)
	}
	return out
}

// paras lists alternatives, of which one is enough.
func (g quorumGroup) paras(after []string) []blockkit.Para {
	met := slices.IndexFunc(g.options, complete)
	var items []blockkit.Para
	for i, o := range g.options {
		if i == QuorumsShown {
			items = append(items, blockkit.Line(blockkit.Say("or one of "+blockkit.Number(len(g.options)-i)+" more ways")))
			break
		}
		var spans []blockkit.Span
		for j, q := range o {
			if j > 0 {
				spans = append(spans, blockkit.Say("; together with "))
			}
			spans = append(spans, quorum(q, nil, met >= 0 && met != i)...)
		}
		items = append(items, blockkit.Line(spans...))
	}
	head := []blockkit.Span{blockkit.Styled("Any of:", blockkit.Bold)}
	if met >= 0 {
		head = []blockkit.Span{blockkit.Styled("Any of", blockkit.Bold), blockkit.Say(", complete:")}
	} else if len(after) > 0 {
		head = append(head, blockkit.Say(" "+asked(after)))
	}
	return []blockkit.Para{blockkit.Line(head...), slack.NewRichTextList(slack.RTEListBullet, 0, items...)}
}

func complete(o []approvals.Progress) bool {
	return !slices.ContainsFunc(o, func(q approvals.Progress) bool { return q.Quorum.Need < 1 || len(q.By) < q.Quorum.Need })
}

// earlierQuorums names the quorums that must be met before those of the stage
// are asked.
func earlierQuorums(all []approvals.Progress, stage int) []string {
	var names []string
	for _, g := range groupQuorums(all) {
		if g.options[0][0].Quorum.Stage >= stage || slices.ContainsFunc(g.options, complete) {
			continue
		}
		var either []string
		for _, o := range g.options {
			var together []string
			for _, q := range o {
				together = append(together, blockkit.Brief(q.Quorum.Name, 60))
			}
			either = append(either, strings.Join(together, " with "))
		}
		names = append(names, strings.Join(either, " or "))
	}
	return names
}

func asked(after []string) string {
	if len(after) == 1 {
		return "asked once " + after[0] + " has approved"
	}
	for i, name := range after {
		if strings.Contains(name, " or ") {
			after[i] = "(" + name + ")"
		}
	}
	return "asked once " + blockkit.List(after) + " have approved"
}

// quorum shows the progress of one quorum. after are the names of those that
// must be met first; spare means that an alternative is met.
func quorum(q approvals.Progress, after []string, spare bool) []blockkit.Span {
	spans := []blockkit.Span{
		blockkit.Styled(blockkit.Brief(q.Quorum.Name, 60), blockkit.Bold),
		blockkit.Say(fmt.Sprintf(": %d of %s", len(q.By), blockkit.Count(q.Quorum.Need, "approval"))),
	}
	if len(q.By) > 0 {
		spans = append(append(spans, blockkit.Say(" by ")), seatSpans(q.By)...)
	}
	switch {
	case q.Quorum.Need < 1:
		return append(spans, blockkit.Say(sayNeverMet))
	case len(q.By) >= q.Quorum.Need:
		return append(spans, blockkit.Say(", complete"))
	case spare:
		return append(spans, blockkit.Say(", no longer needed"))
	}
	var from []blockkit.Span
	for _, g := range q.Quorum.From.Groups {
		from = append(from, blockkit.GroupSpan(g))
	}
	for _, u := range q.Quorum.From.Users {
		from = append(from, blockkit.PersonSpan(u))
	}
	if len(from) == 0 {
		from = []blockkit.Span{blockkit.Say(sayNobodyCan)}
	}
	spans = append(append(spans, blockkit.Say(", from ")), blockkit.ListSpans(from, blockkit.NamesShown)...)
	if len(after) > 0 {
		spans = append(spans, blockkit.Say(", "+asked(after)))
	}
	return spans
}

// seatSpans names who approved, and for whom.
func seatSpans(seats []approvals.Seat) []blockkit.Span {
	var spans []blockkit.Span
	for i, s := range seats {
		if i == blockkit.NamesShown {
			return append(spans, blockkit.Say(" and "+blockkit.Number(len(seats)-i)+" more"))
		}
		if i > 0 {
			spans = append(spans, blockkit.Say(", "))
		}
		if spans = append(spans, blockkit.PersonSpan(s.User)); s.For != "" {
			spans = append(spans, blockkit.Say(" (for "), blockkit.PersonSpan(s.For), blockkit.Say(", who is away)"))
		}
	}
	return spans
}
