package slackui

import (
	"time"

	"github.com/slack-go/slack"
)

// span and para are how the rich_text of this package is written down.
type (
	span = slack.RichTextSectionElement
	para = slack.RichTextElement
)

var (
	bold   = &slack.RichTextSectionTextStyle{Bold: true}
	italic = &slack.RichTextSectionTextStyle{Italic: true}
	code   = &slack.RichTextSectionTextStyle{Code: true}
)

// say is text as it stands: in rich_text nothing in it is markup. Slack
// refuses empty ones.
func say(s string) span { return styled(s, nil) }

func styled(s string, style *slack.RichTextSectionTextStyle) span {
	if s == "" {
		s = " "
	}
	return slack.NewRichTextSectionTextElement(s, style)
}

func line(spans ...span) para { return slack.NewRichTextSection(spans...) }

func box(s string) para {
	return &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []span{say(s)}}
}

func quoted(s string) para {
	return &slack.RichTextQuote{Type: slack.RTEQuote, Elements: []span{say(s)}}
}

// named mentions a person or says that the id is none.
func named[ID ~string](id ID) span {
	if idForm.MatchString(string(id)) {
		return slack.NewRichTextSectionUserElement(string(id), nil)
	}
	return say("somebody")
}

// grouped mentions a user group, or a channel whose members are meant, or says
// that the id is none.
func grouped[ID ~string](id ID) span {
	if idForm.MatchString(string(id)) && isChannel(id) {
		return slack.NewRichTextSectionChannelElement(string(id), nil)
	}
	if idForm.MatchString(string(id)) {
		return slack.NewRichTextSectionUserGroupElement(string(id))
	}
	return say("an unknown group")
}

// dated is an instant in the reader's own time zone.
func dated(t time.Time) span {
	fallback := t.UTC().Format("2006-01-02 15:04 UTC")
	return &slack.RichTextSectionDateElement{
		Type: slack.RTSEDate, Timestamp: slack.JSONTime(t.Unix()),
		Format: "{date_short_pretty} at {time}", Fallback: &fallback,
	}
}

// several joins spans with commas and says how many are not shown.
func several(spans []span, most int) []span {
	var out []span
	for i, s := range spans {
		if i == most {
			return append(out, say(" and "+number(len(spans)-most)+" more"))
		}
		if i > 0 {
			out = append(out, say(", "))
		}
		out = append(out, s)
	}
	return out
}

func richText(paras ...para) slack.Block { return slack.NewRichTextBlock("", paras...) }

func small(mrkdwn string) slack.Block { return slack.NewContextBlock("", ours(mrkdwn)) }
