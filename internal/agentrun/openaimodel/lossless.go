package openaimodel

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// lossless says why a JSON document cannot be decoded as it stands, if so:
// encoding/json replaces bytes that are not UTF-8, and halves of surrogate
// pairs, by U+FFFD, and says nothing. Then it is not known what the model
// wrote. raw must be valid JSON otherwise.
func lossless(raw []byte) error {
	if !utf8.Valid(raw) {
		return malformed("it is not valid UTF-8")
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // past the character after the backslash, which may be one too
		r, ok := unit(raw, i)
		if !ok || !utf16.IsSurrogate(r) {
			continue
		}
		low, _ := unit(raw, i+6)
		if utf16.DecodeRune(r, low) == utf8.RuneError {
			return malformed("it has half a surrogate pair, which stands for no character")
		}
		i += 10 // to the last digit of the other half
	}
	return nil
}

// unit returns the UTF-16 code unit of the escape sequence whose u is at i.
func unit(raw []byte, i int) (rune, bool) {
	if i < 1 || i+5 > len(raw) || raw[i-1] != '\\' || raw[i] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
	return rune(n), err == nil
}
