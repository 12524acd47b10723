package ref

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestButtonsArePointersAndNothingElse(t *testing.T) {
	digest := approvals.DigestOf("batch-07-x", approvals.ToolCall{ID: "c", Name: "n"})
	for _, id := range []approvals.ToolCallID{"c1", "call_AbC-1.2:3", "a|b", "ü", "", approvals.ToolCallID(strings.Repeat("x", 5000)), "#"} {
		p := Pointer{Batch: "batch-07-x", Call: id, Digest: digest}
		s, err := p.Encode()
		require.NoError(t, err)
		require.LessOrEqual(t, len(s), 2000)
		back, err := ParsePointer(s)
		require.NoError(t, err)
		require.Equal(t, p.Batch, back.Batch)
		require.Equal(t, p.Digest, back.Digest)
		b := approvals.Batch{Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "other"}}, {Call: approvals.CallRef{ID: id}}}}
		a, err := back.In(b)
		require.NoError(t, err)
		require.Equal(t, id, a.Call.ID)
	}
	good := "1|batch-07-x|" + digest.String() + "|c1"
	for _, s := range []string{
		"", "|||", "1|||", good + "|", "2" + good[1:], strings.ToUpper(good), " " + good, good + "\n",
		"1|batch-99-x|" + digest.String() + "|c1", "1|../x|" + digest.String() + "|c1", "1|batch-07-x:{a}|" + digest.String() + "|c1",
		"1|batch-07-x|" + strings.Repeat("0", 64) + "|c1", "1|batch-07-x|abc|c1", "1|batch-07-x|" + digest.String() + "|#zz",
		"1|batch-07-x|" + digest.String() + "|" + strings.Repeat("c", 201), strings.Repeat("1|", 5000),
	} {
		_, err := ParsePointer(s)
		require.ErrorIs(t, err, ErrPointer, s)
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("1|batch-07-x|" + strings.Repeat("ab", 32) + "|c1")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePointer(s)
		if err != nil {
			return
		}
		_, err = p.In(approvals.Batch{})
		require.ErrorIs(t, err, approvals.ErrNotFound)
	})
}
