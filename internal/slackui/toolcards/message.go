package toolcards

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// How much of a difference one message shows. What is more is not shown at all: half
// a difference is worse than none.
const (
	mostRunes = 9000
	boxRunes  = 2800
	mostTools = 20
)

// kindWords say of a tool how it differs.
var kindWords = map[Kind]string{New: "new", Changed: "changed", Gone: "no longer listed", Unusable: "can't be used"}

// message is the card of the review.
func message(r Review, owners approvals.From) blockkit.Message {
	asked := r.Ended == ""
	shown, whole := r.shown()
	head := "The MCP server " + r.Server + " of " + blockkit.Brief(r.Agent, 60) + sayChanged
	blocks := []slack.Block{blockkit.RichText(blockkit.Line(
		blockkit.Say("The MCP server "), blockkit.Styled(blockkit.Brief(r.Server, 60), blockkit.Code), blockkit.Say(" of "),
		blockkit.Styled(blockkit.Brief(r.Agent, 60), blockkit.Bold), blockkit.Say(sayChanged),
	))}
	if asked {
		blocks = append(blocks, shown...)
	} else {
		blocks = append(blocks, blockkit.RichText(r.names()))
	}
	text := blockkit.Escape(head)
	switch {
	case !asked:
		blocks = append(blocks, blockkit.RichText(r.ending()))
	case r.Lock:
		blocks = append(blocks, blockkit.RichText(blockkit.Line(blockkit.Say(sayLocked)), blockkit.Box(r.digests())))
	default:
		blocks = append(blocks, blockkit.RichText(paras(r, owners, whole)...))
		if buttons := r.buttons(owners, whole); len(buttons) > 0 {
			blocks = append(blocks, slack.NewActionBlock("", buttons...))
		}
	}
	return blockkit.Message{Text: text, Blocks: blocks}
}

// paras are what stands under the difference.
func paras(r Review, owners approvals.From, whole bool) []blockkit.Para {
	all := []blockkit.Para{blockkit.Line(blockkit.Say(sayAsks))}
	if who := people(owners); len(who) > 0 {
		all = append(all, blockkit.Line(append([]blockkit.Span{blockkit.Say(sayOwners)}, blockkit.ListSpans(who, blockkit.NamesShown)...)...))
	} else {
		all = append(all, blockkit.Line(blockkit.Say(sayNoOwners)))
	}
	if !whole || r.Partial {
		all = append(all, blockkit.Line(blockkit.Styled(sayTooLong, blockkit.Bold)))
	}
	return all
}

func people(owners approvals.From) (who []blockkit.Span) {
	for _, g := range owners.Groups {
		who = append(who, blockkit.GroupSpan(g))
	}
	for _, u := range owners.Users {
		who = append(who, blockkit.PersonSpan(u))
	}
	return who
}

// buttons are those that decide. What is not shown whole cannot be accepted.
func (r Review) buttons(owners approvals.From, whole bool) (all []slack.BlockElement) {
	if len(owners.Users)+len(owners.Groups) == 0 {
		return nil
	}
	value := button{r.ID, r.Digest}.String()
	about := blockkit.Brief(r.Server, 30)
	if whole && !r.Partial {
		accept := blockkit.Button(ref.ActionToolsAccept.ID(0), value, "Accept", saySpokenAccept+about)
		accept.Style = slack.StylePrimary
		accept.Confirm = confirmation(sayAcceptTitle, sayAcceptText, "Accept")
		all = append(all, accept)
	}
	block := blockkit.Button(ref.ActionToolsBlock.ID(1), value, "Keep blocked", fmt.Sprintf(saySpokenBlock, about))
	block.Confirm = confirmation(sayBlockTitle, sayBlockText, "Keep blocked")
	return append(all, block)
}

func confirmation(title, text, yes string) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(blockkit.Literal(title), blockkit.Literal(text), blockkit.Literal(yes), blockkit.Literal("Not now"))
}

// shown are the tools with their differences, and whether these are all of it. Each
// tool is a block of its own: Slack folds long ones, and none hides the next.
func (r Review) shown() (all []slack.Block, whole bool) {
	room := mostRunes
	whole = len(r.Tools) <= mostTools
	for _, t := range r.Tools[:min(mostTools, len(r.Tools))] {
		tool := []blockkit.Para{blockkit.Line(blockkit.Styled(blockkit.Brief(r.Server+"."+t.Name, 200), blockkit.Bold), blockkit.Say(": "+kindWords[t.Kind]))}
		if t.Why != "" {
			tool = append(tool, blockkit.Line(blockkit.Say(sayUnusable+blockkit.Brief(t.Why, 300))))
		}
		text := blockkit.Visible(strings.TrimRight(t.Diff, "\n"))
		if room -= utf8.RuneCountInString(text); room < 0 {
			whole, text = false, ""
		}
		for _, piece := range blockkit.Pieces(text, boxRunes) {
			tool = append(tool, blockkit.Box(piece))
		}
		all = append(all, blockkit.RichText(tool...))
	}
	if more := len(r.Tools) - mostTools; more > 0 {
		all = append(all, blockkit.RichText(blockkit.Line(blockkit.Styled(blockkit.Count(more, "more tool")+".", blockkit.Bold))))
	}
	return all, whole
}

// names are the tools of a review that has ended.
func (r Review) names() blockkit.Para {
	var names []blockkit.Span
	for _, t := range r.Tools {
		names = append(names, blockkit.Styled(blockkit.Brief(r.Server+"."+t.Name, 100), blockkit.Code), blockkit.Say(" "+kindWords[t.Kind]+"  "))
	}
	return blockkit.Line(names[:min(len(names), 2*mostTools)]...)
}

func (r Review) digests() string {
	var lines []string
	for _, t := range r.Tools {
		if t.Digest != "" {
			lines = append(lines, blockkit.Brief(r.Server+"."+t.Name, 100)+"  "+t.Digest)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines[:min(len(lines), mostTools)], "\n")
}

// ending says how the review ended.
func (r Review) ending() blockkit.Para {
	verb := map[Ending]string{Accepted: "Accepted by ", Blocked: "Kept blocked by "}[r.Ended]
	if verb == "" {
		return blockkit.Line(blockkit.Say(sayReverted))
	}
	by := blockkit.Say(sayAnOperator)
	if r.By != "" {
		by = blockkit.PersonSpan(r.By)
	}
	return blockkit.Line(blockkit.Styled(verb, blockkit.Bold), by, blockkit.Say(", "), blockkit.DateSpan(r.At))
}

// A button is the value of a button: a pointer, without authority.
type button struct{ id, digest string }

const buttonVersion = "t1"

func (b button) String() string { return strings.Join([]string{buttonVersion, b.id, b.digest}, "|") }

// parse reads what [button.String] wrote and nothing else.
func parse(s string) (button, error) {
	fields := strings.Split(s, "|")
	if len(s) > ref.MaxPointer || len(fields) != 3 || fields[0] != buttonVersion || strings.Trim(fields[2], ref.IDChars) != "" || fields[2] == "" {
		return button{}, ref.ErrPointer
	}
	if _, err := approvals.Partition(fields[1]); err != nil || strings.Trim(fields[1], ref.IDChars) != "" {
		return button{}, ref.ErrPointer
	}
	return button{fields[1], fields[2]}, nil
}
