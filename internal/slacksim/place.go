package slacksim

import (
	"encoding/json"
	"fmt"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// place is the message or view that a click names, and who clicks.
type place struct {
	app     *installation
	person  *Person
	channel *channel // nil in views
	message *message
	view    *view // nil in messages
	blocks  []any
}

// place finds where a click is. The caller holds mu.
func (s *interactions) place(in Click) (place, error) {
	if in.ViewID != "" {
		p, err := s.active(in.User)
		if err != nil {
			return place{}, err
		}
		v := s.screens.homes[p.ID]
		if v == nil || v.id != in.ViewID {
			if v, err = s.screens.modal(p, in.ViewID); err != nil {
				return place{}, err
			}
		}
		return place{app: v.in, person: p, view: v, blocks: v.blocks()}, nil
	}
	p, c, err := s.actor(in.User, in.Channel)
	if err != nil {
		return place{}, err
	}
	m := c.find(in.TS)
	if m == nil || m.app == nil || (m.visibleTo != "" && m.visibleTo != p.ID) {
		return place{}, noSuch("message of the app", in.TS)
	}
	list := append(blocksOf(m.blocks), attachedBlocks(m.attachments)...)
	return place{app: m.app, person: p, channel: c, message: m, blocks: list}, nil
}

// container is how payloads name the place of a block.
func (at place) container(block object) object {
	if at.view != nil {
		return object{"type": "view", "view_id": at.view.id}
	}
	m := at.message
	o := object{"type": "message", "message_ts": m.ts, "channel_id": at.channel.ID, "is_ephemeral": m.visibleTo != ""}
	if id := attachmentOf(m, block); id != nil {
		o["type"], o["attachment_id"], o["is_app_unfurl"] = "message_attachment", id, false
	}
	switch {
	case m.threadTS != "":
		o["thread_ts"] = m.threadTS
	case len(at.channel.thread(m.ts)) > 0:
		o["thread_ts"] = m.ts
	}
	return o
}

// findOnScreen also looks at what the message was before it was edited, the
// latest first: a person may click before the edit has reached their screen.
func findOnScreen(now []any, earlier []json.RawMessage, in Click) (block, element object, err error) {
	block, element, err = find(now, in)
	for i := len(earlier) - 1; i >= 0 && err != nil; i-- {
		if b, e, stale := find(blocksOf(earlier[i]), in); stale == nil {
			return b, e, nil
		}
	}
	return block, element, err
}

// find looks up the element that a click names.
func find(list []any, in Click) (block, element object, err error) {
	n := 0
	blockkit.Walk(list, func(b, e object) {
		if e["action_id"] == in.ActionID && (in.BlockID == "" || b["block_id"] == in.BlockID) {
			n++
			block, element = b, e
		}
	})
	switch n {
	case 0:
		return nil, nil, noSuch("action_id", in.ActionID)
	case 1:
		return block, element, nil
	}
	return nil, nil, fmt.Errorf("%w: action_id %q is there %d times, say the block_id", ErrBadInput, in.ActionID, n)
}

// attachmentOf returns the id of the attachment that a block is in, or nil. Every
// block of a message and its attachments has a block_id of its own.
func attachmentOf(m *message, block object) any {
	for _, a := range m.attachments {
		o, _ := a.(object)
		found := false
		blockkit.Walk(attachedBlocks([]any{a}), func(b, _ object) { found = found || b["block_id"] == block["block_id"] })
		if found {
			return o["id"]
		}
	}
	return nil
}

func attachedBlocks(attachments []any) []any {
	var all []any
	for _, a := range attachments {
		o, _ := a.(object)
		inner, _ := o["blocks"].([]any)
		all = append(all, inner...)
	}
	return all
}
