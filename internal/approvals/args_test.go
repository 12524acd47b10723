package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestCheckArgs(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	for _, ok := range []string{
		``, `{}`, " \t\r\n{ } \n", `{"a":1,"A":2}`, `{"a":{"a":{"a":[{"a":1},{"a":2}]}}}`,
		`{"n":9007199254740993,"m":-0.0e-10,"l":1E+999999}`, `{"":""}`, `{"a":[true,false,null,[],{}]}`,
		`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀\u0000\uFFFF` + "\u2028" + `"}`,
		`{"\u00e9":1,"e":2}`, deep(64), `{"a":"` + strings.Repeat("x", MaxArgs-8) + `"}`,
	} {
		require.NoError(t, CheckArgs(json.RawMessage(ok)), "%.100s", ok)
		require.True(t, ok == "" || json.Valid([]byte(ok)))
	}
	for bad, says := range map[string]string{
		` `:                        "byte 1: a JSON object must begin here",
		`null`:                     "byte 0: a JSON object must begin here",
		`[]`:                       "byte 0: a JSON object",
		`"{}"`:                     "byte 0: a JSON object",
		"\ufeff{}":                 "byte 0: a JSON object",
		`{`:                        "byte 1: a key in quotes",
		`{"a"`:                     "byte 4: a colon",
		`{"a":`:                    "byte 5: the text ends",
		`{"a":1`:                   "byte 6: a comma or the end",
		`{"a":1,}`:                 "byte 7: a key in quotes",
		`{"a":[1,]}`:               "byte 8: a value is expected",
		`{"a":[1 2]}`:              "byte 8: a comma or the end of the array",
		`{} {}`:                    "byte 3: nothing may follow",
		`{}x`:                      "byte 2: nothing may follow",
		"{}\x00":                   "byte 2: nothing may follow",
		`{'a':1}`:                  "byte 1: a key",
		`{a:1}`:                    "byte 1: a key",
		`{"a":01}`:                 "byte 6: a comma",
		`{"a":+1}`:                 "byte 5: a value",
		`{"a":-}`:                  "byte 6: a digit",
		`{"a":1.}`:                 "byte 7: a digit is expected after the point",
		`{"a":.5}`:                 "byte 5: a value",
		`{"a":1e}`:                 "byte 7: a digit is expected in the exponent",
		`{"a":NaN}`:                "byte 5: a value",
		`{"a":nul}`:                "byte 5: a value",
		`{"a":"`:                   "byte 6: a string has no end",
		`{"a":"\`:                  "byte 6: a string has no end",
		`{"a":"\x"}`:               "byte 6: no such escape",
		`{"a":"\u12"}`:             "byte 6: four hex digits",
		`{"a":"\u12g4"}`:           "byte 6: four hex digits",
		"{\"a\":\"\n\"}":           "byte 6: a control character",
		"{\"a\":\"\xff\"}":         "byte 6: the text is not valid UTF-8",
		"{\"a\":\"\xed\xa0\x80\"}": "byte 6: the text is not valid UTF-8", // a surrogate in UTF-8
		"{\"\xc0\x80\":1}":         "byte 2: the text is not valid UTF-8", // overlong
		`{"a":"\ud800"}`:           "byte 6: half a surrogate pair",
		`{"a":"\udc00\ud800"}`:     "byte 6: half a surrogate pair",
		`{"a":"\ud800\ud800"}`:     "byte 6: half a surrogate pair",
		`{"a":"\ud800x"}`:          "byte 6: half a surrogate pair",
		`{"a":"\ud800\`:            "byte 6: half a surrogate pair",
		`{"\udfff":1}`:             "byte 2: half a surrogate pair",
		`{"a":1,"a":1}`:            `byte 7: the key "a" occurs twice`,
		`{"a":1,"\u0061":1}`:       `byte 7: the key "a" occurs twice`,
		`{"é":1,"\u00e9":1}`:       `the key "é" occurs twice`,
		`{"😀":1,"\ud83d\ude00":1}`: `the key "😀" occurs twice`,
		`{"a\/b":1,"a/b":1}`:       `the key "a/b" occurs twice`,
		`{"x\ty":1,"x\u0009y":1}`:  "occurs twice",
		`{"b":[{"a":1,"a":2}]}`:    "byte 13: the key",
		`{"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"8":0}`: `the key "8" occurs twice`,
		`{"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"0":0}`: `the key "0" occurs twice`,
		deep(65):                               "nested too deep",
		`{"a":` + strings.Repeat("[", 100_000): "nested too deep",
		`{"a":"` + strings.Repeat("x", MaxArgs-7) + `"}`: "have 262145 bytes, at most 262144 are allowed",
	} {
		err := CheckArgs(json.RawMessage(bad))
		require.ErrorIs(t, err, ErrInvalid, "%.100s", bad)
		require.ErrorContains(t, err, says, "%.100s", bad)
		require.Less(t, len(err.Error()), 300, "the model reads it")
	}
}

func TestCheckArgsIsQuick(t *testing.T) {
	var many bytes.Buffer
	many.WriteString(`{"k":0`)
	for i := 0; many.Len() < MaxArgs-20; i++ {
		fmt.Fprintf(&many, `,"\u006b%d":0`, i)
	}
	many.WriteString("}")
	start := time.Now()
	for range 10 {
		require.NoError(t, CheckArgs(many.Bytes()))
	}
	require.Less(t, time.Since(start), 5*time.Second)
}

func FuzzCheckArgs(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"a":[1,2.5e3,true,null,"x\u0061"]}`, "{\"\xff\":1}", `{"\ud83d\ude00":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		err := CheckArgs(raw)
		require.Equal(t, before, raw)
		strict := len(raw) == 0 || alike(raw)
		require.Equal(t, strict, err == nil, "%q: %v", raw, err)
		if err != nil || len(raw) == 0 {
			return
		}
		// Whatever decodes it and encodes it again keeps every number and key.
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v map[string]any
		require.NoError(t, dec.Decode(&v))
		again, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, CheckArgs(again))
	})
}

