package blockkit

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/spoof"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext":      "plain\n\ttext",
		"a\u202eb":           "a⟦U+202E⟧b",
		"zero\u200bwidth":    "zero⟦U+200B⟧width",
		"\u2066x\u2069":      "⟦U+2066⟧x⟦U+2069⟧",
		"bell\a\r":           "bell⟦U+0007⟧⟦U+000D⟧",
		"nb\u00a0sp":         "nb⟦U+00A0⟧sp",
		"tag\U000e0041":      "tag⟦U+E0041⟧",
		"hangul\u3164filler": "hangul⟦U+3164⟧filler",
		"byte\xff":           "byte⟦byte FF⟧",
		"\ufffd":             "\ufffd",
		"größe 猫 ❤️":         "größe 猫 ❤️",
		"\u2028":             "⟦U+2028⟧",
		"p\u0430ypal/a.txt":  "p⟦Cyrillic \u0430⟧ypal/a.txt",
		"\u0430.txt":         "⟦Cyrillic \u0430⟧.txt",
		"a\ufe0f":            "a⟦U+FE0F⟧",
		"p\uff41y":           "p⟦fullwidth \uff41⟧y",
		"⟦U+0430⟧":           "⟦U+27E6⟧U+0430⟧",
		"Z" + strings.Repeat("\u0301", 9) + "\u0302!": "Z\u0301\u0301\u0301\u0301⟦U+0301 ×5 U+0302⟧!",
	} {
		require.Equal(t, want, Visible(in), "%q", in)
	}
}

var ourRemark = regexp.MustCompile(`⟦[^⟧]*⟧`)

// FuzzVisible: outside of our remarks there is nothing that people would not
// see, or would take for something else.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"p\u0430ypal", "a\u0301\u0301\u0301\u0301\u0301\u0302", "\xff⟦\u202e⟧", "❤\ufe0f\ufe0f", "\u0441\u043e\u0440\u0443.txt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Visible(s)
		require.True(t, utf8.ValidString(out))
		require.Equal(t, strings.Count(s, "⟦"), strings.Count(out, "⟦U+27E6⟧"))
		left := ourRemark.ReplaceAllStringFunc(out, func(said string) string {
			code, _ := strconv.ParseUint(strings.Trim(said, "⟦U+⟧"), 16, 32)
			switch {
			case rune(code) == remarkStart:
				return "." // somebody wrote it, so it is a character to look at
			case unicode.IsSpace(rune(code)):
				return " " // words end there
			}
			return ""
		})
		require.Empty(t, spoof.Find(left), "%+q of %+q", left, s)
	})
}

func TestEscapeOnceAndBack(t *testing.T) {
	require.Equal(t, "&lt;!channel&gt; &amp;amp;", Escape("<!channel> &amp;").String())
	require.Equal(t, "<b> &lt;", Unescape("&lt;b&gt; &amp;lt;"))
}

func TestCutKeepsLettersWhole(t *testing.T) {
	head, left := Cut("abcdef", 4)
	require.Equal(t, "abcd", head)
	require.Equal(t, 2, left)
	head, left = Cut("ae\u0301x", 2)
	require.Equal(t, "a", head)
	require.Equal(t, 3, left)
	head, left = Cut("猫猫", 2)
	require.Equal(t, "猫猫", head)
	require.Zero(t, left)
}

func TestRemarksAreNotCutInTwo(t *testing.T) {
	for _, spoof := range []string{"\u200D", "p\u0430y", "\xff"} {
		marked := Visible(spoof)
		require.Contains(t, marked, "⟦")
		for before := range 30 {
			s := Visible(strings.Repeat("x", before) + strings.Repeat(spoof+"yyyy", 20))
			head, left := Cut(s, 30)
			require.LessOrEqual(t, utf8.RuneCountInString(head), 30)
			require.Equal(t, utf8.RuneCountInString(s)-utf8.RuneCountInString(head), left)
			short, _ := Shorten(s, 80)
			parts := Pieces(s, 30)
			require.Equal(t, s, strings.Join(parts, ""))
			for _, part := range append(parts, head, short) {
				require.Equal(t, strings.Count(part, "⟦"), strings.Count(part, "⟧"), part)
			}
		}
	}
	require.Equal(t, []string{"⟦U+20", "0D⟧"}, Pieces(Visible("\u200D"), 5), "a remark that is longer than a part")
	require.Empty(t, Pieces("", 5))
	head, left := Cut("a ⟦", 10)
	require.Equal(t, "a ⟦", head, "a bracket that begins no remark")
	require.Zero(t, left)
}

