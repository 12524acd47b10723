package shellcmd

import (
	"fmt"
	"slices"
	"strings"
)

// A Form is what a command may be. What it does not list it does not permit: no
// other flag, no abbreviation of one, no short flags in one word, no further
// operand. The zero Form permits nothing.
type Form struct {
	Run      []string         // the program and the words after it, in this order and first
	Flags    []string         // flags without a value, each a whole word; -- ends the flags
	Values   map[string]Value // flags with a value: --since= within the word, -n in the next one
	Operands []Value          // by position; the last one is for all that follow
	Min, Max int              // how many operands
	Piped    bool             // it may read what another command writes
}

// mismatch says why the form does not permit a command, and how much of it fits:
// nothing, the program, the words after it, or more. The words hold no value of
// an argument, see [flagName].
func (f Form) mismatch(c Command) (why string, fits int) {
	if len(f.Run) == 0 || c.Argv[0] != f.Run[0] {
		return "no form is for " + programName(c.Argv[0]), 0
	}
	n := len(f.Run)
	if len(c.Argv) < n || !slices.Equal(c.Argv[:n], f.Run) {
		if n > 1 && len(c.Argv) > 1 && strings.HasPrefix(c.Argv[1], "-") && !strings.HasPrefix(f.Run[1], "-") {
			return f.unlisted(c.Argv[1], f.Run[0]), 1
		}
		return "no form is for this use of " + f.Run[0], 1
	}
	if c.Join == Pipe && !f.Piped {
		return strings.Join(f.Run, " ") + " may not read what another command writes", 2
	}
	operands, why := f.flags(c.Argv[n:])
	if why != "" {
		return why, 3
	}
	return f.operands(operands), 4
}

// flags checks the words after the program, and returns those that are operands.
func (f Form) flags(words []string) (operands []string, why string) {
	name := strings.Join(f.Run, " ")
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w, "-") {
			operands = append(operands, w)
			continue
		}
		if slices.Contains(f.Flags, w) {
			if w == "--" {
				return append(operands, words[i+1:]...), ""
			}
			continue
		}
		key, joined := w, ""
		if at := strings.Index(w, "="); at >= 0 {
			key, joined = w[:at+1], w[at+1:]
		}
		value, listed := f.Values[key]
		switch {
		case listed && strings.HasSuffix(key, "="):
			if !value.permits(joined) {
				return nil, fmt.Sprintf("this value of the flag %s of %s is not listed", key, name)
			}
		case listed && i+1 == len(words):
			return nil, fmt.Sprintf("the flag %s of %s has no value", key, name)
		case listed:
			if i++; !value.permitsWord(words[i]) {
				return nil, fmt.Sprintf("this value of the flag %s of %s is not listed", key, name)
			}
		case f.takesDash(len(operands), w):
			operands = append(operands, w)
		default:
			return nil, f.unlisted(w, name)
		}
	}
	return operands, ""
}

// takesDash reports whether the next operand may be this word though it begins
// with a dash, such as - itself: only if it is written so.
func (f Form) takesDash(i int, w string) bool {
	return i < f.Max && slices.Contains(f.shape(i).Is, w)
}

func (f Form) shape(i int) Value {
	if len(f.Operands) == 0 {
		return Value{}
	}
	return f.Operands[min(i, len(f.Operands)-1)]
}

func (f Form) operands(words []string) string {
	name := strings.Join(f.Run, " ")
	switch {
	case len(words) < f.Min:
		return fmt.Sprintf("%s needs %d operands, and this has %d", name, f.Min, len(words))
	case len(words) > f.Max:
		return fmt.Sprintf("%s may have %d operands, and this has %d", name, f.Max, len(words))
	}
	for i, w := range words {
		if !f.shape(i).permitsWord(w) {
			return fmt.Sprintf("operand %d of %s is not listed", i+1, name)
		}
	}
	return ""
}

func (f Form) unlisted(w, name string) string {
	return fmt.Sprintf("the flag %s of %s is not listed", flagName(w), name)
}

// flagName is a flag without what may be its value: all after =, and all but the
// first letter of short flags.
func flagName(w string) string {
	name, _, _ := strings.Cut(w, "=")
	if !strings.HasPrefix(name, "--") && len(name) > 2 {
		name = name[:2]
	}
	return programName(name)
}

const maxName = 40

// programName is a name that may be shown as it is, or else something in its
// place.
func programName(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
	if odd || len(s) > maxName {
		return "such a name"
	}
	return s
}
