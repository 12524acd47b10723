// Package single reads a line for a shell that should be one program and nothing else, as
// those are that settings name.
package single

import (
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Program is one program, as a shell starts it. A variable stands in it as $NAME.
type Program struct {
	Env   map[string]string // what is set for it, in front of it
	Words []string          // without their quotes
}

// Read reads a line for a shell of POSIX. It is not ok if the line is anything else than
// one program whose output and exit code are those of the line, or if a program makes one
// of its words. Errors may go to /dev/null: a file that cannot be opened would keep the
// shell from starting the program.
func Read(line string) (p Program, ok bool) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 {
		return Program{}, false
	}
	s := f.Stmts[0]
	for _, r := range s.Redirs {
		to, _ := unquoted(r.Word)
		if r.N == nil || r.N.Value != "2" || r.Op != syntax.RdrOut && r.Op != syntax.AppOut || to != "/dev/null" {
			return Program{}, false
		}
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Negated {
		return Program{}, false
	}
	p.Env = map[string]string{}
	for _, a := range call.Assigns {
		if p.Env[a.Name.Value], ok = unquoted(a.Value); !ok {
			return Program{}, false
		}
	}
	for _, w := range call.Args {
		text, ok := unquoted(w)
		if !ok {
			return Program{}, false
		}
		p.Words = append(p.Words, text)
	}
	return p, true
}

// unquoted returns a word without its quotes. It is not ok if the shell runs something for
// the word.
func unquoted(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", true
	}
	var b strings.Builder
	for parts := slices.Clone(w.Parts); len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part := part.(type) {
		case *syntax.Lit:
			text := part.Value
			if runtime.GOOS != "windows" { // where it separates folders
				text = strings.ReplaceAll(text, `\`, "")
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			parts = append(slices.Clone(part.Parts), parts...)
		case *syntax.ParamExp:
			if part.Param == nil || part.Exp != nil || part.Slice != nil || part.Repl != nil || part.Index != nil || part.Length {
				return "", false
			}
			b.WriteString("$" + part.Param.Value)
		default:
			return "", false
		}
	}
	return b.String(), true
}
