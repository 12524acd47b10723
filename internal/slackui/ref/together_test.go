package ref

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func TestAButtonOfSeveralCallsNamesEachDigestOnce(t *testing.T) {
	var all []approvals.Digest
	for _, id := range []approvals.ToolCallID{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		all = append(all, approvals.DigestOf("batch-07-x", approvals.ToolCall{ID: id, Name: "n"}))
	}
	eight := Together{Card: Card{Batch: "batch-07-x", Part: 2}, Digests: all[:8]}
	s, err := eight.Encode()
	require.NoError(t, err)
	require.LessOrEqual(t, len(s), MaxPointer)
	back, err := ParseTogether(s)
	require.NoError(t, err)
	require.Equal(t, eight, back)

	_, err = Together{Card: eight.Card, Digests: all}.Encode()
	require.ErrorIs(t, err, ErrPointer, "more than a card has")
	one := all[0].String()
	for _, s := range []string{
		"", "t1|batch-07-x|0|", "t2|batch-07-x|0|" + one, "t1|batch-07-x|-1|" + one, "t1|batch-07-x|00|" + one, "t1|batch-99-x|0|" + one,
		"t1|batch-07-x|0|" + one + "," + one, "t1|batch-07-x|0|" + strings.ToUpper(one), "t1|batch-07-x|0|" + strings.Repeat("0", 64), "t1|batch-07-x|0|" + one + "|x",
	} {
		_, err := ParseTogether(s)
		require.ErrorIs(t, err, ErrPointer, s)
	}
}
