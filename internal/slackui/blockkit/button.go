package blockkit

import (
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// SpokenRunes is how long Slack lets the label of a button for screen readers
// be: https://docs.slack.dev/reference/block-kit/block-elements/button-element.
const SpokenRunes = 75

// A ButtonElement is a button that [Button] has made.
type ButtonElement = slack.ButtonBlockElement

// Button is a button with its label. A screen reader says spoken in its place:
// what the button does, and to which call or where it leads. What is too long
// for Slack is cut.
func Button(id, value, label, spoken string) *ButtonElement {
	b := slack.NewButtonBlockElement(id, value, Literal(label))
	if utf8.RuneCountInString(spoken) > SpokenRunes {
		spoken, _ = Cut(spoken, SpokenRunes-1)
		spoken += "…"
	}
	b.AccessibilityLabel = spoken
	return b
}

// Turns are the buttons to the page before this one and to the next, as far as there are
// such pages.
func Turns(page, pages int, before, after string, button func(to int, label string) *ButtonElement) []slack.BlockElement {
	var elements []slack.BlockElement
	add := func(to int, label string) {
		if to >= 0 && to < pages {
			elements = append(elements, button(to, label))
		}
	}
	add(page-1, before)
	add(page+1, after)
	return elements
}
