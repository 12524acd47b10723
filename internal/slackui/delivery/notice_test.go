package delivery

import (
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/directory"
)

func TestANoticeShowsNoArgumentToAReaderThatReadsNothing(t *testing.T) {
	a := approvals.Approval{
		Call:     approvals.CallRef{ID: "c1", Name: "delete_file"},
		Summary:  "Delete {args.path}",
		Severity: approvals.SeverityHigh,
	}
	b := approvals.Batch{ID: "batch-07-x", Approvals: []approvals.Approval{a}}
	text := ""
	for _, span := range does(t.Context(), directory.Reader{}, b, a) {
		said, ok := span.(*slack.RichTextSectionTextElement)
		require.True(t, ok)
		text += said.Text
	}
	require.Equal(t, "• Delete file · High risk", text)
}
