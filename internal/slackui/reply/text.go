package reply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// messages returns what the thread shows of a run, at least one message. The first of a
// late run says where its end is. A prompt that was written on the web is quoted first,
// because the thread does not have it.
func (r *Replies) messages(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	all, err := r.progress(ctx, run)
	if err == nil && late(run) {
		all = append([]blockkit.Message{blockkit.ParagraphMessage(sayResultBelow, blockkit.Say(sayResultBelow))}, all...)
	}
	if err == nil && run.Via != "" && run.Parent == "" { // a resumed run has no message of its own
		all[0] = written(run, all[0])
	}
	return all, err
}

// written returns the message with a quote of what the person wrote on the web above it.
func written(run agentrun.Run, m blockkit.Message) blockkit.Message {
	q := approvals.QuoteOf(run.Prompt)
	text := blockkit.Visible(q.Text)
	if q.Left > 0 {
		text += " " + blockkit.Remark(blockkit.Count(q.Left, "character")+" left out")
	}
	m.Text = m.Text.After(blockkit.Ours(sayWroteOnTheWeb, blockkit.Person(run.Requester)))
	m.Blocks = append([]slack.Block{blockkit.RichText(
		blockkit.Line(blockkit.PersonSpan(run.Requester), blockkit.Say(sayOnTheWeb)), blockkit.Quoted(text))}, m.Blocks...)
	return m
}

func (r *Replies) progress(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	switch run.Status {
	case agentrun.RunMerged:
		return r.superseding(ctx, run)
	case agentrun.RunWaiting:
		if run.Supersedes != "" {
			return r.superseding(ctx, run)
		}
		return r.waiting(ctx, run)
	case agentrun.RunQueued, agentrun.RunRunning:
		return []blockkit.Message{working(run)}, nil
	case agentrun.RunDeferred:
		messages, err := r.deferred(ctx, run)
		return calling(run, messages), err
	case agentrun.RunCompleted:
		return calling(run, r.linked(run, answer(run))), nil
	case agentrun.RunFailed:
		t, err := r.Runs.Thread(ctx, run.Thread)
		if err != nil {
			return nil, err
		}
		done, err := r.effects(ctx, run)
		return calling(run, []blockkit.Message{failed(run, t.Closed != "", done)}), err
	case agentrun.RunParked:
		done, err := r.effects(ctx, run)
		return calling(run, []blockkit.Message{parked(run, done)}), err
	}
	return nil, fmt.Errorf("run %s has the unknown status %q", run.ID, run.Status)
}

