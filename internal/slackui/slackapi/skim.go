package slackapi

import (
	"bytes"
	"slices"
)

// Skim returns what Slack sends, the payload of an interaction or the answer of a
// method, without the blocks and attachments of its message and of its view. They are
// most of it, nothing reads them, and the decoder would scan each of their bytes twice.
// What Skim does not understand is returned unchanged, for the decoder to judge. The rest
// is appended to scratch, which holds nothing and may be nil.
func Skim(scratch, payload []byte) []byte {
	s := skimmer{raw: payload, kept: scratch}
	s.space()
	if !s.object(false) {
		return payload
	}
	return append(s.kept, s.raw[s.at:]...)
}

// A skimmer copies the parts of a JSON document that are kept. It only finds where
// values end; the decoder of the result decides whether they are valid.
type skimmer struct {
	raw  []byte
	at   int
	kept []byte
}

// object copies an object: the outermost one, or, if inner, the message or the view.
func (s *skimmer) object(inner bool) bool {
	if !s.take('{') {
		return false
	}
	for first := true; ; first = false {
		s.space()
		if first && s.peek() == '}' {
			return s.take('}')
		}
		begin, kept := s.at, len(s.kept)
		if !s.text() {
			return false
		}
		name := string(s.raw[begin+1 : s.at-1])
		s.space()
		if s.peek() != ':' {
			return false
		}
		s.at++
		s.space()
		s.kept = append(s.kept, s.raw[begin:s.at]...)
		switch value := s.at; {
		case !inner && (name == "message" || name == "view") && s.peek() == '{':
			if !s.object(true) {
				return false
			}
		case !s.value():
			return false
		case inner && slices.Contains([]string{"blocks", "attachments"}, name):
			s.kept = append(s.kept[:kept], `"":0`...) // a name that nothing reads
		default:
			s.kept = append(s.kept, s.raw[value:s.at]...)
		}
		s.space()
		if s.peek() == '}' {
			return s.take('}')
		}
		if !s.take(',') {
			return false
		}
	}
}

// value skips a value.
func (s *skimmer) value() bool {
	begin := s.at
	for depth := 0; s.at < len(s.raw); {
		switch c := s.raw[s.at]; c {
		case '"':
			if !s.text() {
				return false
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']', ',':
			if depth == 0 {
				return s.at > begin
			}
			if c != ',' {
				depth--
			}
			s.at++
		default:
			s.at++
		}
	}
	return false
}

// text skips a string.
func (s *skimmer) text() bool {
	if s.peek() != '"' {
		return false
	}
	begin := s.at + 1
	for from := begin; ; {
		next := bytes.IndexByte(s.raw[from:], '"')
		if next < 0 {
			return false
		}
		end := from + next
		from = end + 1
		escapes := 0
		for end-escapes > begin && s.raw[end-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 { // each of them escapes the next one
			s.at = from
			return true
		}
	}
}

func (s *skimmer) space() {
	for s.at < len(s.raw) && (s.raw[s.at] == ' ' || s.raw[s.at] == '\t' || s.raw[s.at] == '\n' || s.raw[s.at] == '\r') {
		s.at++
	}
}

func (s *skimmer) peek() byte {
	if s.at < len(s.raw) {
		return s.raw[s.at]
	}
	return 0
}

// take copies the byte c, which must come next.
func (s *skimmer) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	s.kept = append(s.kept, c)
	return true
}
