package card

import (
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// footer is the small print under an open row. Text of the policy is in plain
// text elements of its own.
func (r row) footer() slack.Block {
	a, q := r.a, r.a.Requirement
	var said []blockkit.Mrkdwn
	if !q.Deadline.IsZero() {
		expires := blockkit.Ours(sayExpires, blockkit.When(q.Deadline))
		if a.InDoubt() {
			expires = blockkit.Ours(sayDoubtExpires, blockkit.When(q.Deadline))
		}
		said = append(said, expires)
	}
	switch deny := max(q.Deny, 1); {
	case q.NamesNobody():
		if a.InDoubt() || len(q.Vetoes) == 0 {
			said = append(said, blockkit.Ours(sayNobodyDecides))
		}
	case a.InDoubt():
		said = append(said, blockkit.Ours(sayDoubtOne))
	case deny == 1:
		said = append(said, blockkit.Ours(sayOneDenial))
	default:
		said = append(said, blockkit.Ours("%s denials stop it", blockkit.Num(deny)))
	}
	if q.ReasonNeeded {
		said = append(said, blockkit.Ours(sayNeedsReason))
	}
	if _, shared := r.Batch.Requester.Service(); q.Separation && !shared {
		said = append(said, blockkit.Ours("%s can't approve", blockkit.Person(r.Batch.Requester)))
	}
	if r.Batch.BarsParticipants(q) {
		said = append(said, blockkit.Ours("%s can't approve", Names(r.Batch.Participants)))
	}
	if editors := a.Editors(); len(editors) > 0 && !q.EditorMaySign {
		said = append(said, blockkit.Ours(sayEditedIt, Names(editors)))
	}
	said = append(said, r.digests())
	said[0] = said[0].Capitalized()
	elements := []slack.MixedElement{blockkit.Join(said, " · ").Object()}
	for i, v := range q.Vetoes {
		if a.InDoubt() {
			break // a veto is of no use: it has run or not
		}
		if i == verdict.QuorumsShown {
			elements = append(elements, blockkit.Literal(blockkit.Count(len(q.Vetoes)-i, "more group")+" can stop it."))
			break
		}
		elements = append(elements, blockkit.Literal(veto(v)))
	}
	if rule, policy := ruleOf(a.Rule); rule != "" {
		elements = append(elements, blockkit.Literal("Rule: "+blockkit.Brief(rule, 60)+policy))
	}
	return slack.NewContextBlock("", elements...)
}

func veto(q approvals.Quorum) string {
	if q.Need == 1 {
		return "One denial by " + blockkit.Brief(q.Name, 60) + " stops it."
	}
	return blockkit.Number(q.Need) + " denials by " + blockkit.Brief(q.Name, 60) + " stop it."
}

// ruleOf takes the rule's name and the policy's version apart.
func ruleOf(rule string) (name, policy string) {
	i := strings.LastIndexByte(rule, '@')
	if i < 0 {
		return rule, ""
	}
	return rule[:i], ", policy " + blockkit.Brief(rule[i+1:], 16)
}

// digests lists the short digests of the calls of a row.
func (r row) digests() blockkit.Mrkdwn {
	var all []blockkit.Mrkdwn
	for _, i := range r.calls {
		all = append(all, blockkit.Ours("`%s`", blockkit.CodeWord(r.OnCard()[i].Call.Digest.Short())))
	}
	if r.several() {
		return blockkit.Ours("digests %s", blockkit.And(all))
	}
	return blockkit.Ours("digest %s", all[0])
}
