package shellcmd

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/approvals"
)

// MaxLength is the size in bytes of the longest program that is read.
const MaxLength = 16 << 10

// A NotPlainError says why a program is not read. Its words quote at most one
// character of the program.
type NotPlainError struct{ Why string }

// Error implements error.
func (e *NotPlainError) Error() string { return "the command " + e.Why }

func notPlain(format string, args ...any) error { return &NotPlainError{fmt.Sprintf(format, args...)} }

// special says what a character does outside of quotes.
var special = map[rune]string{
	'$': "a $ outside of single quotes, which is an expansion", '`': "a backquote, which is a substitution",
	'\\': "a backslash outside of single quotes", '<': "a redirect (<)", '>': "a redirect (>)",
	'(': "a parenthesis outside of quotes", ')': "a parenthesis outside of quotes",
	'{': "a brace outside of quotes", '}': "a brace outside of quotes",
	'*': "a glob (*) outside of quotes", '?': "a glob (?) outside of quotes",
	'[': "a bracket outside of quotes", ']': "a bracket outside of quotes",
	'~': "a tilde outside of quotes", '^': "a ^ outside of quotes", '#': "a # outside of quotes",
	'!': "a ! outside of single quotes",
}

// scan refuses a program by its characters: those that are special to some
// shell where they stand, and those that a person would not see. What passes has
// no nesting. Outside of quotes only printable ASCII is left.
func scan(program string) error {
	switch {
	case len(program) > MaxLength:
		return notPlain("has %d bytes, and at most %d are read", len(program), MaxLength)
	case !utf8.ValidString(program):
		return notPlain("is not UTF-8")
	}
	if strings.ContainsRune(program, utf8.RuneError) {
		return notPlain("has a replacement character (U+FFFD), so it was not UTF-8")
	}
	for _, r := range approvals.Unseen(program) {
		if r != '\n' {
			return notPlain("has a character that does not show (%U)", r)
		}
	}
	quote := rune(0)
	for _, r := range program {
		switch {
		case r != '\n' && (r < ' ' || r == 0x7f):
			return notPlain("has a control character (%U)", r)
		case quote != 0 && r == quote:
			quote = 0
		case quote == '"' && strings.ContainsRune("$`\\!", r):
			return notPlain("has %s", special[r])
		case quote != 0:
		case r == '\'' || r == '"':
			quote = r
		case special[r] != "":
			return notPlain("has %s", special[r])
		case r > '~':
			return notPlain("has a character outside of quotes that is not ASCII (%U)", r)
		}
	}
	if quote != 0 {
		return notPlain("has a quote that does not end")
	}
	return nil
}
