package card

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

const digestTools = 8 // tools and agents that a digest names

// DigestTries is how many requests of a digest are looked at for one that waits
// for the person.
const DigestTries = 20

// NoneWaitsFor says why the review of a digest shows a request that does not
// wait for the person.
var NoneWaitsFor = blockkit.Ours("None of these waits for you now. This is the oldest of them.")

// DigestTotals are the totals of the requests of a digest.
type DigestTotals struct {
	Requests, Calls, Decided int
	Again                    int            // requests that ask again
	Tools, Agents            map[string]int // calls
	Oldest, Deadline         time.Time
}

// topCounts lists names with their numbers, the greatest first.
func topCounts(of map[string]int) []blockkit.Span {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	spans := make([]blockkit.Span, len(names))
	for i, n := range names {
		spans[i] = blockkit.Styled(fmt.Sprintf("%s ×%s", blockkit.Brief(n, 60), blockkit.Number(of[n])), blockkit.Code)
	}
	return blockkit.ListSpans(spans, digestTools)
}

// DigestMessage lists what the requests of a digest ask for. It never shows
// arguments.
func DigestMessage(id string, s DigestTotals, several bool) blockkit.Message {
	m := blockkit.Message{Marker: &slack.SlackMetadata{EventType: "countersign_digest", EventPayload: map[string]any{"digest": id}}}
	if s.Calls == 0 {
		head := "All of these are decided"
		said := blockkit.Count(s.Decided, "call") + " " + blockkit.PluralForm(s.Decided, "was", "were") + " listed here, and none of them waits any more."
		m.Text = blockkit.Escape(head + ": " + said)
		m.Blocks = []slack.Block{header(head), blockkit.RichText(blockkit.Line(blockkit.Say(said + " What became of each stands in the thread where it was asked.")))}
		return m
	}
	head := blockkit.Count(s.Requests, "request") + " " + blockkit.Verb(s.Requests, "waits") + " for signatures"
	m.Text = blockkit.Escape(fmt.Sprintf("%s, with %s. They came too fast for a card each, so they are listed together.", head, blockkit.Count(s.Calls, "call")))
	paras := []blockkit.Para{
		blockkit.Line(blockkit.Say(fmt.Sprintf("%s of %s %s. They came too fast for a card each, so they are listed here together.",
			blockkit.Count(s.Calls, "call"), blockkit.Count(s.Requests, "request"), blockkit.Verb(s.Calls, "waits")))),
		blockkit.Line(append([]blockkit.Span{blockkit.Styled("Tools: ", blockkit.Bold)}, topCounts(s.Tools)...)...),
		blockkit.Line(append([]blockkit.Span{blockkit.Styled("Agents: ", blockkit.Bold)}, topCounts(s.Agents)...)...),
		blockkit.Line(blockkit.Styled("The oldest was asked ", blockkit.Bold), blockkit.DateSpan(s.Oldest), blockkit.Say(".")),
	}
	if !s.Deadline.IsZero() {
		paras = append(paras, blockkit.Line(blockkit.Styled("The first expires ", blockkit.Bold), blockkit.DateSpan(s.Deadline), blockkit.Say(", and then does not run.")))
	}
	if s.Again > 0 {
		paras = append(paras, blockkit.Line(blockkit.Styled("Reminder", blockkit.Bold), blockkit.Say(": "+blockkit.Count(s.Again, "request")+" of these "+blockkit.Verb(s.Again, "asks")+" again, because nobody has decided.")))
	}
	if s.Decided > 0 {
		paras = append(paras, blockkit.Line(blockkit.Say(blockkit.Count(s.Decided, "call")+" that "+blockkit.PluralForm(s.Decided, "was", "were")+" listed here "+blockkit.PluralForm(s.Decided, "is", "are")+" decided already.")))
	}
	review := slack.NewButtonBlockElement(ref.ActionDigest.ID(0), id, blockkit.Literal("Review"))
	review.Style = slack.StylePrimary
	buttons := []slack.BlockElement{review}
	if several {
		buttons = append(buttons, slack.NewButtonBlockElement(ref.ActionSeveral.ID(0), "mine", blockkit.Literal("Approve several…")))
	}
	m.Blocks = []slack.Block{
		header(head), blockkit.RichText(paras...), slack.NewActionBlock("", buttons...),
		blockkit.Small(blockkit.Ours("Review opens the oldest that waits for you. Nothing is approved or dropped because it is many. `/countersign list` shows it too, and so does the Home tab of this app.")),
	}
	return m
}
