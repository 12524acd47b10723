package state

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was read lately is decoded once, a document that differs in a byte is another, and
// memory is bounded.
func TestADocumentIsDecodedOnce(t *testing.T) {
	var d decoded[[]int]
	n := 0
	decode := func(doc []byte) (v []int, err error) {
		n++
		return v, json.Unmarshal(doc, &v)
	}
	get := func(doc string) (v []int, fresh bool) {
		t.Helper()
		before := n
		v, err := d.get([]byte(doc), decode)
		require.NoError(t, err)
		return v, n > before
	}
	if checksShared {
		v, _ := get("[1,2]")
		v[0] = 7
		require.PanicsWithValue(t, "a stored []int that others share was modified", func() { get("[1,2]") })
		return
	}
	v, fresh := get("[1,2]")
	require.True(t, fresh)
	require.Equal(t, []int{1, 2}, v)
	v, fresh = get("[1,2]")
	require.False(t, fresh)
	require.Equal(t, []int{1, 2}, v)
	v, fresh = get("[1,3]")
	require.True(t, fresh)
	require.Equal(t, []int{1, 3}, v)

	kept := func() (n int) {
		for _, all := range []map[string][]int{d.young, d.old} {
			for doc := range all {
				n += len(doc)
			}
		}
		return n
	}
	padded := func(n, length int) string { return fmt.Sprintf("[%d]%*s", n, length, "") }
	for i := range 5 * mostDecoded / 1000 {
		get(padded(i, 1000))
		_, fresh = get("[1,2]")
		require.False(t, fresh, "it is read all the time")
		require.LessOrEqual(t, kept(), 2*mostDecoded)
	}
	require.Greater(t, kept(), mostDecoded/2)
	_, fresh = get("[1,3]")
	require.True(t, fresh, "it was not read for long")

	for range 2 {
		_, fresh = get(padded(1, longestDecoded))
		require.True(t, fresh)
	}
	packed := pack([]byte(padded(1, longestDecoded)))
	require.Less(t, len(packed), 1000)
	require.Greater(t, textLength(packed), longestDecoded, "what it is in memory counts")
	for range 2 {
		_, err := d.get([]byte("["), decode)
		require.Error(t, err)
	}
}

// Two who append to what they share do not write to the same place.
func TestWhatIsSharedHasNoSpareCapacity(t *testing.T) {
	type deep struct {
		Inner []struct{ Names []string }
		More  *struct{ Raw json.RawMessage }
		Map   map[string]int
	}
	var d decoded[deep]
	doc := []byte(`{"Inner":[{"Names":["a","b","c"]}],"More":{"Raw":[1]},"Map":{"a":1}}`)
	var plain deep
	require.NoError(t, json.Unmarshal(doc, &plain))
	require.Greater(t, cap(plain.Inner[0].Names), 3, "what is decoded has room")
	v, err := d.get(doc, func(doc []byte) (v deep, err error) { return v, json.Unmarshal(doc, &v) })
	require.NoError(t, err)
	require.Equal(t, plain, v)
	require.Equal(t, []int{1, 3, 3}, []int{cap(v.Inner), cap(v.Inner[0].Names), cap(v.More.Raw)})
}
