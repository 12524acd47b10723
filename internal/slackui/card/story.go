package card

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/summary"
)

// summaryRunes is how much of a summary a headline and a row show. Slack allows
// a header 150 characters.
const summaryRunes = 130

// Summary says what a call does in words, marked and on one line. It quotes
// arguments, so it is for those who may read them: of a call that is not loaded
// it says only which tool it is.
func (c Card) Summary(a approvals.Approval) string {
	call, known := c.Calls[a.Call.ID]
	if !known {
		return blockkit.Brief(summary.Words(a.Call.Name), summaryRunes)
	}
	return SummaryOf(a, call)
}

// SummaryOf is the summary of a call whose arguments are loaded, marked and on
// one line.
func SummaryOf(a approvals.Approval, call approvals.ToolCall) string {
	return blockkit.Brief(summary.Of(a.Summary, call.Name, call.Args, a.WriteOnly), summaryRunes)
}

// worst is the worst severity of the open calls of the card, and how many of
// how many open calls have it.
func (c Card) worst(now time.Time) (s approvals.Severity, n, open int) {
	for _, a := range c.OnCard() {
		if !a.OpenAt(now) {
			continue
		}
		open++
		switch d := approvals.CompareSeverity(a.Severity, s); {
		case n == 0 || d < 0:
			s, n = a.Severity, 1
		case d == 0:
			n++
		}
	}
	return s, n, open
}

// quote is what somebody wrote, as a quotation.
func quote(q approvals.Quote, most int) blockkit.Para {
	text, left := blockkit.Cut(blockkit.Visible(strings.TrimSpace(q.Text)), most)
	if left += q.Left; left > 0 {
		text += " " + blockkit.Remark(blockkit.Count(left, "character")+" left out")
	}
	return blockkit.Quoted(text)
}

// quoted is how much of somebody's words a card quotes, with this detail.
func quoted(d blockkit.Detail) int { return min(d.Words, 300) }

// asks says who asks and why, in their own words. They are quoted: anybody can
// write anything into them.
func (c Card) asks(d blockkit.Detail) []blockkit.Para {
	b := c.Batch
	who := []blockkit.Span{blockkit.PersonSpan(b.Requester), blockkit.Say(" asked the agent "), blockkit.Styled(blockkit.Brief(b.Agent, 60), blockkit.Bold)}
	var out []blockkit.Para
	if b.Prompt.Text == "" {
		out = append(out, blockkit.Line(append(who, blockkit.Say("."))...))
	} else {
		out = append(out, blockkit.Line(append(who, blockkit.Say(":"))...), quote(b.Prompt, quoted(d)))
	}
	if b.Said.Text != "" {
		out = append(out, blockkit.Line(blockkit.Styled("The agent says:", blockkit.Bold)), quote(b.Said, quoted(d)))
	}
	return out
}

// waits says what the agent waits for, or that it continues.
func (c Card) waits() string {
	n := len(c.Batch.Approvals)
	elsewhere := ""
	if ext := len(c.Batch.Calls); ext > 0 {
		elsewhere = " It also waits for " + blockkit.Count(ext, "call") + " to run elsewhere."
	}
	switch {
	case c.Batch.Settled() && c.executed():
		return ""
	case c.Batch.Settled() && c.Batch.Executor != "":
		return c.over() + " The agent that runs it has the answer."
	case c.Batch.Settled():
		return c.over() + " The agent continues in " + c.itsThread() + "."
	case n == 1:
		return "The agent waits for this decision." + elsewhere
	case n > CallsPerCard:
		from := c.Part * CallsPerCard
		return "Calls " + blockkit.Number(from+1) + " to " + blockkit.Number(from+len(c.OnCard())) + " of " + blockkit.Number(n) +
			". The agent continues when " + everyCall(n) + " are decided." + elsewhere
	}
	return "The agent continues when " + everyCall(n) + " are decided." + elsewhere
}

// over says whether people decided all calls.
func (c Card) over() string {
	if slices.ContainsFunc(c.Batch.Approvals, func(a approvals.Approval) bool {
		return a.Status != approvals.Approved && a.Status != approvals.Denied
	}) {
		return "Closed."
	}
	return "Decided."
}

// executed reports whether it is known of an approved call what became of it:
// then each says so, and nothing else needs to be said of the request.
func (c Card) executed() bool {
	return slices.ContainsFunc(c.Batch.Approvals, func(a approvals.Approval) bool { return a.Execution.State != "" })
}

// blocksOf puts paragraphs into blocks. Slack folds a long block away, so none
// goes on behind a long quotation.
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

// says is why the tool itself asks, in its own words.
func says(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	if a.GateReason.Text == "" {
		return nil
	}
	return []blockkit.Para{blockkit.Line(blockkit.Styled("The tool says:", blockkit.Bold)), quote(a.GateReason, quoted(d))}
}

