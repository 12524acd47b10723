package state

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

// What is stored is a text, mostly JSON, or the packed form of one: a byte that no
// JSON begins with, and what follows from it.
const (
	packedText  = 1 // a block of s2, with dictionary, of the text with its hex digits in binary
	literalText = 2 // the text, which begins with one of these bytes itself
)

const (
	// packedFrom is the length of a text from which packing is worth its time.
	packedFrom = 128
	// packedUpTo bounds what is packed, and what a block may say that it holds.
	packedUpTo = 16 << 20
)

// errPacked says that what is stored is no packed text.
var errPacked = errors.New("not a packed text of ours")

// A document is mostly the names of its fields, so the dictionary has what stored
// documents have in common. Whatever was packed with it needs it for ever: it never
// changes, and a better one gets a byte of its own.
//
//go:embed packed.v1.txt
var packedWith []byte

var dictionary = s2.MakeDict(packedWith, nil)

// A packer has the memory in which texts are packed and unpacked. What its methods
// return is valid until the next use.
type packer struct {
	json  bytes.Buffer
	short []byte
	out   []byte
}

var packers = sync.Pool{New: func() any { return new(packer) }}

// mostKept bounds the memory of a packer that is used again. Most documents are smaller.
const mostKept = 64 << 10

func (p *packer) done() {
	if max(p.json.Cap(), cap(p.short), cap(p.out)) <= mostKept {
		p.json.Reset()
		packers.Put(p)
	}
}

// pack returns the form in which a text is stored, which is smaller if that is
// possible.
func pack(text []byte) []byte {
	p := packers.Get().(*packer)
	defer p.done()
	if short, ok := p.packed(text); ok {
		return bytes.Clone(short)
	}
	if len(text) > 0 && (text[0] == packedText || text[0] == literalText) {
		return append([]byte{literalText}, text...)
	}
	return text
}

func (p *packer) packed(text []byte) (_ []byte, ok bool) {
	if len(text) < packedFrom || len(text) > packedUpTo {
		return nil, false
	}
	if p.short, ok = shorten(p.short[:0], text); !ok {
		return nil, false
	}
	most := 1 + s2.MaxEncodedLen(len(p.short))
	p.out = slices.Grow(p.out[:0], most)[:most]
	p.out[0] = packedText
	packed := p.out[:1+len(dictionary.Encode(p.out[1:], p.short))]
	return packed, len(packed) < len(text)
}

// textLength is about the length of the text of what is stored, without unpacking it: of a
// packed one before its hex digits were made longer.
func textLength(stored []byte) int {
	if len(stored) > 0 && stored[0] == packedText {
		if n, err := s2.DecodedLen(stored[1:]); err == nil {
			return n
		}
	}
	return len(stored)
}

// unpack returns the text of what is stored. A text that was never packed is
// returned as it is.
func unpack(stored []byte) ([]byte, error) { return new(packer).unpack(stored) }

func (p *packer) unpack(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return stored, nil
	}
	switch stored[0] {
	case packedText:
		n, err := s2.DecodedLen(stored[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPacked, err)
		}
		if n > packedUpTo {
			return nil, fmt.Errorf("%w: it would have %d bytes", errPacked, n)
		}
		p.short = slices.Grow(p.short[:0], n)
		short, err := dictionary.Decode(p.short, stored[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPacked, err)
		}
		p.out, err = lengthen(slices.Grow(p.out[:0], 2*n), short)
		return p.out, err
	case literalText:
		return stored[1:], nil
	default:
		return stored, nil
	}
}

// Ids and digests are random, so a dictionary does not make them smaller. These
// bytes, which are in no text of UTF-8, stand for their lower-case hex digits.
const (
	shortUUID   = 0xff // and its bytes follow
	shortDigest = 0xfe

	uuidBytes, uuidDigits     = 16, 36 // with hyphens
	digestBytes, digestDigits = 32, 64
)

// shorten appends the short form of a text without the bytes that it puts in.
func shorten(short, text []byte) (_ []byte, ok bool) {
	if bytes.IndexByte(text, shortUUID) >= 0 || bytes.IndexByte(text, shortDigest) >= 0 {
		return short, false
	}
	short = slices.Grow(short, len(text))
	from := 0 // what comes before is in short
	for at := 0; at < len(text); {
		// No digits are looked at twice: if 8 do not begin here, they do not begin before
		// the last that is none.
		if next := noDigitIn(text[at:]); next >= 0 {
			at += next + 1
			continue
		}
		digits := hexDigits(text[at:])
		switch {
		case digits >= digestDigits:
			short = append(append(short, text[from:at]...), shortDigest)
			short, _ = hex.AppendDecode(short, text[at:at+digestDigits])
			at += digestDigits
			from = at
		case digits == 8 && isUUID(text[at:]):
			short = append(append(short, text[from:at]...), shortUUID)
			for _, part := range uuidParts {
				short, _ = hex.AppendDecode(short, text[at+part.from:at+part.to])
			}
			at += uuidDigits
			from = at
		default:
			at += digits + 1
		}
	}
	return append(short, text[from:]...), true
}

// lengthen appends the text of its short form.
func lengthen(text, short []byte) ([]byte, error) {
	for {
		at := 0
		for at < len(short) && short[at] < shortDigest {
			at++
		}
		text = append(text, short[:at]...)
		if at == len(short) {
			return text, nil
		}
		n := uuidBytes
		if short[at] == shortDigest {
			n = digestBytes
		}
		short = short[at+1:]
		if len(short) < n {
			return nil, fmt.Errorf("%w: it is cut off", errPacked)
		}
		if n == digestBytes {
			text = hex.AppendEncode(text, short[:n])
		} else {
			text = appendUUID(text, short[:n])
		}
		short = short[n:]
	}
}

// uuidParts are where the digits of a UUID are.
var uuidParts = [...]struct{ from, to int }{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}}

func appendUUID(text, id []byte) []byte {
	for i, part := range uuidParts {
		if i > 0 {
			text = append(text, '-')
		}
		n := (part.to - part.from) / 2
		text = hex.AppendEncode(text, id[:n])
		id = id[n:]
	}
	return text
}

// isUUID reports whether the text begins with the 36 characters of a UUID.
func isUUID(text []byte) bool {
	if len(text) < uuidDigits {
		return false
	}
	for i, part := range uuidParts {
		if hexDigits(text[part.from:part.to]) < part.to-part.from || (i > 0 && text[part.from-1] != '-') {
			return false
		}
	}
	return true
}

// hexDigits is with how many hex digits the text begins, up to a digest's.
func hexDigits(text []byte) int {
	for i, b := range text[:min(len(text), digestDigits)] {
		if !isHexDigit[b] {
			return i
		}
	}
	return min(len(text), digestDigits)
}

// noDigitIn returns the place of the last of the first 8 bytes that is no hex digit, or
// -1.
func noDigitIn(text []byte) int {
	for i := min(len(text), 8) - 1; i >= 0; i-- {
		if !isHexDigit[text[i]] {
			return i
		}
	}
	return -1
}

var isHexDigit = func() (is [256]bool) {
	for _, b := range []byte("0123456789abcdef") {
		is[b] = true
	}
	return is
}()
