package reply

import (
	"context"
	"errors"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Pending says how many calls of the batch wait, and names their tools.
func Pending(b approvals.Batch) (what string, tools []blockkit.Span) {
	open := b.OpenCalls()
	names := make([]string, len(open))
	for i, c := range open {
		names[i] = c.Name
	}
	return blockkit.Count(len(names), "call"), activity(names)
}

// An outcomeOf names the tools of a batch by what a newer message has made of them.
type outcomeOf struct{ ended, doubtful, unknown, approved []string }

func superseded(b approvals.Batch) outcomeOf {
	var o outcomeOf
	for _, a := range b.Approvals {
		switch {
		case a.Superseded() && a.InDoubt():
			o.doubtful = append(o.doubtful, a.Call.Name)
		case a.Superseded():
			o.ended = append(o.ended, a.Call.Name)
		case a.Status == approvals.Approved:
			o.approved = append(o.approved, a.Call.Name)
		}
	}
	for _, c := range b.Calls {
		if c.Superseded() {
			o.unknown = append(o.unknown, c.Call.Name)
		}
	}
	return o
}

func (o outcomeOf) any() bool { return len(o.ended)+len(o.doubtful)+len(o.unknown) > 0 }

// words says what became of the calls, as text and with the names of the tools.
func (o outcomeOf) words() (text string, spans []blockkit.Span) {
	add := func(words string, tools []string) {
		text += " " + words + "."
		spans = append(append(append(spans, blockkit.Say(" "+words+": ")), activity(tools)...), blockkit.Say("."))
	}
	if n := len(o.ended); n > 0 {
		add(blockkit.Count(n, "waiting call")+" "+blockkit.PluralForm(n, "was", "were")+saySuperseded, o.ended)
	}
	if n := len(o.doubtful); n > 0 {
		add(blockkit.Count(n, "call")+" "+sayMayHaveRun+sayNotAgain, o.doubtful)
	}
	if n := len(o.unknown); n > 0 {
		add(sayNoLongerWaits+blockkit.Count(n, "call")+" that "+blockkit.Verb(n, "runs")+sayCannotTell+blockkit.PluralForm(n, "it", "they")+" ran", o.unknown)
	}
	if n := len(o.approved); n > 0 {
		add(blockkit.Count(n, "call")+" "+blockkit.PluralForm(n, "was", "were")+" already approved and "+blockkit.Verb(n, "runs")+sayUnlessRefused+blockkit.PluralForm(n, "it", "them"), o.approved)
	}
	return text, spans
}

// superseding is what the thread says of a message that ended what was pending.
func (r *Replies) superseding(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	b, err := r.Desk.Batch(ctx, run.Supersedes)
	if err != nil && !errors.Is(err, approvals.ErrNotFound) {
		return nil, err
	}
	text, spans := superseded(b).words()
	head, tail := " sent a newer message.", sayContinuesWithIt
	all := append([]blockkit.Span{blockkit.PersonSpan(run.Requester), blockkit.Say(head)}, spans...)
	return []blockkit.Message{blockkit.ParagraphMessage(sayReplaced+text+tail, append(all, blockkit.Say(tail))...)}, nil
}

// behind updates the messages of the runs that are queued behind this one, which say
// what they wait for.
func (r *Replies) behind(ctx context.Context, run agentrun.Run) error {
	if run.Status != agentrun.RunDeferred {
		return nil
	}
	t, err := r.Runs.Thread(ctx, run.Thread)
	if err != nil {
		return err
	}
	if t.Active != run.ID {
		return nil
	}
	for _, id := range t.Queue {
		if err := r.Refresh(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
