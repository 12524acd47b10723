package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// messages is what the thread says of a run, at least one message.
func (r *Replies) messages(ctx context.Context, run agentrun.Run) ([]message, error) {
	switch run.Status {
	case agentrun.RunMerged:
		return r.superseding(ctx, run)
	case agentrun.RunWaiting:
		if run.Supersedes != "" {
			return r.superseding(ctx, run)
		}
		return r.waiting(ctx, run)
	case agentrun.RunQueued, agentrun.RunRunning:
		return []message{working(run)}, nil
	case agentrun.RunDeferred:
		return r.deferred(ctx, run)
	case agentrun.RunCompleted:
		return answer(run), nil
	case agentrun.RunFailed:
		t, err := r.runs.Thread(ctx, run.Thread)
		if err != nil {
			return nil, fmt.Errorf("load thread %s: %w", run.Thread, err)
		}
		return []message{failed(run, t.Closed != "")}, nil
	case agentrun.RunParked:
		return []message{parked(run)}, nil
	}
	return nil, fmt.Errorf("run %s has the unknown status %q", run.ID, run.Status)
}

// plainly is a message of one paragraph.
func plainly(text string, spans ...span) message {
	return message{text: escape(text), blocks: []slack.Block{richText(line(spans...))}}
}

func (r *Replies) waiting(ctx context.Context, run agentrun.Run) ([]message, error) {
	t, err := r.runs.Thread(ctx, run.Thread)
	if err != nil {
		return nil, fmt.Errorf("load thread %s: %w", run.Thread, err)
	}
	text := "Queued: this starts when the agent is done with what it is doing in this thread."
	if before := slices.Index(t.Queue, run.ID); before > 0 {
		text = fmt.Sprintf("Queued behind %s of this thread.", count(before+1, "request"))
	}
	first, err := r.runs.Run(ctx, t.Active)
	if errors.Is(err, approvals.ErrNotFound) || err == nil && first.Status != agentrun.RunDeferred {
		return []message{plainly(text, say(text))}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", t.Active, err)
	}
	b, err := r.desk.Batch(ctx, first.Deferred)
	if errors.Is(err, approvals.ErrNotFound) || err == nil && b.Settled() {
		return []message{plainly(text, say(text))}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load batch %s: %w", first.Deferred, err)
	}
	what, tools := pending(b)
	open, goesOn := what+" of this thread "+verb(pendingCalls(b), "waits")+" to be settled", " The agent goes on then."
	spans := append(append([]span{say(text + " " + open + ": ")}, tools...), say("."))
	return []message{plainly(text+" "+open+"."+goesOn, append(append(spans, r.cards.leadTo(ctx, b)...), say(goesOn))...)}, nil
}

func working(run agentrun.Run) message {
	agent := brief(run.Agent, 60)
	text, verb := agent+" is thinking.", " is thinking"
	switch {
	case run.Status == agentrun.RunQueued:
		text, verb = agent+" is about to start.", " is about to start"
	case len(run.Activity) > 0:
		text, verb = agent+" is working.", " is working"
	}
	spans := []span{styled(agent, bold), say(verb)}
	if tools := activity(run.Activity); tools != nil && run.Status == agentrun.RunRunning {
		spans = append(append(spans, say(": ")), tools...)
	}
	if run.Steps > 0 {
		spans = append(spans, say(fmt.Sprintf(" (step %d)", run.Steps)))
	}
	return plainly(text, append(spans, say("."))...)
}

// activity names the tools, each once with how often.
func activity(tools []string) []span {
	var order []string
	times := map[string]int{}
	for _, t := range tools {
		if times[t]++; times[t] == 1 {
			order = append(order, t)
		}
	}
	spans := make([]span, 0, len(order))
	for _, t := range order {
		name := brief(t, 60)
		if times[t] > 1 {
			name += fmt.Sprintf(" ×%d", times[t])
		}
		spans = append(spans, styled(name, code))
	}
	if len(spans) == 0 {
		return nil
	}
	return several(spans, 6)
}

