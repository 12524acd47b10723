package agentrun

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The parts of a result survive the store, byte for byte, and a result without any is
// written as before there were some.
func TestPartsOfAResultAreKept(t *testing.T) {
	image := withContent(Part{Type: PartImage, MIMEType: "image/png", Name: "<!channel>"}, []byte{0, 0xff, 'x'})
	r := ToolReturn{
		ToolName: "t", CallID: "c", Content: []byte(`"x"`), Outcome: OutcomeSuccess, At: time.Unix(1_700_000_000, 0).UTC(),
		Parts: []Part{{Type: PartText, Text: "é\u202e"}, {Type: PartData, Text: `{"n":9007199254740993}`}, image, {Type: PartLink, URI: "http://169.254.169.254/"}},
	}
	b, err := EncodeRequestPart(r)
	require.NoError(t, err)
	back, err := DecodeRequestPart(b)
	require.NoError(t, err)
	require.Equal(t, r, back)
	r.Parts = nil
	b, err = EncodeRequestPart(r)
	require.NoError(t, err)
	require.NotContains(t, string(b), "parts")
}

// Content is kept whole or not at all, and what is dropped is known by its hash.
func TestPartsOfAResultAreBounded(t *testing.T) {
	large, small := withContent(Part{Type: PartImage}, make([]byte, MaxPartData)), withContent(Part{Type: PartAudio}, []byte("x"))
	all := bounded([]Part{small, large, small, {Type: PartText, Text: strings.Repeat("é", MaxResult)}, {Type: PartText, Text: "more"}, {Type: PartLink, URI: strings.Repeat("x", 1<<20)}})
	require.Len(t, all, 6)
	require.NotNil(t, all[0].Data)
	require.Nil(t, all[1].Data)
	require.Equal(t, MaxPartData, all[1].Size)
	require.Len(t, all[1].SHA256, 64)
	require.NotNil(t, all[2].Data)
	require.Len(t, all[3].Text, MaxResult)
	require.Empty(t, all[4].Text)
	require.Len(t, all[5].URI, maxPartLabel)
	data := bounded([]Part{{Type: PartData, Text: `"` + strings.Repeat("x", MaxResult) + `"`}})
	require.Empty(t, data[0].Text)
	require.Equal(t, MaxResult+2, data[0].Size)
	require.Len(t, bounded(make([]Part, 500)), MaxParts)
	require.Nil(t, bounded(nil))
}

// withContent is the part with the data as its content.
func withContent(p Part, data []byte) Part {
	sum := sha256.Sum256(data)
	p.Data, p.Size, p.SHA256 = data, len(data), hex.EncodeToString(sum[:])
	return p
}
