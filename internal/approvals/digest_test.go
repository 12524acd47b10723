package approvals_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/countersign/countersign/internal/approvals"
)

// Stored signatures name these digests: they never change.
func TestDigestVectors(t *testing.T) {
	for _, v := range digestVectors {
		got := DigestOf(v.batch, v.call)
		require.Equal(t, v.digest, got.String())
		require.True(t, strings.HasPrefix(v.digest, got.Short()))
		parsed, err := ParseDigest(v.digest)
		require.NoError(t, err)
		require.Equal(t, got, parsed)
	}
}

func TestDigestsDiffer(t *testing.T) {
	call := func(id ToolCallID, name, args string) ToolCall {
		return ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
	}
	seen := map[Digest]int{}
	for i, v := range []struct {
		batch BatchID
		call  ToolCall
	}{
		{"b", call("c", "n", `{"n":9007199254740993}`)},
		{"b", call("c", "n", `{"n":9007199254740992}`)}, // the same double
		{"b", call("c", "n", `{"n": 9007199254740992}`)},
		{"b", call("c", "n", `{"n":9007199254740992.0}`)},
		{"b", call("c", "n", ``)},
		{"b", call("c", "n", `{}`)},
		{"b", call("c", "n{}", ``)}, // the same bytes, cut elsewhere
		{"b", call("cn", "", `{}`)},
		{"bc", call("", "n", `{}`)},
		{"", call("bc", "n", `{}`)},
		{"b2", call("c", "n", `{}`)},
		{"b", call("c2", "n", `{}`)},
		{"b", call("c", "n2", `{}`)},
	} {
		d := DigestOf(v.batch, v.call)
		require.NotContains(t, seen, d)
		seen[d] = i
		require.False(t, d.IsZero())
	}
	require.Equal(t, DigestOf("b", call("c", "n", ``)), DigestOf("b", ToolCall{ID: "c", Name: "n"}), "nil is no bytes")
}

func TestDigestsAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00{}")), 0, 4, -1)
		type tuple struct{ batch, id, name, args string }
		draw := func() tuple { return tuple{part.Draw(t, "b"), part.Draw(t, "i"), part.Draw(t, "n"), part.Draw(t, "a")} }
		digest := func(x tuple) Digest {
			return DigestOf(BatchID(x.batch), ToolCall{ID: ToolCallID(x.id), Name: x.name, Args: json.RawMessage(x.args)})
		}
		x, y := draw(), draw()
		require.Equal(t, x == y, digest(x) == digest(y))
	})
}

func TestDigestText(t *testing.T) {
	d := DigestOf("b", ToolCall{ID: "c"})
	raw, err := json.Marshal(map[Digest]Digest{d: d})
	require.NoError(t, err)
	want := `{"` + d.String() + `":"` + d.String() + `"}`
	require.Equal(t, want, string(raw))
	var again map[Digest]Digest
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, map[Digest]Digest{d: d}, again)
	for _, bad := range []string{"", "00", d.String() + "00", "x" + d.String()[1:]} {
		require.ErrorIs(t, new(Digest).UnmarshalText([]byte(bad)), ErrInvalid)
	}
	require.True(t, Digest{}.IsZero())
}

func TestIDsCarryTheirPartition(t *testing.T) {
	for _, parts := range [][]string{{"T", "C", "1.2"}, {"TC", "", "1.2"}, {}} {
		p := PartitionOf(parts...)
		require.Equal(t, p, PartitionOf(parts...))
		got, err := Partition(NewID("run", p, "6f-0c"))
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	for _, bad := range []string{"", "run", "run-17", "run-17-", "run-64-x", "run-1-x", "run--1-x", "run-+1-x", "17-x"} {
		_, err := Partition(bad)
		require.ErrorIs(t, err, ErrNotFound, bad)
	}
}

var digestVectors = []struct {
	batch  BatchID
	call   ToolCall
	digest string
}{
	{"", ToolCall{ID: "", Name: "", Args: json.RawMessage("")}, "64a03e12b12ba54eb5ca6b9289e025bd74e6c2f67875ed8f22a736a240e948db"},
	{"batch-17-b", ToolCall{ID: "call_B", Name: "refund", Args: json.RawMessage("{\"cents\":4200}")}, "a9c6275c9d8d8bc88029283276045d58a6e77e174cd7fa9647939a81f8322964"},
	{"batch-17-b", ToolCall{ID: "call_B", Name: "refund", Args: json.RawMessage("{\"n\":9007199254740993}")}, "fbadb2850b5cea4d97ad9743108c055b680b3e52e7f6892bb7b777ea4cc11234"},
	{"batch-17-b", ToolCall{ID: "call_B", Name: "refund", Args: json.RawMessage("{\"n\":9007199254740992}")}, "30728b808de0f7ade614c8ae61f01715cdd96e190575f6254fb8ccdf8ee3f453"},
	{"batch-17-b", ToolCall{ID: "ü", Name: "delete", Args: json.RawMessage("{\"path\": \"/srv/a\"}\n")}, "580ee2fdf3d456a8013510b241be28a1a7aabb3fc24589e1444b3ba02dac49fe"},
}
