package slackui

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	pageRunes  = 30_000
	pageBlocks = 80
	pieceRunes = 2500
)

// viewFull opens a modal with the whole arguments, for those who may look.
func (s *reviews) viewFull(ctx context.Context, p Interaction, value string) (about, error) {
	at, view, err := s.fullView(ctx, p, value, 0)
	if err != nil {
		return at, err
	}
	return at, s.respond.open(ctx, p, view)
}

// turnPage shows another page in the modal that is open.
func (s *decisions) turnPage(ctx context.Context, p Interaction, value string) error {
	var page int
	i := strings.LastIndexByte(value, '|')
	err := errPointer
	if i > 0 {
		page, err = strconv.Atoi(value[i+1:])
	}
	if err != nil || page < 0 {
		return errPointer
	}
	turn := s.reviews.fullView
	if p.View.Callback == callbackApprove {
		turn = s.signingPage
	}
	at, view, err := turn(ctx, p, value[:i], page)
	if words, known := explain(err, at); err != nil && known {
		view, err = notice(words), nil
	}
	if err != nil {
		return err
	}
	return s.api.updateView(ctx, p.View.ID, p.View.Hash, view)
}

func (s *reviews) fullView(ctx context.Context, p Interaction, value string, page int) (about, slack.ModalViewRequest, error) {
	at := about{user: p.User, now: s.cfg.Now()}
	none := slack.ModalViewRequest{}
	ptr, b, a, err := s.verdicts.resolve(ctx, value)
	at.batch, at.approval = b, a
	if err != nil {
		return at, none, err
	}
	if err := s.people.mayLook(ctx, p.User, p.UserTeam, b); err != nil {
		return at, none, err
	}
	call, err := s.cfg.Desk.Call(ctx, b, a.Call.ID)
	if err != nil {
		return at, none, fmt.Errorf("load call %s of batch %s: %w", a.Call.ID, b.ID, err)
	}
	ptr.Call = a.Call.ID
	return at, full(ptr, a, call, page), nil
}

// full is one page of the whole arguments of a call.
func full(ptr pointer, a approvals.Approval, call approvals.ToolCall, page int) slack.ModalViewRequest {
	pages := paginate(arguments(call.Args, a.WriteOnly))
	page = min(page, len(pages)-1)
	blocks := append([]slack.Block{fullHead(ptr, a, call, page, len(pages))}, pages[page]...)
	if turn := turns(ptr, page, len(pages)); turn != nil {
		blocks = append(blocks, turn)
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: literal("Full arguments"), Close: literal("Close"),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// fullHead says what a page shows.
func fullHead(ptr pointer, a approvals.Approval, call approvals.ToolCall, page, pages int) slack.Block {
	top := []para{
		line(styled(brief(call.Name, 80), bold), say(" · "+count(len(call.Args), "byte")+" of arguments")),
		line(say("Digest "), styled(a.Call.Digest.String(), code)),
	}
	if ptr.Digest != a.Call.Digest {
		top = append(top, line(styled("The arguments changed after the card was drawn. These are the new ones.", bold)))
	}
	if pages > 1 {
		top = append(top, line(styled(fmt.Sprintf("Page %d of %d.", page+1, pages), bold), say(" The buttons at the end turn the page.")))
	}
	return richText(top...)
}

func turns(ptr pointer, page, pages int) slack.Block {
	value, err := ptr.encode()
	if err != nil || pages < 2 {
		return nil
	}
	var elements []slack.BlockElement
	add := func(to int, label string) {
		if to >= 0 && to < pages {
			elements = append(elements, slack.NewButtonBlockElement(
				actionPage.id(to), fmt.Sprintf("%s|%d", value, to), literal(label)))
		}
	}
	add(page-1, "Previous page")
	add(page+1, "Next page")
	return slack.NewActionBlock("", elements...)
}

// paginate draws everything, uncut, in pages that a modal can hold. There are
// as many as it takes, so that whatever can be called can be read.
func paginate(args []argument) [][]slack.Block {
	if len(args) == 0 {
		return [][]slack.Block{{richText(line(styled("No arguments.", italic)))}}
	}
	drawn, _ := draw(args, detail{value: math.MaxInt, keys: math.MaxInt, uncut: true})
	var pages [][]slack.Block
	var page []slack.Block
	runes := 0
	for _, d := range drawn {
		for i, piece := range pieces(d.text, pieceRunes) {
			n := utf8.RuneCountInString(piece)
			if len(page) > 0 && (runes+n > pageRunes || len(page) == pageBlocks) {
				pages, page, runes = append(pages, page), nil, 0
			}
			text := []para{box(piece)}
			switch {
			case i > 0: // without it, the end of a value could pass for other arguments
				text = []para{line(styled("continued", italic)), box(piece)}
			case d.label != nil:
				text = []para{d.label, box(piece)}
			}
			page = append(page, richText(text...))
			runes += n
		}
	}
	return append(pages, page)
}
