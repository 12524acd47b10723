package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The arguments of a call that people are asked about are stored with its batch. The
// message that made the call does not have them again: it cites them, and is read with
// them. Both are stored by the same commit, and removed with the same thread.
type citingJSON struct {
	Kind    string                   `json:"kind"` // kindCiting
	Batch   approvals.BatchID        `json:"batch"`
	Args    map[int]approvals.Digest `json:"args"` // those of its parts, by their places
	Message json.RawMessage          `json:"message"`
}

const (
	// kindCiting is the kind of no message.
	kindCiting = "citing"
	// citedFrom is the length of arguments from which citing them takes less than they do.
	citedFrom = 256
)

// beginsCiting is how the text of a message that cites arguments begins.
var beginsCiting = []byte(`{"kind":"` + kindCiting + `"`)

var (
	// citedArgs stands for arguments in the message that cites them.
	citedArgs = json.RawMessage(`{}`)
	// removedArgs is read in the place of arguments whose batch was removed, while the rest
	// of its thread was not.
	removedArgs = json.RawMessage(`{"countersign":"These arguments were removed with their request."}`)
)

// putMessages appends messages to their thread. With a batch that is opened in the same
// commit, they cite its arguments.
func putMessages(ch *change, p partition, a agentrun.Append, o *agentrun.OpenBatch) error {
	if p.apart { // older versions read this store, too
		o = nil
	}
	values := make([]any, len(a.Messages))
	for i, m := range a.Messages {
		d, err := encodeMessage(m, o)
		if err != nil {
			return fmt.Errorf("encode message %d of %s: %w", a.At+i, a.Thread, err)
		}
		values[i] = pack(d)
	}
	k := p.messages(string(a.Thread))
	ch.wantLen(k, a.At)
	ch.rpush(k, values)
	return nil
}

// encodeMessage returns the text of a message, without the arguments that are stored with
// the batch, if there is one.
func encodeMessage(m agentrun.Message, o *agentrun.OpenBatch) ([]byte, error) {
	args := map[int]approvals.Digest{}
	if r, ok := m.(agentrun.Response); ok && o != nil {
		r.Parts = slices.Clone(r.Parts)
		for i, part := range r.Parts {
			call, ok := part.(agentrun.CallPart)
			if !ok || len(call.Args) < citedFrom {
				continue
			}
			// No other key with the same bytes: what a preview says goes when its call is edited.
			digest := approvals.DigestOf(o.Batch.ID, call.ToolCall)
			if bytes.Equal(o.Args[digest], call.Args) {
				args[i], call.Args = digest, citedArgs
				r.Parts[i] = call
			}
		}
		m = r
	}
	d, err := agentrun.EncodeMessage(m)
	if err != nil || len(args) == 0 {
		return d, err
	}
	return json.Marshal(citingJSON{kindCiting, o.Batch.ID, args, d})
}

// Messages implements [agentrun.Store]. A list that is shorter than to is
// [approvals.ErrNotFound]: a run that cites missing messages must not continue.
// A message that cannot be decoded is [agentrun.ErrUnreadable].
func (s *Store) Messages(ctx context.Context, id agentrun.ThreadID, from, to int) ([]agentrun.Message, error) {
	p, err := s.partitionOf(string(id))
	if err != nil {
		return nil, err
	}
	if from < 0 || to < from {
		return nil, fmt.Errorf("%w: messages [%d, %d) of %s", approvals.ErrInvalid, from, to, id)
	}
	if from == to {
		return nil, nil
	}
	raw, err := s.storedMessages(ctx, string(p.messages(string(id))), from, to)
	if err != nil {
		return nil, fmt.Errorf("load messages of %s: %w", id, err)
	}
	if len(raw) != to-from {
		return nil, fmt.Errorf("load messages [%d, %d) of %s: %w", from, to, id, approvals.ErrNotFound)
	}
	out := make([]agentrun.Message, len(raw))
	var cited []citation
	for i, stored := range raw {
		var of []citation
		if out[i], of, err = decodeMessage([]byte(stored)); err != nil {
			return nil, fmt.Errorf("decode message %d of %s: %w", from+i, id, err)
		}
		cited = append(cited, of...)
	}
	return out, wrap(s.cited(ctx, cited), "load arguments in messages of %s", id)
}

// storedMessages returns what is stored of these messages, as far as it is there.
func (s *Store) storedMessages(ctx context.Context, k string, from, to int) ([]string, error) {
	cmd, ok := s.prefetched(ctx, k).(*redis.StringSliceCmd)
	if !ok || !slices.Equal(cmd.Args()[2:], []any{int64(from), int64(to) - 1}) {
		cmd = readMessages(ctx, s.client, k, from, to)
	}
	return cmd.Result()
}

func readMessages(ctx context.Context, c redis.Cmdable, k string, from, to int) *redis.StringSliceCmd {
	return c.LRange(ctx, k, int64(from), int64(to)-1)
}

// A citation is a part of a message whose arguments are stored with a batch.
type citation struct {
	of   approvals.ArgsKey
	part *agentrun.ResponsePart
}

func decodeMessage(stored []byte) (agentrun.Message, []citation, error) {
	text, err := unpack(stored)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", agentrun.ErrUnreadable, err)
	}
	if !bytes.HasPrefix(text, beginsCiting) {
		m, err := agentrun.DecodeMessage(text)
		return m, nil, err
	}
	var c citingJSON
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", agentrun.ErrUnreadable, err)
	}
	m, err := agentrun.DecodeMessage(c.Message)
	if err != nil {
		return nil, nil, err
	}
	r, _ := m.(agentrun.Response)
	var cited []citation
	for i, digest := range c.Args {
		if i < 0 || i >= len(r.Parts) {
			return nil, nil, fmt.Errorf("%w: part %d of %d cites arguments", agentrun.ErrUnreadable, i, len(r.Parts))
		}
		cited = append(cited, citation{approvals.ArgsKey{Batch: c.Batch, Digest: digest}, &r.Parts[i]})
	}
	return m, cited, nil
}

// cited puts the arguments into the parts.
func (s *Store) cited(ctx context.Context, all []citation) error {
	keys := make([]approvals.ArgsKey, len(all))
	for i, c := range all {
		keys[i] = c.of
	}
	found, err := s.ArgsOf(ctx, keys)
	if errors.Is(err, approvals.ErrUnreadable) {
		err = fmt.Errorf("%w: %w", agentrun.ErrUnreadable, err)
	}
	if err != nil {
		return err
	}
	for _, c := range all {
		call, ok := (*c.part).(agentrun.CallPart)
		if !ok {
			return fmt.Errorf("%w: a part that is no call cites arguments", agentrun.ErrUnreadable)
		}
		if call.Args, ok = found[c.of]; !ok {
			if err := s.wantRemoved(ctx, c.of); err != nil {
				return err
			}
			call.Args = removedArgs
		}
		*c.part = call
	}
	return nil
}

// wantRemoved returns an error if arguments are missing though their batch is there.
func (s *Store) wantRemoved(ctx context.Context, k approvals.ArgsKey) error {
	p, err := s.partitionOf(string(k.Batch))
	if err != nil {
		return fmt.Errorf("%w: %w", agentrun.ErrUnreadable, err)
	}
	n, err := s.client.Exists(ctx, string(p.batch(string(k.Batch)))).Result()
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: arguments %s of %s are not stored", agentrun.ErrUnreadable, k.Digest.Short(), k.Batch)
	}
	return err
}
