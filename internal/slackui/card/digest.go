package card

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

const (
	// DigestRows is how many requests of a digest are shown with what they do.
	DigestRows = 5

	digestTools = 8 // tools and agents that a digest names
)

// DigestTries is how many requests of a digest are looked at for one that waits
// for the person.
const DigestTries = 20

// NoneWaitsFor says why the review of a digest shows a request that does not
// wait for the person.
var NoneWaitsFor = blockkit.Ours(sayNoneForYou)

// DigestTotals are the totals of the requests of a digest.
type DigestTotals struct {
	Requests, Calls, Decided int
	Again                    int            // requests that ask again
	Tools, Agents            map[string]int // calls
	Risks                    map[approvals.Severity]int
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

// risks counts calls by severity, the worst first.
func risks(of map[approvals.Severity]int) []blockkit.Span {
	var spans []blockkit.Span
	for _, s := range worstFirst {
		if n := of[s]; n > 0 {
			spans = append(spans, blockkit.Say(blockkit.Risk(s)+" ×"+blockkit.Number(n)))
		}
	}
	return blockkit.ListSpans(spans, len(worstFirst))
}

// digestRow is a request of a digest as the other lists show it.
func digestRow(p OpenCalls) blockkit.Para {
	spans := []blockkit.Span{
		blockkit.Styled(p.Title(titleRunes), blockkit.Bold), blockkit.Say(" · " + blockkit.Risk(p.Leading().Severity) + " · requested by "), blockkit.PersonSpan(p.Batch.Requester),
		blockkit.Say(" · agent " + blockkit.Brief(p.Batch.Agent, 40)),
	}
	if d := p.deadline(); !d.IsZero() {
		spans = append(spans, blockkit.Say(" · expires "), blockkit.DateSpan(d))
	}
	return blockkit.Line(spans...)
}

// DigestMessage lists what the requests of a digest ask for: oldest are the
// first of them, with what those who read the message may know of them.
func DigestMessage(id string, s DigestTotals, oldest []OpenCalls, several bool) blockkit.Message {
	m := blockkit.Message{Marker: &slack.SlackMetadata{EventType: "countersign_digest", EventPayload: map[string]any{"digest": id}}}
	if s.Calls == 0 {
		head := sayNoneWaits
		said := blockkit.Count(s.Decided, "call") + " " + blockkit.PluralForm(s.Decided, "was", "were") + sayOver
		m.Text = blockkit.Escape(head + ". " + said)
		m.Blocks = []slack.Block{header(head), blockkit.RichText(blockkit.Line(blockkit.Say(said + sayOutcomesThere)))}
		return m
	}
	together := blockkit.Count(s.Calls, "call") + " in " + blockkit.Count(s.Requests, "request") + sayListedTogether
	head := blockkit.Count(s.Requests, "request") + " " + blockkit.Verb(s.Requests, "waits") + " for approval"
	text := []string{head + ". " + together}
	for _, p := range oldest {
		text = append(text, blockkit.Risk(p.Leading().Severity)+": "+p.Title(titleRunes)+".")
	}
	m.Text = blockkit.Escape(strings.Join(text, " "))
	paras := []blockkit.Para{blockkit.Line(blockkit.Say(together))}
	if len(oldest) > 0 {
		if len(oldest) < s.Requests {
			paras = append(paras, blockkit.Line(blockkit.Styled("The oldest "+blockkit.Number(len(oldest))+":", blockkit.Bold)))
		}
		var rows []blockkit.Para
		for _, p := range oldest {
			rows = append(rows, digestRow(p))
		}
		paras = append(paras, slack.NewRichTextList(slack.RTEListBullet, 0, rows...))
	}
	if all := risks(s.Risks); len(all) > 0 {
		paras = append(paras, blockkit.Line(append([]blockkit.Span{blockkit.Styled("Risk: ", blockkit.Bold)}, all...)...))
	}
	paras = append(paras,
		blockkit.Line(append([]blockkit.Span{blockkit.Styled("Tools: ", blockkit.Bold)}, topCounts(s.Tools)...)...),
		blockkit.Line(append([]blockkit.Span{blockkit.Styled("Agents: ", blockkit.Bold)}, topCounts(s.Agents)...)...),
		blockkit.Line(blockkit.Styled("First requested: ", blockkit.Bold), blockkit.DateSpan(s.Oldest)))
	if !s.Deadline.IsZero() {
		paras = append(paras, blockkit.Line(blockkit.Styled("First to expire: ", blockkit.Bold), blockkit.DateSpan(s.Deadline)))
	}
	if s.Again > 0 {
		paras = append(paras, blockkit.Line(blockkit.Styled("Reminder", blockkit.Bold), blockkit.Say(": "+blockkit.Number(s.Again)+" of these requests "+blockkit.PluralForm(s.Again, "is", "are")+" still undecided.")))
	}
	if s.Decided > 0 {
		paras = append(paras, blockkit.Line(blockkit.Say(blockkit.Count(s.Decided, "call")+" that "+blockkit.PluralForm(s.Decided, "was", "were")+sayNoLonger+blockkit.Verb(s.Decided, "waits")+".")))
	}
	review := blockkit.Button(ref.ActionDigest.ID(0), id, "Review", sayReviewSpoken)
	review.Style = slack.StylePrimary
	buttons := []slack.BlockElement{review}
	if several {
		buttons = append(buttons, severalButton())
	}
	m.Blocks = []slack.Block{
		header(head), blockkit.RichText(paras...), slack.NewActionBlock("", buttons...),
		blockkit.Small(blockkit.Ours(sayReviewHint)),
	}
	return m
}
