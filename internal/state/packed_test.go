package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/approvals"
)

// texts are stored texts of every size, and some that nobody stores.
var texts = []string{
	"", "{}", `{"v":1}`, strings.Repeat("\x01", 3), "\x02", "\x01" + strings.Repeat("a", 500), "\x02" + strings.Repeat("\xff", 500),
	strings.Repeat("x", packedFrom-1), strings.Repeat("x", packedFrom), strings.Repeat("0123456789abcdef", 40),
	strings.Repeat(`{"id":"batch-52-38eba052-0713-5165-b68c-e292bc1559b6"}`, 20),
	strings.Repeat(`38eba052-0713-5165-b68c-e292bc1559b 38EBA052-0713-5165-b68c-e292bc1559b6 038eba052-0713-5165-b68c-e292bc1559b6`, 3),
	strings.Repeat("0123456789abcdef", 8) + "-", strings.Repeat("å 文 \u202e", 100), strings.Repeat("\xfe\xff", 100),
}

func TestWhatIsPackedIsUnpackedByteForByte(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		got, err := unpack(pack([]byte(text)))
		require.NoError(t, err)
		require.True(t, bytes.Equal([]byte(text), got), "%.60q", text)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), rapid.StringMatching(`[0-9a-f-]{0,70}`),
			rapid.SampledFrom([]string{`{"v":1,"id":"batch-`, `","run":"run-`, `"digest":"`, "\x00", "\x01", "\xfe", "\xff"}), rapid.String(),
		)).Draw(t, "parts"), ""))
		got, err := unpack(pack(text))
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, got))
	})
}

func TestTheDictionaryNeverChanges(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(packedWith)
	require.Equal(t, "746dc22bd46e7f60219fb169e5cbfc1a9c6e27ed2ba258c0e025ec5973ea2a24", hex.EncodeToString(sum[:]),
		"what was packed with it can no longer be read; add another dictionary beside it")
}

// The packed document in testdata was written once, like all that are there.
func TestPackedDocumentsAreReadForEver(t *testing.T) {
	t.Parallel()
	const name = "testdata/batch.v1.policy"
	text, err := os.ReadFile(name + ".json")
	require.NoError(t, err)
	text = bytes.TrimSpace(text)
	if _, err := os.Stat(name + ".packed"); *update && os.IsNotExist(err) {
		require.NoError(t, os.WriteFile(name+".packed", pack(text), 0o600))
	}
	stored, err := os.ReadFile(name + ".packed")
	require.NoError(t, err)
	require.Equal(t, byte(packedText), stored[0])
	got, err := unpack(stored)
	require.NoError(t, err)
	require.Equal(t, string(text), string(got))
}

func TestDocumentsThatWereNeverPackedAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	d, err := os.ReadFile("testdata/batch.v1.json")
	require.NoError(t, err)
	text, err := unpack(d)
	require.NoError(t, err)
	require.Equal(t, d, text)
	plain, err := decodeBatch(d)
	require.NoError(t, err)
	short := pack(d)
	require.Less(t, len(short), len(d)/2)
	again, err := decodeBatch(short)
	require.NoError(t, err)
	require.Equal(t, plain, again)
}

func TestWhatIsNotPackedByUsIsAnErrorAndBounded(t *testing.T) {
	t.Parallel()
	whole := pack([]byte(texts[10]))
	require.Equal(t, byte(packedText), whole[0])
	huge := append([]byte{packedText}, s2.Encode(nil, make([]byte, packedUpTo+1))...)
	require.Less(t, len(huge), packedUpTo/100)
	for name, stored := range map[string][]byte{
		"a mark alone": {packedText}, "cut off": whole[:len(whole)-1], "a length alone": whole[:3], "longer": append(bytes.Clone(whole), 0),
		"too large": huge, "a length without end": {packedText, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"half an id": append([]byte{packedText}, dictionary.Encode(nil, []byte{'a', shortUUID, 1, 2, 3})...),
	} {
		_, err := unpack(stored)
		require.ErrorIs(t, err, errPacked, name)
		_, err = decodeBatch(stored)
		require.Error(t, err, name)
	}
}

func FuzzUnpack(f *testing.F) {
	for _, text := range texts {
		f.Add(pack([]byte(text)))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		text, err := unpack(stored)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(text), 3*packedUpTo)
		again, err := unpack(pack(text))
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, again))
	})
}

// Documents are packed and unpacked in memory that is used again.
func TestWhatWasReadOutlivesTheMemoryInWhichItWasUnpacked(t *testing.T) {
	t.Parallel()
	batch := func(n int) approvals.Batch {
		id := fmt.Sprintf("batch-07-%05d", n)
		return approvals.Batch{ID: approvals.BatchID(id), Approvals: []approvals.Approval{{
			Metadata: json.RawMessage(`{"note":"` + strings.Repeat(id, 20) + `"}`), Why: strings.Repeat(id, 10),
		}}}
	}
	var stored [][]byte
	var decoded []approvals.Batch
	for n := range 50 {
		d, err := encodeBatch(batch(n))
		require.NoError(t, err)
		require.Equal(t, byte(packedText), d[0])
		b, err := decodeBatch(d)
		require.NoError(t, err)
		stored, decoded = append(stored, d), append(decoded, b)
	}
	for n := range stored {
		require.Equal(t, batch(n), decoded[n])
		again, err := decodeBatch(stored[n])
		require.NoError(t, err)
		require.Equal(t, batch(n), again)
	}
}
