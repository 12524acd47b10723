package slackui

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

func fill(p places) {
	for range cap(p) {
		p <- struct{}{}
	}
}

// With every place taken an answer is as quick as ever, and nobody is
// acknowledged without a word: Slack shows its warning, or delivers again.
func TestNobodyIsLeftWithoutAWord(t *testing.T) {
	click := form(`{"type":"block_actions","user":{"id":"U1"},"container":{"channel_id":"C1"},"actions":[{"action_id":"x"}]}`)
	refused := form(`{"type":"block_actions","user":{"id":"U1"},"container":{"channel_id":"C1"},"actions":[{"action_id":"countersign.approve.0"}]}`)
	odd := form(`{"type":"shortcut","user":{"id":"U1"},"channel":{"id":"C1"}}`)
	synctest.Test(t, func(t *testing.T) {
		s, log := door(t)
		fill(s.words)
		for _, body := range []string{click, refused, odd} {
			w := knock(s, "POST", "/slack/interactivity", body)
			require.Equal(t, http.StatusInternalServerError, w.Code, body)
			require.Contains(t, log.String(), errNoPlace.Error())
		}
		<-s.words
		require.Equal(t, http.StatusOK, knock(s, "POST", "/slack/interactivity", click).Code)
	})
}

// oneMemo answers every question for a memo.
type oneMemo struct {
	raw []byte
	err error
}

func (m oneMemo) Memo(context.Context, string, string) ([]byte, int64, error) { return m.raw, 1, m.err }

func (m oneMemo) CommitMemo(context.Context, string, string, []byte, int64, int64) error {
	return approvals.ErrConflict
}

func (oneMemo) Confirm(context.Context, string) error { return nil }

// A click on a card that we know costs nothing after its answer.
func TestOnlyAnUnknownCopyIsTakenIntoCare(t *testing.T) {
	for name, c := range map[string]struct {
		memo    oneMemo
		unknown bool
	}{
		"the card":                {oneMemo{raw: []byte(`{"body":{"anchors":[{"part":0,"channel":"C1","ts":"1.1"}]}}`)}, false},
		"a copy":                  {oneMemo{raw: []byte(`{"body":{"anchors":[{"part":0,"channel":"C1","ts":"2.2"}]}}`)}, true},
		"a memo that is not read": {oneMemo{err: approvals.ErrConflict}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := door(t)
			s.cards.memos = c.memo
			fill(s.copies)
			var p payload
			p.Container.Channel, p.Container.Message = "C1", "1.1"
			p.Message.Metadata.Type, p.Message.Metadata.Payload = markerType, []byte(`{"batch":"batch-07-x","part":0}`)
			b := approvals.Batch{ID: "batch-07-x", Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: "c1"}}}}
			s.adopt(t.Context(), p, about{batch: b, approval: b.Approvals[0]})
			require.Equal(t, c.unknown, strings.Contains(log.String(), errNoPlace.Error()))
		})
	}
}
