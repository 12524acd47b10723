package form

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// The ids of the block and the box with which an editor approves the change.
const (
	ApproveBlock = "sign"
	ApproveInput = "too"
)

const (
	radioMost = 4  // with more options, a choice is a menu
	longText  = 80 // a longer text has an input of several lines
)

// EditView draws the form.
func EditView(a approvals.Approval, f EditForm, metadata string, mayApprove bool) slack.ModalViewRequest {
	text := append(Head(a, f.Args), blockkit.Line(blockkit.Say(editUntouched)))
	if n := len(a.Decisions); n > 0 {
		spans := append([]blockkit.Span{blockkit.Say(editClears)}, blockkit.ListSpans(blockkit.PersonSpans(a.Deciders("")), blockkit.NamesShown)...)
		text = append(text, blockkit.Line(append(spans, blockkit.Say(editCleared))...))
	}
	if !mayApprove {
		text = append(text, blockkit.Line(blockkit.Say(editOthersApprove)))
	}
	for i, k := range f.kept {
		if i == blockkit.NamesShown {
			text = append(text, blockkit.Line(blockkit.Say(blockkit.Count(len(f.kept)-i, editKeptMore)+editNotHere)))
			break
		}
		text = append(text, blockkit.Line(blockkit.Styled(k.label, blockkit.Code), blockkit.Say(" "+k.why+editStays)))
	}
	blocks := []slack.Block{blockkit.RichText(text...)}
	for _, x := range f.Fields {
		blocks = append(blocks, x.block())
	}
	if mayApprove {
		blocks = append(blocks, approveToo())
		if a.Requirement.ReasonNeeded {
			blocks = append(blocks, ReasonInputBlock(whyApprove, whyApproveHint, false, false))
		}
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ref.CallbackEdit, PrivateMetadata: metadata,
		Title: blockkit.Literal(editTitle), Submit: blockkit.Literal(editSave), Close: blockkit.Literal(cancel),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// approveToo is the box with which the editor approves the changed call.
func approveToo() slack.Block {
	box := slack.NewCheckboxGroupsBlockElement(ApproveInput, slack.NewOptionBlockObject("yes", blockkit.Literal(editApprove), nil))
	b := slack.NewInputBlock(ApproveBlock, blockkit.Literal(editApproval), nil, box)
	b.Optional = true
	return b
}

// block is the input of one field.
func (x field) block() slack.Block {
	label := LabelOf(x.Path)
	if len(x.Path) == 0 {
		label = allArguments
	}
	b := slack.NewInputBlock(x.Key(), blockkit.Literal(label), nil, x.element())
	if hint := x.hint(); hint != "" {
		b.Hint = blockkit.Literal(hint)
	}
	b.Optional = !x.required || x.input == inputSecret || (x.input == inputText && x.initial == "")
	return b
}

func (x field) element() slack.BlockElement {
	switch x.input {
	case inputChoice:
		return x.menu()
	case inputDate:
		e := slack.NewDatePickerBlockElement(editInput)
		e.InitialDate = x.initial
		return e
	case inputText, inputNumber, inputWhole, inputJSON, inputSecret:
	}
	e := slack.NewPlainTextInputBlockElement(nil, editInput)
	e.InitialValue, e.MaxLength = x.initial, maxInput
	e.Multiline = x.input == inputJSON ||
		(x.input == inputText && (strings.Contains(x.initial, "\n") || utf8.RuneCountInString(x.initial) > longText))
	if x.input == inputSecret {
		e.Placeholder = blockkit.Literal(keepSecret)
	}
	return e
}

func (x field) menu() slack.BlockElement {
	var options []*slack.OptionBlockObject
	var initial *slack.OptionBlockObject
	for i, o := range x.options {
		option := slack.NewOptionBlockObject(fmt.Sprint(i), blockkit.Literal(o.text), nil)
		if options = append(options, option); option.Value == x.initial {
			initial = option
		}
	}
	if len(options) <= radioMost {
		e := slack.NewRadioButtonsBlockElement(editInput, options...)
		e.InitialOption = initial
		return e
	}
	e := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, blockkit.Literal(chooseOne), editInput, options...)
	e.InitialOption = initial
	return e
}

// hint is the description of the value, and what an empty input means.
func (x field) hint() string {
	var said []string
	if about := blockkit.Brief(x.about, 300); about != "" {
		said = append(said, blockkit.Sentence(strings.TrimSuffix(about, ".")+"."))
	}
	switch x.input {
	case inputSecret:
		said = append(said, x.secret)
	case inputJSON:
		said = append(said, hintJSON)
	case inputWhole:
		said = append(said, hintWhole)
	case inputNumber:
		said = append(said, hintNumber)
	case inputText, inputChoice, inputDate:
	}
	switch {
	case x.required, x.input == inputSecret, x.input == inputChoice:
	case x.present:
		said = append(said, hintNoValue)
	default:
		said = append(said, hintNone)
	}
	return strings.Join(said, " ")
}
