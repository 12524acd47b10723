package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// escapes are the pairs and single characters that JSON can write in two ways.
var escapes = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// meaning is the same for arguments that mean the same. It is found without
// decoding them, unlike what is shown.
func meaning(raw []byte) string {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 {
		return "{}"
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return "garbage: " + string(raw)
	}
	return escapes.ReplaceAllStringFunc(compact.String(), func(e string) string {
		var s string
		if json.Unmarshal([]byte(`"`+e+`"`), &s) != nil || (s == "\uFFFD" && !strings.EqualFold(e, `\ufffd`)) {
			return strings.ToLower(e)
		}
		if s < " " || s == `"` || s == `\` {
			return fmt.Sprintf(`\u%04x`, s)
		}
		return s
	})
}

// whole is what View full shows of the arguments, without the digest.
func whole(t *testing.T, raw []byte) string {
	t.Helper()
	pages := Paginate(blockkit.Arguments(raw, nil))
	shown, err := json.Marshal(pages)
	require.NoError(t, err)
	for _, page := range pages {
		require.LessOrEqual(t, len(page), pageBlocks)
		for _, b := range page {
			raw, err := json.Marshal(b)
			require.NoError(t, err)
			require.Less(t, textLength(raw), 3000)
		}
	}
	return string(shown)
}

// part is what a card shows of the arguments at this detail, and whether it
// says that this is not everything.
func part(t *testing.T, raw []byte, d blockkit.Detail) (string, bool) {
	t.Helper()
	list, incomplete := blockkit.DrawArguments(blockkit.Arguments(raw, nil), d)
	shown, err := json.Marshal(blockkit.BoxParas(list))
	require.NoError(t, err)
	return string(shown), incomplete
}

// A look is what arguments mean and everything that is shown of them.
type look struct {
	raw, meaning, whole string
	parts               []string // at each detail; empty if it says that it is not everything
}

func lookOf(t *testing.T, raw []byte) look {
	t.Helper()
	l := look{raw: string(raw), meaning: meaning(raw), whole: whole(t, raw)}
	for _, d := range Details {
		shown, incomplete := part(t, raw, d)
		if incomplete {
			shown = ""
		}
		l.parts = append(l.parts, shown)
	}
	return l
}

// apart fails if two arguments of different meaning could be taken for each
// other by who reads all that is shown.
func apart(t *testing.T, a, b look) {
	t.Helper()
	if a.meaning == b.meaning {
		return
	}
	require.NotEqual(t, a.whole, b.whole, "View full of %q and %q", a.raw, b.raw)
	for i := range Details {
		require.False(t, a.parts[i] != "" && a.parts[i] == b.parts[i], "detail %d of %q and %q", i, a.raw, b.raw)
	}
}

// alike are arguments that somebody could try to pass for another of them.
func alike() []string {
	long, page := strings.Repeat("k", 64), "\n"+strings.Repeat("x", pieceRunes-1)
	return []string{
		``, `{}`, `[]`, `null`, `""`, `"{}"`, `{`, "\u00a0{}", `{"":{}}`, `{"":""}`, `{"\"\"":{}}`,
		`{"` + long + `1":1}`, `{"` + long + `2":1}`, `{"` + long + `":1}`, `{"` + long + long + `1":"a\nb"}`, `{"` + long + long + `2":"a\nb"}`,
		`{"` + strings.Repeat("k", 9000) + `1":1}`, `{"` + strings.Repeat("k", 9000) + `2":1}`,
		`{"a":{"` + strings.Repeat("k", 9000) + `1":1}}`, `{"a":{"` + strings.Repeat("k", 9000) + `2":1}}`,
		`{"a":"\u202e"}`, `{"a":"⟦U+202E⟧"}`, `{"a":"⟦U+27E6⟧U+202E⟧"}`, `{"a\u202e":1}`, `{"a⟦U+202E⟧":1}`,
		`{"a":"` + strings.Repeat(" ", 20) + `"}`, `{"a":"⟦20 spaces⟧"}`, `{"a":"` + strings.Repeat(" ", 21) + `"}`,
		`{"a":"\ud800"}`, `{"a":"\ud801"}`, `{"a":"\ufffd"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\xfe\"}", `{"a":"⟦byte FF⟧"}`, `{"a":"\ud83d\ud83d\ude00"}`,
		`{"a":1,"b":2}`, `{"a":"1\nb: 2"}`, `{"a":1.0}`, `{"a":1}`, `{"a":"1"}`, `{"a":1e400}`, `{"a: 1":2}`, `{"a":{" b":2}}`, `{"a":1,"a":2}`, `{"a":2,"a":1}`,
		`"a\nb"`, `{"arguments":"a\nb"}`, `{"All arguments":"a\nb"}`, `{"a":"\\n"}`, `{"a":"\n"}`, `{"a":"\\u0000"}`, `{"a":"\u0000"}`,
		`{"a":"` + strings.ReplaceAll(page, "\n", `\n`) + `b: 1"}`, `{"a":"` + strings.ReplaceAll(page, "\n", `\n`) + `","b":1}`,
		`{"a":[[1,2],3]}`, `{"a":[[1],2,3]}`, `{"a":"[1, 2]"}`, `{"a":"(hidden, 3 characters)"}`,
		`{"a":"` + strings.Repeat("y", 300) + "1" + strings.Repeat("y", 300) + `"}`, `{"a":"` + strings.Repeat("y", 300) + "2" + strings.Repeat("y", 300) + `"}`,
		`{"A key of 128 characters":"x\ny","Its value":1}`,
	}
}

func TestArgumentsThatDifferLookDifferent(t *testing.T) {
	var seen []look
	for _, raw := range alike() {
		l := lookOf(t, []byte(raw))
		for _, other := range seen {
			apart(t, l, other)
		}
		seen = append(seen, l)
	}
}

func FuzzArgumentsThatDifferLookDifferent(f *testing.F) {
	all := alike()
	for i, a := range all {
		f.Add([]byte(a), []byte(all[(i+1)%len(all)]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		apart(t, lookOf(t, a), lookOf(t, b))
	})
}

// What means the same reads the same.
func TestArgumentsThatMeanTheSameLookTheSame(t *testing.T) {
	for a, b := range map[string]string{
		``: ` {} `, `{"a":"a\/b"}`: "{ \"\\u0061\" : \"\\u0061/b\"\n}", `{"e":"\ud83d\ude00"}`: `{"e":"😀"}`,
	} {
		require.Equal(t, meaning([]byte(a)), meaning([]byte(b)))
		require.Equal(t, whole(t, []byte(a)), whole(t, []byte(b)))
	}
}

func TestAKeyThatIsCutMakesTheCardIncomplete(t *testing.T) {
	key := strings.Repeat("k", 63) + "é and its end"
	text, incomplete := part(t, []byte(`{"`+key+`":1}`), Details[0])
	require.True(t, incomplete)
	require.Contains(t, text, "left out")
	require.Contains(t, whole(t, []byte(`{"`+key+`":1}`)), "and its end")
	_, incomplete = part(t, []byte(`{"`+strings.Repeat("k", blockkit.MaxKey)+`":1}`), Details[0])
	require.False(t, incomplete)
}

// A remark in the middle of a foreign text is always ours.
func TestNobodyCanWriteOurRemarks(t *testing.T) {
	for _, s := range []string{"⟦U+202E⟧", "⟦9 characters left out⟧", "\u27e6", "a⟦⟦"} {
		require.NotContains(t, strings.ReplaceAll(blockkit.Visible(s), "⟦U+27E6⟧", ""), "⟦", s)
	}
}
