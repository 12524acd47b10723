package card

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// An opening is what a card says above its calls: who asks for them, what the agent
// waits for, and what approvers must know of all of them.
type opening struct{ *drawing }

func (o opening) blocks() []slack.Block { return blocksOf(o.paras()) }

func (o opening) paras() []blockkit.Para {
	var paras []blockkit.Para
	if said, open := o.risk(); open > 0 {
		paras = append(paras, blockkit.Line(blockkit.Styled(said, blockkit.Bold), blockkit.Say(" "+waiting(open, len(o.OnCard()), o.anyDoubt()))))
	}
	paras = append(paras, o.asks()...)
	if said := o.waits(); said != "" {
		paras = append(paras, blockkit.Line(blockkit.Say(said)))
	}
	paras = append(paras, o.participants()...)
	paras = append(paras, o.origin()...)
	paras = append(paras, o.unasked()...)
	for _, m := range o.Missed {
		paras = append(paras, blockkit.Line(blockkit.Say(sayNotShownIn), blockkit.GroupSpan(m.Channel), blockkit.Say(": "+whyMissed(m.Code)+sayComeHere)))
	}
	return paras
}

// asks says who asks and why, in their own words. They are quoted: anybody can
// write anything into them.
func (o opening) asks() []blockkit.Para {
	b := o.Batch
	who := []blockkit.Span{blockkit.PersonSpan(b.Requester), blockkit.Say(" asked the agent "), blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold)}
	if _, shared := b.Requester.Service(); shared {
		who = []blockkit.Span{blockkit.Say("The agent "), blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold), blockkit.Say(", whose credential " + blockkit.Number(len(b.Participants)) + " " + blockkit.PluralForm(len(b.Participants), "person", "people") + " can use, asks")}
	}
	var out []blockkit.Para
	if b.Prompt.Text == "" {
		out = append(out, blockkit.Line(append(who, blockkit.Say("."))...))
	} else {
		out = append(out, blockkit.Line(append(who, blockkit.Say(":"))...), quote(b.Prompt, quoted(o.detail)))
	}
	if b.Said.Text != "" {
		out = append(out, blockkit.Line(blockkit.Styled("The agent says:", blockkit.Bold)), quote(b.Said, quoted(o.detail)))
	}
	return out
}

// waits says what the agent waits for, or that it continues.
func (o opening) waits() string {
	n := len(o.Batch.Approvals)
	run, elsewhere := o.Fulfillers.Left(o.Batch), ""
	if run != "" {
		elsewhere = sayElsewhere + run
	}
	switch {
	case o.Batch.Settled() && o.executed():
		return ""
	case o.Batch.Settled() && o.Batch.Executor != "":
		if lapsed, _ := Unused(o.Batch, o.now); lapsed || o.takenBack() {
			return o.over()
		}
		return o.over() + sayAskerGetsIt
	case o.Batch.Settled():
		return o.over() + sayContinuesIn + o.itsThread() + "."
	case !o.undecided() && run == "":
		return ""
	case !o.undecided():
		return sayWaitsElsewhere + run
	case n == 1:
		return sayWaits + elsewhere
	case n > CallsPerCard:
		return partOf(o.Batch, "Call", o.Part) + sayContinuesWhenPart + everyCall(n) + " are decided." + elsewhere
	}
	return sayContinuesWhen + everyCall(n) + " are decided." + elsewhere
}

// undecided reports whether people can still decide a call of the batch. Of a call
// whose time has run out, the batch says so only later.
func (d *drawing) undecided() bool {
	return slices.ContainsFunc(d.Batch.Approvals, func(a approvals.Approval) bool { return a.OpenAt(d.now) })
}

// over says whether people decided all calls.
func (o opening) over() string {
	if slices.ContainsFunc(o.Batch.Approvals, func(a approvals.Approval) bool {
		return a.Status != approvals.Approved && a.Status != approvals.Denied && a.Status != approvals.Confirmed
	}) {
		return "Closed."
	}
	return "Decided."
}

// takenBack reports whether nobody is left who waits for an answer.
func (o opening) takenBack() bool {
	return !slices.ContainsFunc(o.Batch.Approvals, func(a approvals.Approval) bool { return a.Status != approvals.Withdrawn })
}

// executed reports whether it is known of an approved call what became of it:
// then each says so, and nothing else needs to be said of the request.
func (o opening) executed() bool {
	return slices.ContainsFunc(o.Batch.Approvals, func(a approvals.Approval) bool { return a.Execution.State != "" })
}

// origin says where the call was asked for, on a card outside of that thread.
func (o opening) origin() []blockkit.Para {
	why := ""
	switch o.Place {
	case PlaceThread:
		return nil
	case PlaceEscalation:
		why = sayShownLate
	case PlaceDirect:
		why = sayShownToYou
		if o.Person != "" && !slices.ContainsFunc(o.OnCard(), func(a approvals.Approval) bool {
			return a.Status == approvals.Pending && !o.Batch.Barred(a, o.Person)
		}) {
			why = sayWasShownToYou
		}
	case PlaceReview:
	}
	asked := "Asked in "
	if o.Batch.Executor != "" {
		asked = "Shown in "
	}
	spans := []blockkit.Span{blockkit.Say(asked), blockkit.GroupSpan(o.Batch.Channel), blockkit.Say(why + ".")}
	if strings.HasPrefix(o.Batch.Channel, "D") {
		spans = []blockkit.Span{blockkit.Say(sayAskedDirectly + why + ".")}
	}
	if o.Link != "" {
		spans = append(spans, blockkit.Say(" "), slack.NewRichTextSectionLinkElement(o.Link, "Open the thread", nil))
	}
	return []blockkit.Para{blockkit.Line(spans...)}
}

func (o opening) itsThread() string {
	if o.Place != PlaceThread {
		return "its own thread"
	}
	return "this thread"
}

func whyMissed(code string) string {
	switch code {
	case "is_archived":
		return sayArchived
	case "restricted_action":
		return sayMayNotPost
	}
	return sayNotInChannel
}

// blocksOf puts paragraphs into blocks. Slack folds a long block away, so nothing
// follows a long quotation in its block.
func blocksOf(paras []blockkit.Para) []slack.Block {
	var blocks []slack.Block
	var text []blockkit.Para
	for _, p := range paras {
		text = append(text, p)
		if q, ok := p.(*slack.RichTextQuote); ok && !neverFolded(q) {
			blocks, text = append(blocks, blockkit.RichText(text...)), nil
		}
	}
	if len(text) > 0 {
		blocks = append(blocks, blockkit.RichText(text...))
	}
	return blocks
}

func neverFolded(q *slack.RichTextQuote) bool {
	for _, e := range q.Elements {
		if t, ok := e.(*slack.RichTextSectionTextElement); ok && !blockkit.NeverFolded(t.Text) {
			return false
		}
	}
	return true
}
