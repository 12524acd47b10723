package slacksim

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// Message is a message as one person sees it.
type Message struct {
	Channel     string           `json:"channel"`
	TS          string           `json:"ts"`
	ThreadTS    string           `json:"thread_ts,omitempty"`
	User        string           `json:"user"`
	BotID       string           `json:"bot_id,omitempty"`
	Subtype     string           `json:"subtype,omitempty"`
	Username    string           `json:"username,omitempty"`
	Text        string           `json:"text"`
	Blocks      []any            `json:"blocks,omitempty"`
	Attachments []any            `json:"attachments,omitempty"`
	Metadata    map[string]any   `json:"metadata,omitempty"`
	Edited      bool             `json:"edited,omitempty"`
	Ephemeral   bool             `json:"is_ephemeral,omitempty"` // only this person sees it
	ReplyCount  int              `json:"reply_count,omitempty"`
	Reactions   []map[string]any `json:"reactions,omitempty"`
}

// View is a modal or Home tab as its person sees it.
type View struct {
	ID              string                               `json:"id"`
	Type            string                               `json:"type"`
	CallbackID      string                               `json:"callback_id,omitempty"`
	ExternalID      string                               `json:"external_id,omitempty"`
	PrivateMetadata string                               `json:"private_metadata,omitempty"`
	Title           string                               `json:"title,omitempty"`
	Submit          string                               `json:"submit,omitempty"`
	Close           string                               `json:"close,omitempty"`
	Blocks          []any                                `json:"blocks"`
	Values          map[string]map[string]map[string]any `json:"values,omitempty"`
	Errors          map[string]string                    `json:"errors,omitempty"` // of the last submission, by block_id
	Hash            string                               `json:"hash"`
	RootViewID      string                               `json:"root_view_id"`
	PreviousViewID  string                               `json:"previous_view_id,omitempty"`
}

// Action is an interactive element of a message or view.
type Action struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id"`
	Text     string `json:"text,omitempty"`
	Value    string `json:"value,omitempty"`
	Style    string `json:"style,omitempty"`
	Confirm  bool   `json:"confirm,omitempty"`
}

// Actions returns the interactive elements of the message in their order.
func (m Message) Actions() []Action { return actionsOf(m.Blocks) }

// Actions returns the interactive elements of the view in their order.
func (v View) Actions() []Action { return actionsOf(v.Blocks) }

func actionsOf(blocks []any) []Action {
	var found []Action
	blockkit.Walk(blocks, func(b, e object) {
		text, _ := e["text"].(object)
		found = append(found, Action{
			Type: str(e["type"]), ActionID: str(e["action_id"]), BlockID: str(b["block_id"]), Text: str(text["text"]),
			Value: str(e["value"]), Style: str(e["style"]), Confirm: e["confirm"] != nil,
		})
	})
	return found
}

// Shown returns every text of the message's blocks and attachments, or its
// text if it has none: what a person can read, one line per text.
func (m Message) Shown() string {
	if len(m.Blocks) == 0 && len(m.Attachments) == 0 {
		return m.Text
	}
	lines := append(readable(m.Blocks), readable(m.Attachments)...)
	return strings.Join(lines, "\n")
}

// Shown returns every text of the view's blocks, one line per text.
func (v View) Shown() string {
	return strings.Join(append([]string{v.Title}, readable(v.Blocks)...), "\n")
}

// readable collects the texts below v in the order of the blocks.
func readable(v any) []string {
	var lines []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			lines = append(lines, readable(item)...)
		}
	case object:
		for _, name := range []string{"title", "label", "text", "fields", "elements", "element", "accessory", "options", "hint", "child_blocks", "rows", "blocks"} {
			if s, ok := v[name].(string); ok {
				lines = append(lines, s)
				continue
			}
			lines = append(lines, readable(v[name])...)
		}
	}
	return lines
}

// seen is a message as everyone who may see it does. The caller holds mu.
func (c *channel) seen(m *message) Message {
	out := Message{
		Channel: c.ID, TS: m.ts, ThreadTS: m.threadTS, User: m.user, Subtype: m.subtype, Username: m.username,
		Text: m.text, Blocks: blocksOf(m.blocks), Attachments: m.attachments, Metadata: m.metadata, Edited: m.edited != nil,
		Ephemeral: m.visibleTo != "", ReplyCount: len(c.thread(m.ts)), Reactions: slices.Clone(m.reactions),
	}
	if m.app != nil {
		out.BotID = m.app.botID
	}
	if out.ReplyCount > 0 {
		out.ThreadTS = m.ts
	}
	return out
}

func (v *view) seen() View {
	label := func(name string) string {
		o, _ := v.payload[name].(object)
		return str(o["text"])
	}
	out := View{
		ID: v.id, Type: v.str("type"), CallbackID: v.str("callback_id"), ExternalID: v.str("external_id"),
		PrivateMetadata: v.str("private_metadata"), Title: label("title"), Submit: label("submit"), Close: label("close"),
		Blocks: v.blocks(), Values: map[string]map[string]map[string]any{}, Errors: maps.Clone(v.errors),
		Hash: v.hash, RootViewID: v.root, PreviousViewID: v.previous,
	}
	for block, actions := range v.values {
		out.Values[block] = maps.Clone(actions)
	}
	return out
}

// Assistant is what the app shows about itself in a thread.
type Assistant struct {
	Status  string           `json:"status,omitempty"`            // what the app is doing
	Loading []string         `json:"loading_messages,omitempty"`  // shown in turns with it
	Title   string           `json:"title,omitempty"`             // of the thread
	Prompts []map[string]any `json:"suggested_prompts,omitempty"` // {title, message} to start with
}
