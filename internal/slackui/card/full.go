package card

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/form"
	"github.com/countersign/countersign/internal/slackui/ref"
)

const (
	pageRunes  = 30_000
	pageBlocks = 80
	pieceRunes = 2500
)

// A Change is what a call would change, as its tool saw it when it was asked,
// and what people had seen before if they are asked again.
type Change struct {
	Now, Before string
	Lost        bool // it is stored no more
}

// Full is one page of the whole arguments of a call, with what it would change
// behind them.
func Full(ptr ref.Pointer, a approvals.Approval, call approvals.ToolCall, change Change, page int) slack.ModalViewRequest {
	pages := paginate(append(drawWhole(blockkit.Arguments(call.Args, a.WriteOnly)), change.boxes(a.Preview)...))
	page = min(page, len(pages)-1)
	blocks := append([]slack.Block{FullHead(ptr, a, call, page, len(pages))}, pages[page]...)
	if turn := PageButtons(ptr, page, len(pages)); turn != nil {
		blocks = append(blocks, turn)
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: blockkit.Literal("Full arguments"), Close: blockkit.Literal("Close"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// FullHead is the head of a page of the whole arguments: the call, its digest,
// and which page it is.
func FullHead(ptr ref.Pointer, a approvals.Approval, call approvals.ToolCall, page, pages int) slack.Block {
	top := []blockkit.Para{
		blockkit.Line(blockkit.Styled(blockkit.Brief(call.Name, 80), blockkit.Bold), blockkit.Say(" · "+blockkit.Count(len(call.Args), "byte")+" of arguments")),
		blockkit.Line(blockkit.Say("Digest "), blockkit.Styled(a.Call.Digest.String(), blockkit.Code)),
	}
	top = append(top, form.Where(a, call.Args)...)
	if ptr.Digest != a.Call.Digest {
		top = append(top, blockkit.Line(blockkit.Styled(sayChangedMeanwhile, blockkit.Bold)))
	}
	if pages > 1 {
		top = append(top, blockkit.Line(blockkit.Styled(fmt.Sprintf("Page %d of %d.", page+1, pages), blockkit.Bold), blockkit.Say(sayTurnPages)))
	}
	return blockkit.RichText(top...)
}

// PageButtons are the buttons that turn the pages of the whole arguments.
func PageButtons(ptr ref.Pointer, page, pages int) slack.Block {
	value, err := ptr.Encode()
	if err != nil || pages < 2 {
		return nil
	}
	return slack.NewActionBlock("", blockkit.Turns(page, pages, "Previous page", "Next page", func(to int, label string) *blockkit.ButtonElement {
		return blockkit.Button(ref.ActionPage.ID(to), fmt.Sprintf("%s|%d", value, to), label, fmt.Sprintf(sayPageSpoken, label, to+1, pages))
	})...)
}

// Paginate draws the arguments, uncut, in as many pages of a modal as they
// need.
func Paginate(args []blockkit.Argument) [][]slack.Block {
	return paginate(drawWhole(args))
}

func drawWhole(args []blockkit.Argument) []blockkit.ArgumentBox {
	drawn, _ := blockkit.DrawArguments(args, blockkit.Detail{Value: math.MaxInt, Keys: math.MaxInt, Uncut: true})
	return drawn
}

// boxes are what the call would change, uncut. Their labels end with a date
// element, which the label of an argument never has.
func (c Change) boxes(p approvals.Preview) []blockkit.ArgumentBox {
	var out []blockkit.ArgumentBox
	add := func(text string, left int, label ...blockkit.Span) {
		if text == "" {
			return
		}
		text = blockkit.Visible(text)
		if left > 0 {
			text += "\n" + blockkit.Remark(blockkit.Count(left, "byte")+" left out")
		}
		out = append(out, blockkit.ArgumentBox{Label: blockkit.Line(label...), Text: text})
	}
	add(c.Now, p.Content.Left, blockkit.Styled("What would change", blockkit.Bold), blockkit.Say(sayAsToolSaw), blockkit.DateSpan(p.CheckedAt))
	add(c.Before, p.Before.Content.Left, blockkit.Styled(sayWouldHaveChanged, blockkit.Bold), blockkit.Say(sayAskedBefore), blockkit.DateSpan(p.Before.CheckedAt))
	if c.Lost {
		out = append(out, blockkit.ArgumentBox{Label: blockkit.Line(blockkit.Styled("What would change", blockkit.Bold)), Text: blockkit.Remark("no longer stored")})
	}
	return out
}

func paginate(drawn []blockkit.ArgumentBox) [][]slack.Block {
	if len(drawn) == 0 {
		return [][]slack.Block{{blockkit.RichText(blockkit.Line(blockkit.Styled("No arguments.", blockkit.Italic)))}}
	}
	var pages [][]slack.Block
	var page []slack.Block
	runes := 0
	for _, d := range drawn {
		for i, piece := range blockkit.Pieces(d.Text, pieceRunes) {
			n := utf8.RuneCountInString(piece)
			if len(page) > 0 && (runes+n > pageRunes || len(page) == pageBlocks) {
				pages, page, runes = append(pages, page), nil, 0
			}
			text := []blockkit.Para{blockkit.Box(piece)}
			switch {
			case i > 0: // otherwise the end of a value could look like another argument
				text = []blockkit.Para{blockkit.Line(blockkit.Styled("continued", blockkit.Italic)), blockkit.Box(piece)}
			case d.Label != nil:
				text = []blockkit.Para{d.Label, blockkit.Box(piece)}
			}
			page = append(page, blockkit.RichText(text...))
			runes += n
		}
	}
	return append(pages, page)
}
