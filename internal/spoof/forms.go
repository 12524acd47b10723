package spoof

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A form is a set of characters that people read as plain letters, digits or
// signs, and that no program takes for those.
type form struct {
	name string // as it is said of a character
	has  *unicode.RangeTable
}

// forms are those of https://www.unicode.org/charts/PDF/U1D400.pdf and its like:
// each looks like what ASCII has. Emoji are none of them, nor are numbers in
// circles, which stand before the items of lists.
var forms = []form{
	{fullwidth, table(charRange{0xFF01, 0xFF5E})},
	{"mathematical", table(
		charRange{0x2102, 0x2102}, charRange{0x210A, 0x210E}, charRange{0x2110, 0x2113}, charRange{0x2115, 0x2115}, charRange{0x2119, 0x211D},
		charRange{0x2124, 0x2124}, charRange{0x2128, 0x2128}, charRange{0x212C, 0x212D}, charRange{0x212F, 0x2131}, charRange{0x2133, 0x2134},
		charRange{0x2145, 0x2149}, charRange{0x1D400, 0x1D7FF},
	)},
	{"enclosed", table(
		charRange{0x249C, 0x24C1}, charRange{0x24C3, 0x24E9}, charRange{0x1F110, 0x1F12C}, charRange{0x1F130, 0x1F14F},
		charRange{0x1F150, 0x1F16C}, charRange{0x1F172, 0x1F17D}, charRange{0x1F180, 0x1F18D},
	)},
	// Those of phonetic alphabets that no language writes with, of
	// https://www.unicode.org/Public/security/latest/confusables.txt.
	{"phonetic", table(
		charRange{0x0251, 0x0251}, charRange{0x0261, 0x0261}, charRange{0x026A, 0x026A}, charRange{0x1D04, 0x1D04}, charRange{0x1D0F, 0x1D0F},
		charRange{0x1D1C, 0x1D1C}, charRange{0x1D20, 0x1D22}, charRange{0xA731, 0xA731},
	)},
	// A client may take these for letters of a host: it sends https://github.com∕x.evil.example to evil.example.
	{"lookalike slash", table(
		charRange{0x2044, 0x2044}, charRange{0x2215, 0x2215}, charRange{0x2571, 0x2571}, charRange{0x27CB, 0x27CB}, charRange{0x29F8, 0x29F8},
	)},
	{"Kelvin sign", table(charRange{0x212A, 0x212A})},
	{"Roman numeral", table(
		charRange{0x2160, 0x2160}, charRange{0x2164, 0x2164}, charRange{0x2169, 0x2169}, charRange{0x216C, 0x2170},
		charRange{0x2174, 0x2174}, charRange{0x2179, 0x2179}, charRange{0x217C, 0x217F},
	)},
}

const fullwidth = "fullwidth"

// A charRange is a range of characters.
type charRange struct{ from, to uint32 }

func table(spans ...charRange) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for _, s := range spans {
		t.R32 = append(t.R32, unicode.Range32{Lo: s.from, Hi: s.to, Stride: 1})
	}
	return t
}

// oddForms returns the characters of s, each by itself, that are another form of
// a plain one.
//
// Fullwidth forms are ordinary in Chinese, Japanese and Korean. So they are not
// returned from a run of non-blanks that holds a letter of those, as far as they
// are punctuation of prose, or letters and digits that touch no plain ones. See also
// [oddHyphens] and [oddDigits].
func oddForms(s string) []Span {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x0251 }) {
		return nil
	}
	out := append(oddHyphens(s), oddDigits(s)...)
	for at := 0; at < len(s); {
		if size := blanks(s[at:]); size > 0 {
			at += size
			continue
		}
		run := s[at:]
		if end := strings.IndexFunc(run, unicode.IsSpace); end >= 0 {
			run = run[:end]
		}
		out = append(out, oddFormsOf(run, at)...)
		at += len(run)
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return out
}

// oddDigits returns the digits of other scripts that stand in one number with plain
// ones. Some programs read such a number as a whole, and some only up to there.
func oddDigits(s string) []Span {
	var out []Span
	number, plain := 0, false // what of out is in this number, and whether that has a plain digit
	end := func() {
		if !plain {
			out = out[:len(out)-number]
		}
		number, plain = 0, false
	}
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			plain = true
		case unicode.Is(unicode.Nd, r) && formOf(r) == "":
			out = append(out, Span{From: i, To: i + utf8.RuneLen(r), Kind: Form, Name: "digit of another script"})
			number++
		default:
			end()
		}
	}
	end()
	return out
}

// blanks returns the length of the blanks that s begins with.
func blanks(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// oddFormsOf is oddForms of one run of non-blanks, which begins at this byte.
func oddFormsOf(run string, at int) []Span {
	wide := strings.ContainsFunc(run, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
	})
	var out []Span
	before, ordinaryTo := rune(0), 0
	for i, r := range run {
		if wide && i >= ordinaryTo {
			ordinaryTo = i + ordinary(before, run[i:])
		}
		before = r
		name := formOf(r)
		if name == "" || i < ordinaryTo {
			continue
		}
		out = append(out, Span{From: at + i, To: at + i + utf8.RuneLen(r), Kind: Form, Name: name})
	}
	return out
}

func formOf(r rune) string {
	for _, f := range forms {
		if unicode.Is(f.has, r) {
			return f.name
		}
	}
	return ""
}

// ordinary returns how many bytes at the start of rest are fullwidth forms that
// people write in Chinese, Japanese and Korean, behind the character before.
func ordinary(before rune, rest string) int {
	const prose = "！（），：；？～"
	r, size := utf8.DecodeRuneInString(rest)
	if strings.ContainsRune(prose, r) {
		return size
	}
	if plainAlphanumeric(before) || wideAlphanumeric(before) {
		return 0
	}
	behind := strings.TrimLeftFunc(rest, wideAlphanumeric)
	if after, _ := utf8.DecodeRuneInString(behind); plainAlphanumeric(after) {
		return 0
	}
	return len(rest) - len(behind)
}

func wideAlphanumeric(r rune) bool {
	return r >= 0xFF01 && r <= 0xFF5E && plainAlphanumeric(r-0xFF01+'!')
}

func plainAlphanumeric(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
