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
	LowPriority bool // other messages are sent before it
	Whole       bool // people may approve by it: it waits, and shows everything of every call on it
}

// MessageOf is a message of our own words.
func MessageOf(m Mrkdwn) Message {
	return Message{Text: m.Fallback(), Blocks: []slack.Block{Section(m)}}
}

// noBackticks removes backticks, which a screen reader would read out.
var noBackticks = strings.NewReplacer("`", "")

// MessageAbout is a message in which a foreign word stands between words of
// ours, and a hint behind it.
func MessageAbout(before literal, word string, after literal, hint Mrkdwn) Message {
	spans := []Span{Styled(Brief(word, 60), Code), Say(string(after))}
	if before != "" {
		spans = append([]Span{Say(string(before))}, spans...)
	}
	return Message{
		Text:   Escape(string(before) + Brief(word, 60) + string(after) + " " + noBackticks.Replace(hint.text)),
		Blocks: []slack.Block{RichText(Line(spans...)), Section(hint)},
	}
}

// Notice is a modal that only shows this text.
func Notice(words Mrkdwn) slack.ModalViewRequest { return MessageOf(words).View() }

// Sum is a hash of the content of the message.
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

// ParagraphMessage is a message of one paragraph.
func ParagraphMessage(text string, spans ...Span) Message {
	return Message{Text: Escape(text), Blocks: []slack.Block{RichText(Line(spans...))}}
}

// Key identifies the message among those posted to one channel.
func (m Message) Key(thread string) string {
	if m.Marker == nil {
		return thread
	}
	return fmt.Sprint(thread, m.Marker.EventType, m.Marker.EventPayload)
}

// Options returns the message as options of slack-go.
func (m Message) Options() []slack.MsgOption {
	opts := []slack.MsgOption{slack.MsgOptionText(m.Text.escaped, false)}
	if len(m.Blocks) > 0 {
		opts = append(opts, slack.MsgOptionBlocks(m.Blocks...))
	}
	return opts
}

// View is a modal that only shows the message.
func (m Message) View() slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: Literal("Countersign"), Close: Literal("Close"), Blocks: slack.Blocks{BlockSet: m.Blocks},
	}
}
