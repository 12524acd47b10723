package approvals

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvisible(t *testing.T) {
	for name, r := range map[string]rune{
		"NUL": 0, "escape": 0x1B, "delete": 0x7F, "no-break space": 0xA0, "soft hyphen": 0xAD,
		"Hangul filler": 0x3164, "Mongolian vowel separator": 0x180E, "zero width space": 0x200B,
		"right-to-left override": 0x202E, "line separator": 0x2028, "paragraph separator": 0x2029,
		"word joiner": 0x2060, "ideographic space": 0x3000, "braille blank": 0x2800,
		"variation selector 1": 0xFE00, "byte order mark": 0xFEFF, "tag letter a": 0xE0061,
		"emoji style": 0xFE0F, "variation selector 17": 0xE0100, "private": 0xE000,
	} {
		require.True(t, Invisible(r), name)
	}
	for name, r := range map[string]rune{
		"space": ' ', "line feed": '\n', "tab": '\t', "letter": 'a', "umlaut": 'ü', "combining acute": 0x301,
		"emoji": 0x1F600, "Cyrillic a": 0x430, "CJK": 0x4E00, "replacement": 0xFFFD,
	} {
		require.False(t, Invisible(r), name)
	}
}

func TestVisible(t *testing.T) {
	for s, want := range map[string]string{
		"":                              "",
		"größer\n\tals 日本 😀":            "größer\n\tals 日本 😀",
		"a\u200bb\u2028c\x00\r\n":       `a\u200bb\u2028c\u0000\u000d` + "\n",
		"tag \U000e0061, \xff\xe2x":     `tag \U000e0061, \xff\xe2x`,
		"\uFFFD itself":                 "\uFFFD itself",
		"❤\ufe0f 1\ufe0f\u20e3 ⭐\ufe0f": "❤\ufe0f 1\ufe0f\u20e3 ⭐\ufe0f",
		"a\ufe0f 1\ufe0f ❤\ufe0f\ufe0f": `a\ufe0f 1\ufe0f ❤` + "\ufe0f" + `\ufe0f`,
		"\ufe0f≤\ufe0f":                 `\ufe0f≤\ufe0f`,
	} {
		require.Equal(t, want, Visible(s))
	}
}

func TestVisibleLine(t *testing.T) {
	require.Equal(t, `a\nb\tc\u202e\\n`, VisibleLine("a\nb\tc\u202e"+`\\n`))
	require.Equal(t, "größer als 日本 😀", VisibleLine("größer als 日本 😀"))
}