// What follows many short lines would be folded away as what follows a long text is.
func TestAValueOfManyLinesIsCut(t *testing.T) {
	script := func(n int) json.RawMessage {
		raw, err := json.Marshal(map[string]string{"command": "first" + strings.Repeat("\n", n-2) + "\nlast"})
		require.NoError(t, err)
		return raw
	}
	d := Detail{Value: 600, Lines: 20, Keys: 10}
	boxes, incomplete := DrawArguments(Arguments(script(20), nil), d)
	require.False(t, incomplete)
	require.Equal(t, 19, strings.Count(boxes[0].Text, "\n"))
	boxes, incomplete = DrawArguments(Arguments(script(200), nil), d)
	require.True(t, incomplete)
	require.Equal(t, "first"+strings.Repeat("\n", 15)+" ⟦180 characters left out⟧ "+strings.Repeat("\n", 4)+"last", boxes[0].Text)
	boxes, incomplete = DrawArguments(Arguments(json.RawMessage(`{"tree":[`+strings.Repeat("[1234567890],", 30)+`[]]}`), nil), d)
	require.True(t, incomplete, "JSON that is printed over many lines")
	require.Less(t, strings.Count(boxes[0].Text, "\n"), 20)
	short, left := shorten(strings.Repeat("\n", 5)+strings.Repeat("x", 700), 600, 20)
	require.Positive(t, left, "few lines, and too long")
	require.True(t, strings.HasSuffix(short, strings.Repeat("x", 150)))
}

func TestArgumentsAreShownAsStored(t *testing.T) {
	for in, want := range map[string]string{
		``:   ``,
		`{}`: ``,
		`{"b":1,"a":1.50,"c":-0,"d":1E5,"e":123456789012345678901234567890}`: "b: 1|a: 1.50|c: -0|d: 1E5|e: 123456789012345678901234567890",
		`{"a":1,"a":2}`:                 `a: 1|a: 2`,
		`{"a b":"C:\\x \"y\"\t\u0000"}`: `"a b": "C:\\x \"y\"\t⟦U+0000⟧"`,
		`{"x":{"k":[true,null,"\n"]}}`:  `x: {"k": [true, null, "\n"]}`,
		`{"s":"two\nlines"}`:            "s: two\nlines",
		`[1]`:                           `: [1]`,
		`{"x":["\tпривет","\r\nа вы"]}`: `x: ["\tпривет", "\r\nа вы"]`,
		`{"x":["\rp\u0430y"]}`:          `x: ["\rp⟦Cyrillic ` + "\u0430" + `⟧y"]`,
		`{`:                             `: {`,
	} {
		var got []string
		for _, a := range Arguments(json.RawMessage(in), nil) {
			got = append(got, a.key+": "+a.text)
		}
		require.Equal(t, want, strings.Join(got, "|"), in)
	}
}

func TestHiddenValues(t *testing.T) {
	in := `{"a":{"b/c":"secret","d":[{"k":"secret"},{"k":"open?"}]},"n":12345}`
	p := Arguments(json.RawMessage(in), []string{"/a/b~1c", "/a/d/*/k", "/n"})
	require.Equal(t, []string{`{"b/c": (hidden, 6 characters), "d": [{"k": (hidden, 6 characters)}, {"k": (hidden, 5 characters)}]}`}, []string{p[0].text})
	require.Equal(t, "(hidden, 5 bytes)", p[1].text)
	require.Equal(t, "(hidden, 8 bytes)", Arguments(json.RawMessage(`{"a":sec`), []string{"/a"})[0].text)
	require.Equal(t, "(hidden, 7 bytes)", Arguments(json.RawMessage(`{"a":1}`), []string{""})[0].text)
}

