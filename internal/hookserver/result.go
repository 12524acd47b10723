package hookserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxResult is how much is read of a question after a call beyond [maxBody].
	maxResult = 64 << 20
	// maxBehind is how long what stands behind the result may be.
	maxBehind = 64 << 10
)

// withoutResult returns the question that begins with start and goes on with rest, with an
// empty result of the tool. It reports whether the result is what makes the question large,
// and the question is one after the call.
func withoutResult(start []byte, rest io.Reader) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(start))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		colon := d.InputOffset()
		var value json.RawMessage
		if err := d.Decode(&value); err == nil {
			continue
		} else if key != "tool_response" || !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, false
		}
		all := bufio.NewReader(io.MultiReader(bytes.NewReader(start[colon:]), rest))
		if !skipText(all) {
			return nil, false
		}
		behind, err := io.ReadAll(io.LimitReader(all, maxBehind+1))
		short := append(append(bytes.Clone(start[:colon]), `:""`...), behind...)
		h, unclear := readHook(short)
		return short, err == nil && len(behind) <= maxBehind && unclear == nil && h.event == eventPost
	}
}

// skipText reads over a colon and the text, object or list behind it, and reports whether
// it ended.
func skipText(in io.ByteReader) bool {
	for depth, text := 0, false; ; {
		c, err := in.ReadByte()
		switch {
		case err != nil:
			return false
		case text && c == '\\':
			if _, err := in.ReadByte(); err != nil {
				return false
			}
			continue
		case c == '"':
			text = !text
		case text:
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		default:
			continue
		}
		if depth == 0 && !text {
			return true
		}
	}
}
