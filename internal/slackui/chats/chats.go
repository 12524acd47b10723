// Package chats keeps a Slack thread for each conversation that takes place outside Slack.
package chats

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Chats are the Slack threads of conversations that take place outside Slack. Before
// its first card, a message that names the chat is posted, and every card of the chat
// goes into the thread of that message.
type Chats struct {
	Memos memo.Store
	API   *slackapi.Client
	// Page returns the address at which the person of the run opens the chat; empty
	// if there is none. It may be nil.
	Page  func(run agentrun.Run) string
	Now   func() time.Time
	Lease time.Duration // of a claim, see [memo.Notes]
}

// A chatThread is the memo of a conversation: the message that names the chat.
type chatThread struct {
	TS   string `json:"ts,omitempty"`
	Lost int    `json:"lost,omitempty"` // how often a reply to it failed
}

// maxLost is how many threads a chat can lose. After that, as in a channel in which
// replies never work, its cards go into the channel itself.
const maxLost = 3

func (c *Chats) notes() memo.Notes[chatThread] {
	return memo.Notes[chatThread]{Memos: c.Memos, Surface: "chats", Now: c.Now, Lease: c.Lease}
}

// Thread returns the thread of the chat. If there is none, it posts the message that
// begins it, under a claim. The thread is empty where replies do not work.
func (c *Chats) Thread(ctx context.Context, run agentrun.Run, b approvals.Batch) (string, error) {
	n, _, err := c.notes().Load(ctx, string(run.Thread))
	if err != nil || n.Body.TS != "" || n.Body.Lost == maxLost {
		return n.Body.TS, err
	}
	ts := ""
	err = c.notes().Reconcile(ctx, string(run.Thread), func(ctx context.Context, h *memo.Claim[chatThread]) (int64, error) {
		if h.Body.TS == "" && h.Body.Lost < maxLost {
			posted, err := c.API.Post(ctx, b.Channel, "", c.opening(run, b))
			if err != nil {
				return 0, fmt.Errorf("name the chat %s in %s: %w", run.Thread, b.Channel, err)
			}
			if err := h.Save(ctx, func(x *chatThread) { x.TS = posted }); err != nil {
				return 0, err
			}
		}
		ts = h.Body.TS
		return 0, nil
	})
	return ts, err
}

// Lost forgets the thread, whose first message someone removed. The next card begins
// another one.
func (c *Chats) Lost(ctx context.Context, run agentrun.Run, ts string) error {
	return c.notes().Edit(ctx, string(run.Thread), func(x *chatThread) {
		if x.TS == ts {
			x.TS, x.Lost = "", x.Lost+1
		}
	})
}

// titleRunes is how much of what the person wrote names a chat.
const titleRunes = 80

// opening returns the message that names the chat: the person, the agent, and the first
// words of the prompt that led to the request, as the cards quote them.
func (c *Chats) opening(run agentrun.Run, b approvals.Batch) blockkit.Message {
	agent, title := blockkit.Brief(b.Agent, 60), blockkit.Brief(b.Prompt.Text, titleRunes)
	text := sayChatWith + agent
	paras := []blockkit.Para{blockkit.Line(
		blockkit.Styled(sayChatOf, blockkit.Bold), blockkit.PersonSpan(b.Requester), blockkit.Say(sayWith), blockkit.Styled(agent, blockkit.Bold))}
	if title != "" {
		text += ": " + title
		paras = append(paras, blockkit.Quoted(title))
	}
	about := []blockkit.Span{blockkit.Say(sayRequestsHere)}
	if link := c.page(run); link != "" {
		about = append(about, blockkit.Say(" "), slack.NewRichTextSectionLinkElement(link, sayOpenChat, nil), blockkit.Say(sayOnlyTheirs))
	}
	return blockkit.Message{Text: blockkit.Escape(text), Blocks: []slack.Block{blockkit.RichText(append(paras, blockkit.Line(about...))...)}}
}

func (c *Chats) page(run agentrun.Run) string {
	if c.Page == nil {
		return ""
	}
	return c.Page(run)
}