// changes says what the call would change, as its tool saw it, and what people
// had been told before they are asked again.
func changes(a approvals.Approval, d blockkit.Detail) []blockkit.Para {
	p := a.Preview
	var out []blockkit.Para
	if p.Again > 0 {
		spans := []blockkit.Span{blockkit.Styled("Asked again", blockkit.Bold), blockkit.Say(": what it would change is no longer what was approved")}
		if len(p.Before.Facts) > 0 {
			spans = append(append(spans, blockkit.Say("; before: ")), factSpans(p.Before.Facts, d)...)
		}
		out = append(out, blockkit.Line(append(spans, blockkit.Say("."))...))
	}
	if why := notPreviewed[p.Status]; why != "" {
		return append(out, blockkit.Line(blockkit.Say(why)))
	}
	if p.Status != approvals.PreviewMade || (len(p.Facts) == 0 && p.Content.Digest.IsZero()) {
		return out
	}
	spans := []blockkit.Span{blockkit.Styled("Checked", blockkit.Bold)}
	if !p.CheckedAt.IsZero() {
		spans = append(spans, blockkit.Say(" "), blockkit.DateSpan(p.CheckedAt))
	}
	if len(p.Facts) > 0 {
		spans = append(append(spans, blockkit.Say(": ")), factSpans(p.Facts, d)...)
	}
	if spans = append(spans, blockkit.Say(".")); !p.Content.Digest.IsZero() {
		spans = append(spans, blockkit.Say(" View full shows the change."))
	}
	return append(out, blockkit.Line(spans...))
}

// factSpans lists facts on one line.
func factSpans(facts []approvals.Fact, d blockkit.Detail) []blockkit.Span {
	var out []blockkit.Span
	most := min(d.Words, approvals.MaxFactText)
	for i, f := range facts {
		if i > 0 {
			out = append(out, blockkit.Say(", "))
		}
		if most < approvals.MaxFactText && i == 4 {
			return append(out, blockkit.Say("and "+blockkit.Count(len(facts)-i, "more fact")))
		}
		out = append(out, blockkit.Say(blockkit.Brief(lowerFirst(f.Label), most)+" "))
		if f.At.IsZero() {
			out = append(out, blockkit.Styled(blockkit.Brief(f.Value, most), blockkit.Bold))
			continue
		}
		out = append(out, blockkit.DateSpan(f.At))
	}
	return out
}

// lowerFirst writes a label such as "Size" within a line; "HTTP status" stays.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// became says what became of an approved call, as the journal has it. These are
// all calls of a row: they may have taken different times.
func (c Card) became(r row, d blockkit.Detail, now time.Time) []blockkit.Para {
	a := r.a
	if a.StatusAt(now) != approvals.Approved {
		return nil
	}
	e := a.Execution
	if e.State == "" {
		return []blockkit.Para{blockkit.Line(blockkit.Say(c.notYet(now)))}
	}
	word, known := executed[e.State]
	if !known {
		return []blockkit.Para{blockkit.Line(blockkit.Say("This version doesn't know what became of it."))}
	}
	spans := []blockkit.Span{blockkit.Styled(executedMarks[e.State]+word, blockkit.Bold)}
	if took := c.took(r); took != "" && (e.State == approvals.Ran || e.State == approvals.RanFailed) {
		spans = append(spans, blockkit.Say(map[approvals.ExecutionState]string{approvals.Ran: " in ", approvals.RanFailed: " after "}[e.State]+took))
	}
	if !e.At.IsZero() {
		spans = append(spans, blockkit.Say(" ("), blockkit.DateSpan(e.At), blockkit.Say(")"))
	}
	words := e.Words
	switch e.State {
	case approvals.Ran:
		words = e.Excerpt
	case approvals.InDoubt:
		spans = append(spans, blockkit.Say(": it may or may not have taken effect. Check before you repeat it."))
	case approvals.AskedAgain:
		spans = append(spans, blockkit.Say(": what it would change was no longer what was approved. A new card asks about it."))
	case approvals.RanFailed, approvals.NotRun, approvals.Refused:
	}
	out := []blockkit.Para{blockkit.Line(spans...)}
	if strings.TrimSpace(words) != "" {
		last := len(spans) - 1
		if e.State == approvals.Ran {
			spans = append(spans, blockkit.Say(". Its result begins:"))
		} else if t, ok := spans[last].(*slack.RichTextSectionTextElement); !ok || !strings.HasSuffix(t.Text, ".") {
			spans = append(spans, blockkit.Say(":"))
		}
		out = []blockkit.Para{blockkit.Line(spans...), quote(approvals.Quote{Text: words}, quoted(d))}
	}
	return out
}

// soon is for how long after the last decision a call without an outcome is
// taken to be running. Calls that ran before outcomes were stored never get one.
const soon = 10 * time.Minute

// notYet is what an approved call waits for, or that its outcome isn't known.
func (c Card) notYet(now time.Time) string {
	switch {
	case !c.Batch.Settled() && len(c.Batch.Approvals) > 1:
		return "Not run yet: the agent continues when " + everyCall(len(c.Batch.Approvals)) + " are decided."
	case !c.Batch.Settled():
		return "Not run yet: the agent also waits for calls that run elsewhere."
	case c.Batch.Executor != "":
		return "Nobody has reported yet whether it ran."
	case now.Sub(c.settledAt()) < soon:
		return "Running or about to run."
	}
	return "No record yet of whether it ran. Check before you repeat it."
}

// settledAt is when the last call of the batch was decided.
func (c Card) settledAt() time.Time {
	var last time.Time
	for _, a := range c.Batch.Approvals {
		if a.Ending.At.After(last) {
			last = a.Ending.At
		}
	}
	for _, x := range c.Batch.Calls {
		if x.Ending.At.After(last) {
			last = x.Ending.At
		}
	}
	return last
}

// took is how long the calls of a row ran.
func (c Card) took(r row) string {
	var all []time.Duration
	for _, i := range r.calls {
		if t := c.OnCard()[i].Execution.Took; t > 0 {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return ""
	}
	least, most := duration(slices.Min(all)), duration(slices.Max(all))
	if least == most {
		return most
	}
	return least + " to " + most
}
