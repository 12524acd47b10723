package reply

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// decided returns the message of a deferred run whose batch is decided: how far the
// run is that resumes it.
func (r *Replies) decided(ctx context.Context, run agentrun.Run) ([]blockkit.Message, error) {
	resumed, err := r.resumed(ctx, run)
	if err != nil {
		return nil, err
	}
	const text = "Everything is decided. "
	switch {
	case resumed.ID == "":
		return []blockkit.Message{blockkit.ParagraphMessage(text+"The agent continues.", blockkit.Say(text+"The agent continues."))}, nil
	case finished(resumed):
		return []blockkit.Message{blockkit.ParagraphMessage(text+sayResultBelow, blockkit.Say(text+sayResultBelow))}, nil
	}
	m := working(resumed)
	spans := append([]blockkit.Span{blockkit.Say(text)}, workingSpans(resumed)...)
	return []blockkit.Message{{Text: m.Text.After(blockkit.Ours(text)), Blocks: []slack.Block{blockkit.RichText(blockkit.Line(spans...))}}}, nil
}

// lateAfter is how long people are taken to watch the thread after they wrote.
const lateAfter = 5 * time.Minute

// late reports whether a run that a message started ended so long after it that its
// end is a message of its own, as the end of a resumed run is. Its message may have
// waited in the queue until people decided about the calls of another one.
func late(run agentrun.Run) bool {
	ended := run.Status == agentrun.RunCompleted || run.Status == agentrun.RunFailed
	return ended && run.Parent == "" && run.EndedAt.Sub(run.CreatedAt) > lateAfter
}

// calling makes the end of a late or resumed run mention the person who asked: an edit
// of an older message would notify nobody. In a direct message nobody needs it.
func calling(run agentrun.Run, messages []blockkit.Message) []blockkit.Message {
	if run.Parent == "" && !late(run) || len(messages) == 0 || strings.HasPrefix(run.Origin.Channel, "D") {
		return messages
	}
	first := &messages[0]
	first.Text = first.Text.After(blockkit.Ours("%s ", blockkit.Person(run.Requester)))
	first.Blocks = append([]slack.Block{blockkit.RichText(blockkit.Line(blockkit.PersonSpan(run.Requester)))}, first.Blocks...)
	return messages
}

// An effect is a call that people approved and that ran, or may have.
type effect struct {
	tool string
	at   time.Time
	what string
}

// effects are those of a run and of the runs that it resumes, the oldest first.
type effects []effect

// effectsShown is how many effects a message lists; mostStages bounds the runs
// that are looked at.
const (
	effectsShown = 10
	mostStages   = 20
)

// effects returns what the run and those that it resumes have done by now, so
// that nobody repeats it. What a person said of a call in doubt replaces the doubt. A
// batch that is gone or unreadable is left out.
func (r *Replies) effects(ctx context.Context, run agentrun.Run) (effects, error) {
	var all effects
	said := map[approvals.ToolCallID]bool{} // of the calls in doubt, by later batches
	for range mostStages {
		if run.Batch == "" {
			break
		}
		b, err := r.Desk.Batch(ctx, run.Batch)
		if errors.Is(err, approvals.ErrNotFound) || errors.Is(err, approvals.ErrUnreadable) {
			break
		}
		if err != nil {
			return nil, err
		}
		var these effects
		for _, a := range b.Approvals {
			switch e := a.Execution; {
			case a.Status == approvals.Confirmed:
				these, said[a.Call.ID] = append(these, effect{a.Call.Name, a.Ending.At, sayTookEffect}), true
			case e.State == approvals.InDoubt && said[a.Call.ID]:
				delete(said, a.Call.ID) // an earlier execution of it stays in doubt
			case stateWords[e.State] != "":
				these = append(these, effect{a.Call.Name, e.At, stateWords[e.State]})
			}
		}
		all = append(these, all...)
		if run, err = r.Runs.Run(ctx, run.Parent); errors.Is(err, approvals.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// paras list the effects, with a sentence for those who cannot see the list.
func (all effects) paras() (text string, paras []blockkit.Para) {
	if len(all) == 0 {
		return "", nil
	}
	var items []blockkit.Para
	var names []string
	for i, e := range all {
		if i == effectsShown {
			items = append(items, blockkit.Line(blockkit.Say("and "+blockkit.Number(len(all)-i)+" more")))
			break
		}
		names = append(names, blockkit.Brief(e.tool, 60)+" "+e.what)
		items = append(items, blockkit.Line(blockkit.Styled(blockkit.Brief(e.tool, 60), blockkit.Code), blockkit.Say(" "+e.what+", "), blockkit.DateSpan(e.at)))
	}
	return " Before that, " + strings.Join(names, "; ") + ".", []blockkit.Para{
		blockkit.Line(blockkit.Styled(sayRanBefore, blockkit.Bold)),
		slack.NewRichTextList(slack.RTEListBullet, 0, items...),
	}
}

// stateWords are those of the states of calls that ran, or may have.
var stateWords = map[approvals.ExecutionState]string{
	approvals.Ran:       "ran",
	approvals.RanFailed: "failed",
	approvals.InDoubt:   sayMayHaveRun,
}
