package blockkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slack-go/slack"
)

// A Message is what one message shows. Text is for notifications and for
// people who cannot see blocks.
type Message struct {
	Text        Fallback
	Blocks      []slack.Block
	Marker      *slack.SlackMetadata
	LowPriority bool // it can wait for what cannot
}

// Told is a message of our own words.
func Told(m Mrkdwn) Message {
	return Message{Text: m.Fallback(), Blocks: []slack.Block{Section(m)}}
}

// unticked takes the marks of code out of a sentence for those who hear it read.
var unticked = strings.NewReplacer("`", "")

// ToldOf is a message in which a foreign word stands between words of ours, and
// a hint behind it.
func ToldOf(before literal, word string, after literal, hint Mrkdwn) Message {
	spans := []Span{Styled(Brief(word, 60), Code), Say(string(after))}
	if before != "" {
		spans = append([]Span{Say(string(before))}, spans...)
	}
	return Message{
		Text:   Escape(string(before) + Brief(word, 60) + string(after) + " " + unticked.Replace(hint.text)),
		Blocks: []slack.Block{RichText(Line(spans...)), Section(hint)},
	}
}

// Notice is a view that only says something, in our own words.
func Notice(words Mrkdwn) slack.ModalViewRequest { return Told(words).View() }

// Sum tells contents apart.
func (m Message) Sum() string {
	raw, err := json.Marshal(struct {
		Text   string
		Blocks any
	}{m.Text.escaped, m.Blocks})
	if err != nil {
		return ""
	}
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:12])
}

// Plainly is a message of one paragraph.
func Plainly(text string, spans ...Span) Message {
	return Message{Text: Escape(text), Blocks: []slack.Block{RichText(Line(spans...))}}
}

// Key tells messages apart that are posted in one channel.
func (m Message) Key(thread string) string {
	if m.Marker == nil {
		return thread
	}
	return fmt.Sprint(thread, m.Marker.EventType, m.Marker.EventPayload)
}

// Options are the message as slack-go takes it.
func (m Message) Options() []slack.MsgOption {
	opts := []slack.MsgOption{slack.MsgOptionText(m.Text.escaped, false)}
	if len(m.Blocks) > 0 {
		opts = append(opts, slack.MsgOptionBlocks(m.Blocks...))
	}
	return opts
}

// View is a message as a form that only says it.
func (m Message) View() slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: Literal("Countersign"), Close: Literal("Close"), Blocks: slack.Blocks{BlockSet: m.Blocks},
	}
}