func (r *Replies) waiting(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	t, err := r.Runs.Thread(ctx, run.Thread)
	if err != nil {
		return nil, err
	}
	text := sayQueued
	if before := slices.Index(t.Queue, run.ID); before > 0 {
		text = fmt.Sprintf(sayQueuedBehind, blockkit.Count(before+1, "request"))
	}
	first, err := r.Runs.Run(ctx, t.Active)
	if errors.Is(err, approvals.ErrNotFound) || err == nil && first.Status != agentrun.RunDeferred {
		return []blockkit.Message{blockkit.ParagraphMessage(text, blockkit.Say(text))}, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := r.Desk.Batch(ctx, first.Deferred)
	if errors.Is(err, approvals.ErrNotFound) || err == nil && b.Settled() {
		return []blockkit.Message{blockkit.ParagraphMessage(text, blockkit.Say(text))}, nil
	}
	if err != nil {
		return nil, err
	}
	what, tools := Pending(b)
	open, goesOn := what+" in this thread "+blockkit.Verb(len(b.OpenCalls()), "waits")+" for a decision", sayContinuesThen
	spans := append(append([]blockkit.Span{blockkit.Say(text + " " + open + ": ")}, tools...), blockkit.Say("."))
	return []blockkit.Message{blockkit.ParagraphMessage(text+" "+open+"."+goesOn, append(append(spans, r.Cards.LeadTo(ctx, b)...), blockkit.Say(goesOn))...)}, nil
}

func working(run agentrun.Run) blockkit.Message {
	agent := blockkit.Brief(run.Agent, 60)
	text := agent + " is thinking."
	switch {
	case run.Status == agentrun.RunQueued:
		text = agent + sayAboutToStart
	case len(run.Activity) > 0:
		text = agent + " is working."
	}
	return blockkit.ParagraphMessage(text, workingSpans(run)...)
}

func workingSpans(run agentrun.Run) []blockkit.Span {
	verb := " is thinking"
	switch {
	case run.Status == agentrun.RunQueued:
		verb = statusAboutToStart
	case len(run.Activity) > 0:
		verb = " is working"
	}
	spans := []blockkit.Span{blockkit.Styled(blockkit.Brief(run.Agent, 60), blockkit.Bold), blockkit.Say(verb)}
	if tools := activity(run.Activity); tools != nil && run.Status == agentrun.RunRunning {
		spans = append(append(spans, blockkit.Say(": ")), tools...)
	}
	if run.Steps > 0 {
		spans = append(spans, blockkit.Say(fmt.Sprintf(" (step %d)", run.Steps)))
	}
	return append(spans, blockkit.Say("."))
}

// worksWords say which tools the run is calling.
func worksWords(run agentrun.Run) string {
	if len(run.Activity) == 0 {
		return "is working"
	}
	var tools []string
	for i, tool := range run.Activity {
		if i == blockkit.NamesShown {
			tools = append(tools, "…")
			break
		}
		tools = append(tools, blockkit.Brief(tool, 60))
	}
	return "is working: " + strings.Join(tools, ", ")
}

// activity names the tools, each once with how often.
func activity(tools []string) []blockkit.Span {
	var order []string
	times := map[string]int{}
	for _, t := range tools {
		if times[t]++; times[t] == 1 {
			order = append(order, t)
		}
	}
	spans := make([]blockkit.Span, 0, len(order))
	for _, t := range order {
		name := blockkit.Brief(t, 60)
		if times[t] > 1 {
			name += fmt.Sprintf(" ×%d", times[t])
		}
		spans = append(spans, blockkit.Styled(name, blockkit.Code))
	}
	if len(spans) == 0 {
		return nil
	}
	return blockkit.ListSpans(spans, 6)
}

func (r *Replies) deferred(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	b, err := r.Desk.Batch(ctx, run.Deferred)
	if errors.Is(err, approvals.ErrNotFound) {
		text := sayRequestGone
		return []blockkit.Message{blockkit.ParagraphMessage(text, blockkit.Say(text))}, nil
	}
	if err != nil {
		return nil, err
	}
	var parts []string
	if n := len(b.Approvals); n > 0 {
		what := "approval of "
		if slices.ContainsFunc(b.Approvals, approvals.Approval.InDoubt) {
			what = "a decision about "
		}
		parts = append(parts, what+blockkit.Count(n, "call"))
	}
	if n := len(b.Calls); n > 0 {
		from := " that run elsewhere"
		if who := r.Fulfillers.Named(b); who != "" {
			from = " from " + who
		}
		parts = append(parts, "the results of "+blockkit.Count(n, "call")+from)
	}
	text := "Waiting for " + blockkit.List(parts) + "."
	if len(b.Approvals) > 0 {
		text += sayCardInThread + continuesWhen(b)
	}
	if o := superseded(b); o.any() {
		said, spans := o.words()
		text = "Stopped for " + blockkit.List(parts) + "."
		text, spans = text+sayNewerMessage+said, append([]blockkit.Span{blockkit.Say(text + " Then "), blockkit.PersonSpan(b.Requester), blockkit.Say(" sent a newer message.")}, spans...)
		return []blockkit.Message{blockkit.ParagraphMessage(text, spans...)}, nil
	}
	if b.Settled() {
		return r.decided(ctx, run)
	}
	if link, listed := r.Cards.Listing(ctx, b); listed {
		return []blockkit.Message{listing(b, "Waiting for "+blockkit.List(parts)+".", link)}, nil
	}
	return []blockkit.Message{blockkit.ParagraphMessage(text, blockkit.Say(text))}, nil
}

// listing is the message of a run whose batch is listed in a digest instead of on a
// card. link leads to the digest.
func listing(b approvals.Batch, text string, link []blockkit.Span) blockkit.Message {
	text += sayOnList
	next := " " + continuesWhen(b)
	spans := append([]blockkit.Span{blockkit.Say(text)}, link...)
	m := blockkit.ParagraphMessage(text+next, append(spans, blockkit.Say(next))...)
	m.Blocks = append(m.Blocks, slack.NewActionBlock("",
		blockkit.Button(ref.ActionReview.ID(0), ref.Card{Batch: b.ID}.String(), "Review", sayReviewSpoken)))
	return m
}

// continuesWhen says what must be decided before the agent continues.
func continuesWhen(b approvals.Batch) string {
	switch n := len(b.Approvals); {
	case len(b.Calls) > 0:
		return sayContinuesLater
	case n == 1:
		return sayWaits
	case n == 2:
		return sayContinuesBoth
	default:
		return sayContinuesAll + blockkit.Number(n) + " calls are decided."
	}
}

// failed says that a run did not succeed, and where to ask again: in a new thread if
// this one is closed.
func failed(run agentrun.Run, closed bool, done effects) blockkit.Message {
	where := sayTryHere
	if closed {
		where = sayTryElsewhere
	}
	return stopped(run, sayNotFinishedMark, sayNotFinishedWhy, sayNotFinished, done, blockkit.Say(sayNoRetry+where))
}

func parked(run agentrun.Run, done effects) blockkit.Message {
	return stopped(run, sayMustCheckMark, sayMustCheckWhy, sayEffectUnknown, done,
		blockkit.Say(sayNotRepeated), blockkit.Styled(blockkit.Brief(string(run.ID), 80), blockkit.Code), blockkit.Say("."))
}

// stopped says why a run does not continue, what it has done, and what to do next.
func stopped(run agentrun.Run, mark, why, unknown string, done effects, next ...blockkit.Span) blockkit.Message {
	words := cmp.Or(blockkit.Brief(run.Failure, 1000), unknown)
	said, what := done.paras()
	paras := slices.Concat([]blockkit.Para{blockkit.Line(blockkit.Styled(mark, blockkit.Bold), blockkit.Say(words))}, what, []blockkit.Para{blockkit.Line(next...)})
	return blockkit.Message{
		Text:   blockkit.Escape(why + blockkit.Clip(words, 300) + said),
		Blocks: []slack.Block{blockkit.RichText(paras...)},
	}
}

// linked adds the address at which people open the thread on the web, if it has one.
func (r *Replies) linked(run agentrun.Run, messages []blockkit.Message) []blockkit.Message {
	if r.Page == nil {
		return messages
	}
	if link := r.Page(run); link != "" {
		last := &messages[len(messages)-1]
		last.Blocks = append(last.Blocks, blockkit.RichText(blockkit.Line(slack.NewRichTextSectionLinkElement(link, sayOpenOnTheWeb, nil))))
	}
	return messages
}

// maxMessages is how many messages an answer may fill: a model that went wild
// must not flood the thread.
const maxMessages = 10

// answer is the final answer, in as many messages as it needs. What is beyond
// the last of them is not shown anywhere, and the last one says so.
func answer(run agentrun.Run) []blockkit.Message {
	agent := blockkit.Brief(run.Agent, 60)
	if strings.TrimSpace(run.Output) == "" {
		text := agent + sayNothingToAdd
		return []blockkit.Message{blockkit.ParagraphMessage(text, blockkit.Say(text))}
	}
	chunks := blockkit.Split(blockkit.Visible(strings.TrimSpace(run.Output)), blockkit.AnswerRunes)
	rest := 0
	for _, chunk := range chunks[min(len(chunks), maxMessages):] {
		rest += utf8.RuneCountInString(chunk)
	}
	chunks = chunks[:min(len(chunks), maxMessages)]
	messages := make([]blockkit.Message, 0, len(chunks))
	for i, chunk := range chunks {
		blocks := []slack.Block{blockkit.RichText(blockkit.Markdown(chunk)...)}
		note := blockkit.Ours(sayByModel)
		if len(chunks) > 1 {
			note = blockkit.Ours("%s, part %s of %s", note, blockkit.Num(i+1), blockkit.Num(len(chunks)))
		}
		if rest > 0 && i == len(chunks)-1 {
			cutOff := sayTooLong + blockkit.Count(rest, "more character") + " can't be shown."
			blocks = append(blocks, blockkit.RichText(blockkit.Line(blockkit.Styled(cutOff, blockkit.Bold), blockkit.Say(sayAskForRest))))
		}
		blocks = append(blocks, blockkit.Small(note))
		messages = append(messages, blockkit.Message{Text: blockkit.Escape(agent + ": " + blockkit.Clip(chunk, 600)), Blocks: blocks})
	}
	return messages
}
