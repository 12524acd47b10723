package approvals_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func TestTheContentOfAPreviewIsReadBesideTheBatch(t *testing.T) {
	keep := func(id BatchID, content string) (Content, json.RawMessage) {
		return Content{Digest: PreviewDigest(id, theCall, content), Size: len(content)}, json.RawMessage(content)
	}
	now, nowRaw := keep("b", "-a\n+b\n")
	before, beforeRaw := keep("earlier", "-z\n+b\n")
	b, _, err := Open(Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: opened}, []Deferral{{
		Call: ToolCall{ID: theCall, Name: "write", Args: theArgs}, Ask: Ask{Requirement: all(of(1, "ann"))},
		Preview: Preview{Status: PreviewMade, Content: now, Before: Before{Batch: "earlier", Content: before}},
	}}, nil)
	require.NoError(t, err)
	s := newShelf(b)
	d := desk(s, nil)
	_, _, err = d.PreviewContent(t.Context(), b, theCall)
	require.ErrorIs(t, err, ErrNotFound, "it is not there any more")

	s.args[now.Digest], s.args[before.Digest] = nowRaw, beforeRaw
	got, was, err := d.PreviewContent(t.Context(), b, theCall)
	require.NoError(t, err)
	require.Equal(t, []string{"-a\n+b\n", "-z\n+b\n"}, []string{got, was})
	_, _, err = d.PreviewContent(t.Context(), b, "other")
	require.ErrorIs(t, err, ErrNotFound)

	s.args[now.Digest] = json.RawMessage("+b\n")
	_, _, err = d.PreviewContent(t.Context(), b, theCall)
	require.ErrorIs(t, err, ErrStale, "what is stored is not what the tool found")
}

// Content is no arguments, whatever it says.
func TestADigestOfContentIsNoDigestOfArguments(t *testing.T) {
	require.NotEqual(t, DigestOf("b", ToolCall{ID: "c", Args: json.RawMessage("{}")}), PreviewDigest("b", "c", "{}"))
	require.NotEqual(t, PreviewDigest("b", "cc", ""), PreviewDigest("b", "c", "c"))
	require.NotEqual(t, PreviewDigest("b", "c", "x"), PreviewDigest("a", "c", "x"))
}
