package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// meant returns the batches in which calls may match the filter. It adds the threads for
// which the messages of the filter stand.
func (s *Service) meant(ctx context.Context, o *SheetOrder, d *draft) ([]approvals.Batch, error) {
	if o.Filter.Batch != "" {
		b, err := s.Cfg.Desk.Batch(ctx, o.Filter.Batch)
		if err != nil {
			return nil, err
		}
		return []approvals.Batch{b}, nil
	}
	who, err := s.People.Viewer(ctx, o.User, o.Team)
	if err != nil {
		return nil, err
	}
	d.Unsure = who.Unsure
	keys := directory.ListKeys(ref.List{Scope: ref.ScopeAll}, who, o.Channel)
	if o.Filter.Channel != "" {
		keys = []approvals.ListKey{approvals.ShownIn(o.Filter.Channel)}
	}
	var batches []approvals.Batch
	var unknown error
	now, calls := s.Cfg.Now(), 0
	d.More, err = directory.EachListed(ctx, s.Cfg.Lists, keys, sheetLooks, func(window []approvals.Batch) bool {
		if unknown = s.addThreads(ctx, &o.Filter, window); unknown != nil {
			return false
		}
		for _, b := range window {
			n := 0
			for _, a := range b.Approvals {
				if a.OpenAt(now) && o.Filter.Matches(b, a, now) {
					n++
				}
			}
			if n == 0 {
				continue
			}
			// Some of these will be left out, which makes room for others.
			if calls += n; calls > 2*approvals.MaxLines {
				return false
			}
			batches = append(batches, b)
		}
		return true
	})
	return batches, cmp.Or(err, unknown)
}

// addThreads adds to the threads of the filter those of the batches that a message of the
// filter shows. It looks up the cards of all batches together.
func (s *Service) addThreads(ctx context.Context, f *ref.Filter, batches []approvals.Batch) error {
	mayShow := map[approvals.BatchID][]ref.Message{}
	var cards approvals.Reads
	for _, b := range batches {
		if by := messagesThatMayShow(b, *f); len(by) > 0 {
			mayShow[b.ID] = by
			cards.Memos = append(cards.Memos, s.Placements.Key(b.ID))
		}
	}
	if len(mayShow) == 0 {
		return nil
	}
	ctx = s.Placements.Memos.Prefetch(ctx, cards)
	for _, b := range batches {
		by := mayShow[b.ID]
		if len(by) == 0 {
			continue
		}
		in, err := s.Placements.InThread(ctx, b.ID, by)
		if errors.Is(err, memo.ErrUnreadable) {
			continue // no link finds it; other filters do
		}
		if err != nil {
			return fmt.Errorf("look for the cards of batch %s: %w", b.ID, err)
		}
		if in && !slices.Contains(f.Threads, b.Thread) {
			f.Threads = append(f.Threads, b.Thread)
		}
	}
	return nil
}

// messagesThatMayShow returns the messages of the filter that may show the batch, unless its
// thread is one of the filter's already. A channel shows only what is on its list; of direct
// messages there is no such list.
func messagesThatMayShow(b approvals.Batch, f ref.Filter) []ref.Message {
	if slices.Contains(f.Threads, b.Thread) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Messages), func(m ref.Message) bool {
		return blockkit.IsChannel(m.Channel) && !slices.ContainsFunc(b.Approvals, func(a approvals.Approval) bool { return ref.ShownIn(b, a, m.Channel) })
	})
}