func (r *Replies) deferred(ctx context.Context, run agentrun.Run) ([]message, error) {
	b, err := r.desk.Batch(ctx, run.Deferred)
	if errors.Is(err, approvals.ErrNotFound) {
		text := "Stopped for signatures, and the request for them is gone. Ask again."
		return []message{plainly(text, say(text))}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load batch %s: %w", run.Deferred, err)
	}
	var parts []string
	if n := len(b.Approvals); n > 0 {
		parts = append(parts, "signatures on "+count(n, "call"))
	}
	if n := len(b.Calls); n > 0 {
		parts = append(parts, "the results of "+count(n, "call")+" that run elsewhere")
	}
	text := "Waiting for " + list(parts) + "."
	if len(b.Approvals) > 0 {
		text += " The card is in this thread; the agent goes on when everything on it is decided."
	}
	if o := superseded(b); o.any() {
		said, spans := o.words()
		text = "Stopped for " + list(parts) + "."
		text, spans = text+" Then a newer message came."+said, append([]span{say(text + " Then "), named(b.Requester), say(" wrote something new.")}, spans...)
		return []message{plainly(text, spans...)}, nil
	}
	if b.Settled() {
		text = "Stopped for " + list(parts) + ". Everything is decided; it went on below."
	} else if m, listed := r.cards.listing(ctx, b, "Waiting for "+list(parts)+"."); listed {
		return []message{m}, nil
	}
	return []message{plainly(text, say(text))}, nil
}

// failed says that a run did not succeed and where to ask again: not in a
// thread that is closed.
func failed(run agentrun.Run, closed bool) message {
	where := "To try again, mention the agent in this thread."
	if closed {
		where = "This thread cannot go on. To try again, mention the agent in a new one."
	}
	words := brief(run.Failure, 1000)
	if words == "" {
		words = "The agent could not finish."
	}
	return message{
		text: escape("The agent could not finish: " + clip(words, 300)),
		blocks: []slack.Block{richText(
			line(styled("⚠ The agent could not finish. ", bold), say(words)),
			line(say("Nothing more will happen by itself. "+where)),
		)},
	}
}

func parked(run agentrun.Run) message {
	words := brief(run.Failure, 1000)
	if words == "" {
		words = "It is not known whether a call happened."
	}
	return message{
		text: escape("The agent has stopped and somebody must look: " + clip(words, 300)),
		blocks: []slack.Block{richText(
			line(styled("⚠ The agent has stopped, and somebody must look. ", bold), say(words)),
			line(say("Nothing is repeated by itself, and this thread waits. Check what really happened, then ask whoever runs Countersign to end run "),
				styled(brief(string(run.ID), 80), code), say(".")),
		)},
	}
}

// maxMessages is how many messages an answer may fill: a model that went wild
// must not flood the thread.
const maxMessages = 10

// answer is the final answer, in as many messages as it needs. What is beyond
// the last of them is not shown anywhere, and the last one says so.
func answer(run agentrun.Run) []message {
	agent := brief(run.Agent, 60)
	if strings.TrimSpace(run.Output) == "" {
		text := agent + " is done and has nothing to add."
		return []message{plainly(text, say(text))}
	}
	chunks := split(visible(strings.TrimSpace(run.Output)), answerRunes)
	rest := 0
	for _, chunk := range chunks[min(len(chunks), maxMessages):] {
		rest += utf8.RuneCountInString(chunk)
	}
	chunks = chunks[:min(len(chunks), maxMessages)]
	messages := make([]message, 0, len(chunks))
	for i, chunk := range chunks {
		blocks := []slack.Block{richText(markdown(chunk)...)}
		note := "Written by the agent's model"
		if len(chunks) > 1 {
			note = fmt.Sprintf("%s, part %d of %d", note, i+1, len(chunks))
		}
		if rest > 0 && i == len(chunks)-1 {
			cutOff := "The answer was cut here: about " + count(rest, "character") + " more are not shown, and they cannot be read anywhere else."
			blocks = append(blocks, richText(line(styled(cutOff, bold), say(" To read on, ask the agent for the rest in smaller parts."))))
		}
		blocks = append(blocks, small(note))
		messages = append(messages, message{text: escape(agent + ": " + clip(chunk, 600)), blocks: blocks})
	}
	return messages
}