// alike says with the standard decoder's means whether every reader reads raw
// alike: a second implementation of CheckArgs.
func alike(raw []byte) bool {
	if !json.Valid(raw) || !utf8.Valid(raw) || len(raw) > MaxArgs || bytes.TrimSpace(raw)[0] != '{' || loneSurrogate(raw) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var keys []map[string]bool // one for each open object, nil for an array
	key := false               // a key comes next
	for {
		tok, err := dec.Token()
		if err != nil {
			return len(keys) == 0
		}
		switch tok := tok.(type) {
		case json.Delim:
			switch tok {
			case '{':
				keys, key = append(keys, map[string]bool{}), true
			case '[':
				keys, key = append(keys, nil), false
			default:
				keys = keys[:len(keys)-1]
				key = len(keys) > 0 && keys[len(keys)-1] != nil
			}
			if len(keys) > maxDepth {
				return false
			}
			continue
		case string:
			if key {
				top := keys[len(keys)-1]
				if top[tok] {
					return false
				}
				top[tok] = true
				key = false
				continue
			}
		}
		key = len(keys) > 0 && keys[len(keys)-1] != nil
	}
}

// loneSurrogate looks for half a pair among the escapes of valid JSON.
func loneSurrogate(raw []byte) bool {
	high := false
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		if raw[i+1] != 'u' {
			if high {
				return true
			}
			i++
			continue
		}
		var r rune
		_, _ = fmt.Sscanf(string(raw[i+2:i+6]), "%x", &r)
		low := 0xDC00 <= r && r < 0xE000
		if low != high {
			return true
		}
		high = 0xD800 <= r && r < 0xDC00
		i += 5
	}
	return high
}
