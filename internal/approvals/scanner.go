package approvals

import (
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// checkObject is nil if raw is exactly one unambiguous JSON object.
func checkObject(raw []byte, depth int) error {
	s := scanner{raw: raw, depth: depth}
	s.space()
	if s.peek() != '{' {
		return s.fault("a JSON object must begin here")
	}
	return s.document()
}

// checkValue is nil if raw is exactly one unambiguous JSON value.
func checkValue(raw []byte, depth int) error {
	s := scanner{raw: raw, depth: depth}
	s.space()
	return s.document()
}

// A scanner reads JSON without building anything from it. The standard decoder
// will not do: it takes the last of two equal keys, replaces half a surrogate
// pair and invalid UTF-8 by U+FFFD, and nests 10,000 deep.
type scanner struct {
	raw   []byte
	pos   int
	depth int // how much deeper it may nest
}

func (s *scanner) fault(format string, args ...any) error {
	return fmt.Errorf("%w JSON at byte %d: %s", ErrInvalid, s.pos, fmt.Sprintf(format, args...))
}

// peek returns the next byte, and 0, which no token begins with, at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) document() error {
	if err := s.value(); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.raw) {
		return s.fault("nothing may follow the value")
	}
	return nil
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		return s.nested(s.object)
	case c == '[':
		return s.nested(s.array)
	case c == '"':
		_, err := s.text(false)
		return err
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == '-' || digit(c):
		return s.number()
	case s.pos >= len(s.raw):
		return s.fault("the text ends where a value is expected")
	}
	return s.fault("a value is expected")
}

func (s *scanner) nested(inner func() error) error {
	if s.depth == 0 {
		return s.fault("nested too deep")
	}
	s.depth--
	s.pos++
	s.space()
	err := inner()
	s.depth++
	return err
}

func (s *scanner) object() error {
	if s.take('}') {
		return nil
	}
	var keys keySet
	for {
		at := s.pos
		if s.peek() != '"' {
			return s.fault("a key in quotes is expected")
		}
		key, err := s.text(true)
		if err != nil {
			return err
		}
		if !keys.add(key) {
			s.pos = at
			return s.fault("the key %.100q occurs twice in one object", key)
		}
		s.space()
		if !s.take(':') {
			return s.fault("a colon is expected after the key")
		}
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.fault("a comma or the end of the object is expected")
		}
		s.space()
	}
}

func (s *scanner) array() error {
	if s.take(']') {
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.fault("a comma or the end of the array is expected")
		}
		s.space()
	}
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) word(w string) error {
	if len(s.raw)-s.pos < len(w) || string(s.raw[s.pos:s.pos+len(w)]) != w {
		return s.fault("a value is expected")
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.fault("a digit is expected")
	}
	if s.take('.') && !s.digits() {
		return s.fault("a digit is expected after the point")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.fault("a digit is expected in the exponent")
		}
	}
	return nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) digits() bool {
	start := s.pos
	for digit(s.peek()) {
		s.pos++
	}
	return s.pos > start
}

// text reads a string, and returns what it stands for if that is wanted.
func (s *scanner) text(wanted bool) (string, error) {
	s.pos++
	start, plain := s.pos, true
	var out []byte // what the string stands for, once it is not plain
	for s.pos < len(s.raw) {
		switch c := s.raw[s.pos]; {
		case c == '"':
			end := s.pos
			s.pos++
			if !wanted {
				return "", nil
			}
			if plain {
				return string(s.raw[start:end]), nil
			}
			return string(out), nil
		case c < ' ':
			return "", s.fault("a control character in a string must be escaped")
		case c == '\\':
			if plain && wanted {
				out = append(out, s.raw[start:s.pos]...)
			}
			plain = false
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			if wanted {
				out = utf8.AppendRune(out, r)
			}
		default:
			size := 1
			if c >= utf8.RuneSelf {
				var r rune
				if r, size = utf8.DecodeRune(s.raw[s.pos:]); r == utf8.RuneError && size == 1 {
					return "", s.fault("the text is not valid UTF-8")
				}
			}
			if wanted && !plain {
				out = append(out, s.raw[s.pos:s.pos+size]...)
			}
			s.pos += size
		}
	}
	return "", s.fault("a string has no end")
}

// escape reads an escape sequence, both halves of a surrogate pair at once.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.raw) {
		return 0, s.fault("a string has no end")
	}
	c := s.raw[s.pos+1]
	switch c {
	case '"', '\\', '/':
		s.pos += 2
		return rune(c), nil
	case 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c], nil
	case 'u':
		r, ok := s.hex(s.pos)
		if !ok {
			return 0, s.fault(`four hex digits are expected after \u`)
		}
		if !utf16.IsSurrogate(r) {
			s.pos += 6
			return r, nil
		}
		low, _ := s.hex(s.pos + 6)
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, s.fault("half a surrogate pair stands for no character")
		}
		s.pos += 12
		return r, nil
	}
	return 0, s.fault("no such escape sequence")
}

// hex reads \uXXXX at pos.
func (s *scanner) hex(pos int) (rune, bool) {
	if pos+6 > len(s.raw) || s.raw[pos] != '\\' || s.raw[pos+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s.raw[pos+2 : pos+6] {
		switch {
		case digit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// A keySet holds the keys of one object; few objects have many.
type keySet struct {
	few  []string
	many map[string]bool
}

// add reports whether key is new.
func (k *keySet) add(key string) bool {
	if k.many == nil {
		if slices.Contains(k.few, key) {
			return false
		}
		if len(k.few) < 8 {
			k.few = append(k.few, key)
			return true
		}
		k.many = make(map[string]bool, 32)
		for _, old := range k.few {
			k.many[old] = true
		}
	}
	if k.many[key] {
		return false
	}
	k.many[key] = true
	return true
}
