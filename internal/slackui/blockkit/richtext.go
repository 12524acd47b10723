package blockkit

import (
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// A Span is a piece of a paragraph: text in one style, a mention, a link.
type Span = slack.RichTextSectionElement

// A Para is a paragraph, a list, a quotation or a box of rich text.
type Para = slack.RichTextElement

// The styles of text.
var (
	Bold   = &slack.RichTextSectionTextStyle{Bold: true}
	Italic = &slack.RichTextSectionTextStyle{Italic: true}
	Code   = &slack.RichTextSectionTextStyle{Code: true}
)

// Say is text without a style. Nothing in a text of rich text is markup. An
// empty text becomes a space, because Slack refuses empty ones.
func Say(s string) Span { return Styled(s, nil) }

// Styled is text in a style.
func Styled(s string, style *slack.RichTextSectionTextStyle) Span {
	if s == "" {
		s = " "
	}
	return slack.NewRichTextSectionTextElement(s, style)
}

// Line is a paragraph.
func Line(spans ...Span) Para { return slack.NewRichTextSection(spans...) }

// Box is preformatted text.
func Box(s string) Para {
	return &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []Span{Say(s)}}
}

// Quoted is a quotation.
func Quoted(s string) Para {
	return &slack.RichTextQuote{Type: slack.RTEQuote, Elements: []Span{Say(s)}}
}

// PersonSpan mentions a person. It is "someone" if the id is not valid, and the
// name of the agent for a requester that stands for one.
func PersonSpan[ID ~string](id ID) Span {
	if IDForm.MatchString(string(id)) {
		return slack.NewRichTextSectionUserElement(string(id), nil)
	}
	if name, ok := approvals.UserID(id).Service(); ok {
		return Styled(Brief(name, 60), Bold)
	}
	return Say("someone")
}

// GroupSpan mentions a user group, or a channel that stands for its members. It
// is "an unknown group" if the id is not valid.
func GroupSpan[ID ~string](id ID) Span {
	if IDForm.MatchString(string(id)) && IsChannel(id) {
		return slack.NewRichTextSectionChannelElement(string(id), nil)
	}
	if IDForm.MatchString(string(id)) {
		return slack.NewRichTextSectionUserGroupElement(string(id))
	}
	return Say("an unknown group")
}

// DateSpan is an instant in the reader's own time zone.
func DateSpan(t time.Time) Span {
	fallback := t.UTC().Format("2006-01-02 15:04 UTC")
	return &slack.RichTextSectionDateElement{
		Type: slack.RTSEDate, Timestamp: slack.JSONTime(t.Unix()),
		Format: "{date_short_pretty} at {time}", Fallback: &fallback,
	}
}

// ListSpans joins the first spans with commas and counts the rest.
func ListSpans(spans []Span, most int) []Span {
	var out []Span
	for i, s := range spans {
		if i == most {
			return append(out, Say(" and "+Number(len(spans)-most)+" more"))
		}
		if i > 0 {
			out = append(out, Say(", "))
		}
		out = append(out, s)
	}
	return out
}

// RichText is a block of paragraphs.
func RichText(paras ...Para) slack.Block { return slack.NewRichTextBlock("", paras...) }
