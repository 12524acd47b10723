package card

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

func TestAModalPagesThroughWhatDoesNotFit(t *testing.T) {
	args := blockkit.Arguments(json.RawMessage(`{"path":"a","content":"`+strings.Repeat("<é>", 70_000)+`","mode":"w"}`), nil)
	pages := Paginate(args)
	require.Len(t, pages, 8)
	total := 0
	for _, page := range pages {
		raw, err := json.Marshal(page)
		require.NoError(t, err)
		require.Less(t, len(raw), 240_000)
		require.LessOrEqual(t, len(page), pageBlocks)
		total += textLength(raw)
	}
	require.Greater(t, total, 210_000)
	_, ok := pages[0][0].(*slack.RichTextBlock)
	require.True(t, ok)
	require.Len(t, Paginate(nil), 1)
}
