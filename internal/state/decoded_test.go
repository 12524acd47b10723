package state

import (
	"encoding/json"
	"strconv"
	"strings"
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

	for i := range 10 * mostDecoded {
		get("[" + strconv.Itoa(i) + "]")
		_, fresh = get("[1,2]")
		require.False(t, fresh, "it is read all the time")
		require.LessOrEqual(t, len(d.young)+len(d.old), 2*mostDecoded)
	}
	_, fresh = get("[1,3]")
	require.True(t, fresh)

	long := strings.Repeat(" ", longestDecoded) + "[1]"
	for range 2 {
		_, fresh = get(long)
		require.True(t, fresh)
	}
	for range 2 {
		_, err := d.get([]byte("["), decode)
		require.Error(t, err)
	}
}

// Two who append to what they share do not write to the same place.
func TestWhatIsSharedHasNoRoom(t *testing.T) {
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