func TestMarkdownKeepsItsWords(t *testing.T) {
	in := "# Title\nSome **bold** and `code`, a *star*, a [link](https://evil.example) and <!channel>.\n- one\n```go\nx := `y`\n**z**\n```\nend ** not bold ** `open"
	paras := Markdown(in)
	raw, err := json.Marshal(paras)
	require.NoError(t, err)
	require.Len(t, paras, 4)
	for _, want := range []string{
		`{"type":"text","text":"Title","style":{"bold":true}}`,
		`{"type":"text","text":"bold","style":{"bold":true}}`,
		`{"type":"text","text":"code","style":{"code":true}}`,
		`a *star*, a [link](https://evil.example) and \u003c!channel\u003e.\n- one`,
		`"x := ` + "`y`" + `\n**z**"`,
		"end ** not bold ** `open",
	} {
		require.Contains(t, string(raw), want)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("a **b** `c`\n```\nd\n```\n")
	f.Add(strings.Repeat("```\n", 3000))
	f.Add(strings.Repeat("**", 5000) + "\n")
	f.Add("```" + strings.Repeat("x", 9000))
	f.Fuzz(func(t *testing.T, s string) {
		for _, part := range Split(Visible(s), AnswerRunes) {
			require.LessOrEqual(t, utf8.RuneCountInString(part), 3000)
			require.NotEmpty(t, Markdown(part))
		}
	})
}

// Slack wraps the lines of a box, so spaces push what follows them far down.
func TestSpacesPushNothingOutOfSight(t *testing.T) {
	many := strings.Repeat(" ", 500)
	for args, want := range map[string]string{
		`{"a":"ls` + many + `; rm -rf /"}`:                    `"ls⟦500 spaces⟧; rm -rf /"`,
		`{"command":"ls` + many + `; rm -rf /"}`:              `"ls⟦500 spaces⟧; rm -rf /"`,
		`{"command":"cd /\nls` + many + `; rm -rf /"}`:        "cd /\nls⟦500 spaces⟧; rm -rf /",
		`{"a":"x:\n` + strings.Repeat(" ", 64) + `indented"}`: "x:\n" + strings.Repeat(" ", 64) + "indented",
		`{"a":` + many + `!}`:                                 `{"a":⟦500 spaces⟧!}`,
	} {
		a := Arguments(json.RawMessage(args), nil)
		require.Len(t, a, 1)
		require.Equal(t, want, a[0].text)
	}
}

// A command reads as at the prompt of a terminal. Where only quotes show what is in
// it, it keeps them.
func TestACommandIsShownAsAtAPrompt(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"git log --format=\"%h\" | head"}`: `git log --format="%h" | head`,
		`{"command":" ls"}`:                            `command: " ls"`,
		`{"command":"ls\t-l"}`:                         `command: "ls\t-l"`,
		`{"command":""}`:                               `command: ""`,
		`{"command":["ls"]}`:                           `command: ["ls"]`,
		`{"command":"rm \u202etxt.exe"}`:               "rm ⟦U+202E⟧txt.exe",
		`{"other":"git log \"%h\""}`:                   `other: "git log \"%h\""`,

		`{"command":"ls` + strings.Repeat(" ", 17) + `; rm -rf /"}`: `command: "ls⟦17 spaces⟧; rm -rf /"`,
	} {
		boxes, incomplete := DrawArguments(Arguments(json.RawMessage(args), nil), Detail{Value: 1000, Keys: 10})
		require.False(t, incomplete)
		require.Len(t, boxes, 1)
		require.Equal(t, want, boxes[0].Text)
		require.Equal(t, !strings.HasPrefix(want, "command:") && !strings.HasPrefix(want, "other:"), boxes[0].Label != nil, args)
	}
}
