package directory

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// archive has arguments of calls by their digest.
type archive map[approvals.Digest]json.RawMessage

func (s archive) Call(_ context.Context, b approvals.Batch, id approvals.ToolCallID) (approvals.ToolCall, error) {
	for _, a := range b.Approvals {
		if a.Call.ID != id {
			continue
		}
		call := approvals.ToolCall{ID: id, Name: a.Call.Name}
		if a.Call.Size > 0 {
			args, ok := s[a.Call.Digest]
			if !ok {
				return call, approvals.ErrNotFound
			}
			call.Args = args
		}
		if approvals.DigestOf(b.ID, call) != a.Call.Digest {
			return call, approvals.ErrStale
		}
		return call, nil
	}
	return approvals.ToolCall{}, approvals.ErrNotFound
}

func (s archive) CallsOf(_ context.Context, of []approvals.CallKey) (map[approvals.CallKey]approvals.ToolCall, error) {
	calls := map[approvals.CallKey]approvals.ToolCall{}
	for _, k := range of {
		if args, ok := s[k.Call.Digest]; ok {
			calls[k] = approvals.ToolCall{ID: k.Call.ID, Name: k.Call.Name, Args: args}
		}
	}
	return calls, nil
}

func (archive) PreviewContent(context.Context, approvals.Batch, approvals.ToolCallID) (now, before string, err error) {
	return "a preview", "", nil
}

// stored is a batch of one call in #C1 whose arguments were amended, and where
// both arguments are.
func stored(id approvals.BatchID) (approvals.Batch, approvals.Digest, archive) {
	was := approvals.ToolCall{ID: "c1", Name: "x", Args: json.RawMessage(`{"a":1}`)}
	now := approvals.ToolCall{ID: "c1", Name: "x", Args: json.RawMessage(`{"a":2}`)}
	from, to := approvals.DigestOf(id, was), approvals.DigestOf(id, now)
	return approvals.Batch{
		ID: id, Channel: "C1", Requester: "U2",
		Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "c1", Name: "x", Digest: to, Size: len(now.Args)}}},
	}, from, archive{from: was.Args, to: now.Args}
}

func TestAReaderReadsItsOwnBatchOnly(t *testing.T) {
	b, before, calls := stored("batch-01-a")
	other, _, _ := stored("batch-01-b")
	r := New(Directory{}, calls).Audience(b, "C1")
	require.True(t, r.Reads(b))
	call, err := r.Call(t.Context(), b, "c1")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":2}`, string(call.Args))
	call, err = r.CallAs(t.Context(), b, "c1", before)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(call.Args))
	_, err = r.CallAs(t.Context(), b, "c1", approvals.Digest{1})
	require.ErrorIs(t, err, approvals.ErrStale)
	_, err = r.CallAs(t.Context(), b, "c2", before)
	require.ErrorIs(t, err, approvals.ErrNotFound)

	require.False(t, r.Reads(other))
	_, err = r.Call(t.Context(), other, "c1")
	require.ErrorIs(t, err, ErrMayNotRead)
	_, err = r.CallAs(t.Context(), other, "c1", before)
	require.ErrorIs(t, err, ErrMayNotRead)
	now, _, err := r.Preview(t.Context(), b, "c1")
	require.NoError(t, err)
	require.Equal(t, "a preview", now)
	_, _, err = r.Preview(t.Context(), other, "c1")
	require.ErrorIs(t, err, ErrMayNotRead)
}

func TestTheZeroReaderReadsNothing(t *testing.T) {
	b, before, _ := stored("batch-01-a")
	for name, b := range map[string]approvals.Batch{"a batch": b, "no batch": {}} {
		require.False(t, Reader{}.Reads(b), name)
		_, err := Reader{}.Call(t.Context(), b, "c1")
		require.ErrorIs(t, err, ErrMayNotRead, name)
	}
	_, err := Reader{}.CallAs(t.Context(), b, "c1", before)
	require.ErrorIs(t, err, ErrMayNotRead)
	_, _, err = Reader{}.Preview(t.Context(), b, "c1")
	require.ErrorIs(t, err, ErrMayNotRead)
}

func TestAChannelReadsWhatIsShownInIt(t *testing.T) {
	b, _, calls := stored("batch-01-a")
	d := New(Directory{}, calls)
	require.True(t, d.Audience(b, "C1").Reads(b))
	require.False(t, d.Audience(b, "C2").Reads(b))
	require.False(t, d.Audience(b, "").Reads(b))
	nowhere := b
	nowhere.Channel = ""
	require.False(t, d.Audience(nowhere, "").Reads(nowhere))

	b.Approvals[0].Requirement.Ladder = []approvals.Rung{{Kind: approvals.Escalate, Channel: "C2"}}
	require.False(t, d.Audience(b, "C2").Reads(b), "it is not escalated yet")
	b.Approvals[0].Climbed = 1
	require.True(t, d.Audience(b, "C2").Reads(b))
}

func TestARefusedPersonGetsNoReader(t *testing.T) {
	b, _, calls := stored("batch-01-a")
	for says, want := range map[string]error{
		`"team_id":"T1"`:                      nil,
		`"team_id":"T1","deleted":true`:       ErrGone,
		`"team_id":"T1","is_restricted":true`: ErrGuest,
	} {
		d := New(*knowing(t, says), calls)
		asker := b
		asker.Requester = "U1"
		r, err := d.MayRead(t.Context(), Who{User: "U1"}, asker)
		require.ErrorIs(t, err, want, says)
		require.Equal(t, want == nil, r.Reads(asker), says)
		require.Equal(t, want != nil, IsRefusal(err), says)
	}
	d := New(*knowing(t, `"team_id":"T1"`), calls)
	alone := b
	alone.Channel = ""
	r, err := d.MayRead(t.Context(), Who{User: "U1"}, alone)
	require.ErrorIs(t, err, ErrMayNotRead)
	require.False(t, r.Reads(alone))

	r, err = d.MayRead(t.Context(), Who{User: "U1"}, b) // this Slack says nothing of C1
	require.ErrorIs(t, err, ErrLookup)
	require.False(t, IsRefusal(err), "an unanswered question refuses nobody for good")
	require.False(t, r.Reads(b))
}
