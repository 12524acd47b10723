package blockkit

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/approvals"
)

// A literal is text of our source code. Other packages cannot name the type, so
// only their untyped constants convert to it: a string variable does not
// compile where a literal is asked for.
type literal string

// Mrkdwn is text in Slack's markup, made of our own words, numbers, dates, and
// mentions of checked ids. Text of models and people is never in it: no
// function of this package makes Mrkdwn of a string, except those that leave
// only an id or a plain word of it. The zero value is no text.
type Mrkdwn struct{ text string }

// Safe is what may stand within our words.
type Safe interface{ mrkdwn() string }

func (m Mrkdwn) mrkdwn() string { return m.text }

// Ours is text of our own. Each %s in the format is replaced by an argument;
// without arguments the format is the text.
func Ours(format literal, args ...Safe) Mrkdwn {
	if len(args) == 0 {
		return Mrkdwn{string(format)}
	}
	texts := make([]any, len(args))
	for i, a := range args {
		texts[i] = a.mrkdwn()
	}
	return Mrkdwn{fmt.Sprintf(string(format), texts...)}
}

// String returns the markup. It never becomes Mrkdwn again.
func (m Mrkdwn) String() string { return m.text }

// Plain reports whether the text reads the same where Slack shows it as it is typed, as
// under an input.
func (m Mrkdwn) Plain() bool { return !strings.ContainsAny(m.text, "<>&*_~`") }

// IsZero reports whether there is no text.
func (m Mrkdwn) IsZero() bool { return m.text == "" }

// Capitalized returns the text with its first letter in upper case.
func (m Mrkdwn) Capitalized() Mrkdwn {
	first, size := utf8.DecodeRuneInString(m.text)
	if size == 0 {
		return m
	}
	return Mrkdwn{string(unicode.ToUpper(first)) + m.text[size:]}
}

// Fallback returns the text as the text of a message.
func (m Mrkdwn) Fallback() Fallback { return Fallback{m.text} }

// Object returns the text as an element of a block.
func (m Mrkdwn) Object() *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, m.text, false, true)
}

// Section returns the text as a block of its own.
func Section(m Mrkdwn) slack.Block { return slack.NewSectionBlock(m.Object(), nil, nil) }

// Small returns the text as a line in small print.
func Small(m Mrkdwn) slack.Block { return slack.NewContextBlock("", m.Object()) }

// Join puts the separator between the parts.
func Join(parts []Mrkdwn, separator literal) Mrkdwn {
	return Mrkdwn{strings.Join(texts(parts), string(separator))}
}

// And joins with commas and a last "and".
func And(parts []Mrkdwn) Mrkdwn { return Mrkdwn{List(texts(parts))} }

func texts(parts []Mrkdwn) []string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.text
	}
	return all
}

// Num is [Number].
func Num(n int) Mrkdwn { return Mrkdwn{Number(n)} }

// Counted is [Count].
func Counted(n int, one literal) Mrkdwn { return Mrkdwn{Count(n, string(one))} }

// Plural is one for 1, and several for every other number.
func Plural(n int, one, several literal) Mrkdwn {
	return Mrkdwn{PluralForm(n, string(one), string(several))}
}

// RiskMarked is [Risk], with emphasis on what cannot be undone.
func RiskMarked(s approvals.Severity) Mrkdwn {
	if said := Risk(s); said != Risk(approvals.SeverityIrreversible) {
		return Mrkdwn{said}
	}
	return Ours("*Irreversible*")
}

// Since is [Ago].
func Since(d time.Duration) Mrkdwn { return Mrkdwn{Ago(d)} }

// serviceForm is the form of an agent's name that means nothing in mrkdwn.
var serviceForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 -]{0,62}[A-Za-z0-9])?$`)

// Person mentions a person, if the id is one. The requester that stands for an
// agent is its name, and nobody is called.
func Person[ID ~string](id ID) Mrkdwn {
	if IDForm.MatchString(string(id)) {
		return Mrkdwn{"<@" + string(id) + ">"}
	}
	if name, ok := approvals.UserID(id).Service(); ok {
		if serviceForm.MatchString(name) {
			return Mrkdwn{name}
		}
		return Ours("an agent")
	}
	return Ours("someone")
}

// Group mentions a user group, or a channel whose members are meant, if the id
// is one.
func Group[ID ~string](id ID) Mrkdwn {
	if IDForm.MatchString(string(id)) && IsChannel(id) {
		return Mrkdwn{"<#" + string(id) + ">"}
	}
	if IDForm.MatchString(string(id)) {
		return Mrkdwn{"<!subteam^" + string(id) + ">"}
	}
	return Ours("an unknown group")
}

// When shows an instant in the reader's own time zone.
func When(t time.Time) Mrkdwn {
	if t.IsZero() {
		return Ours("an unknown time")
	}
	return Mrkdwn{fmt.Sprintf("<!date^%d^{date_short_pretty} at {time}|%s>", t.Unix(), t.UTC().Format("2006-01-02 15:04 UTC"))}
}

// CodeWord is a name such as that of a command or a version, for a code span.
// Only ASCII letters, digits and the characters -_./… of it are left.
func CodeWord(s string) Mrkdwn {
	return Mrkdwn{strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./…", r):
			return r
		}
		return -1
	}, s)}
}

// A Fallback is the text of a message that has blocks too: notifications and
// screen readers use it. Of foreign text it holds only what [Escape] made
// harmless. A message without blocks has a text of Mrkdwn.
type Fallback struct {
	escaped string // not named as the field of Mrkdwn is, or one would convert to the other
}

// Escape returns foreign text as the text of a message. Mentions and links in
// it do nothing. It does not stop *bold*, so it is not Mrkdwn.
func Escape(s string) Fallback { return Fallback{escaper.Replace(s)} }

// After returns the text with words of ours before it.
func (f Fallback) After(m Mrkdwn) Fallback { return Fallback{m.text + f.escaped} }

// Then returns the text with another one behind it.
func (f Fallback) Then(g Fallback) Fallback { return Fallback{f.escaped + g.escaped} }

// Trim returns the text without white space around it.
func (f Fallback) Trim() Fallback { return Fallback{strings.TrimSpace(f.escaped)} }

// String returns the text, escaped.
func (f Fallback) String() string { return f.escaped }
