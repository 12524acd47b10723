package shellcmd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The most commands, and the most words of all of them, in a program.
const (
	maxCommands = 64
	maxWords    = 1024
)

// A Join is how a command follows the one before it.
type Join string

// The ways in which commands are joined. The first one of a program is none of
// them.
const (
	First Join = ""
	Then  Join = ";" // or a line break
	And   Join = "&&"
	Or    Join = "||"
	Pipe  Join = "|"
)

// A Command is a simple command: the program and its arguments, exactly.
type Command struct {
	Argv []string
	Join Join
}

// Read returns the commands of a program in their order. The error is a
// [NotPlainError] if the program is not wholly literal simple commands; then nothing
// is known of what it runs.
func Read(program string) ([]Command, error) {
	if err := scan(program); err != nil {
		return nil, err
	}
	var all []Command
	for i, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangZsh} {
		commands, err := readAs(program, lang)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.EqualFunc(all, commands, func(a, b Command) bool { return a.Join == b.Join && slices.Equal(a.Argv, b.Argv) }) {
			return nil, notPlain("means different things to different shells")
		}
		all = commands
	}
	return all, nil
}

func readAs(program string, lang syntax.LangVariant) ([]Command, error) {
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(program), "")
	if err != nil {
		return nil, notPlain("is not a program of a POSIX shell, bash and zsh") // the error would quote it
	}
	r := &reader{}
	for i, s := range file.Stmts {
		join := Then
		if i == 0 {
			join = First
		}
		if err := r.statement(s, join); err != nil {
			return nil, err
		}
	}
	if len(r.commands) == 0 {
		return nil, notPlain("is empty")
	}
	return r.commands, nil
}

type reader struct {
	commands []Command
	words    int
}

// statement adds the commands of a statement. What it does not know it refuses.
func (r *reader) statement(s *syntax.Stmt, join Join) error {
	switch {
	case s.Background, s.Coprocess, s.Disown:
		return notPlain("runs something in the background")
	case s.Negated:
		return notPlain("negates an exit status")
	case len(s.Redirs) > 0:
		return notPlain("has a redirect")
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		op, known := map[syntax.BinCmdOperator]Join{syntax.AndStmt: And, syntax.OrStmt: Or, syntax.Pipe: Pipe}[c.Op]
		if !known {
			return notPlain("joins commands by something else than &&, ||, | and ;")
		}
		if err := r.statement(c.X, join); err != nil {
			return err
		}
		return r.statement(c.Y, op)
	case *syntax.CallExpr:
		return r.call(c, join)
	}
	return notPlain("has more than simple commands, such as a loop, a test in brackets, a function or a declaration")
}

func (r *reader) call(c *syntax.CallExpr, join Join) error {
	if len(c.Assigns) > 0 {
		return notPlain("sets a variable")
	}
	r.words += len(c.Args)
	if len(r.commands) == maxCommands || r.words > maxWords {
		return notPlain("has more than %d commands or %d words", maxCommands, maxWords)
	}
	argv := make([]string, len(c.Args))
	for i, w := range c.Args {
		var err error
		if argv[i], err = text(w); err != nil {
			return err
		}
	}
	switch {
	case len(argv) == 0:
		return notPlain("has a command without a program") // unreachable: it would be an assignment
	case c.Args[0].Lit() == "":
		return notPlain("has the name of a program in quotes")
	case reserved[argv[0]]:
		return notPlain("has a word that a shell reserves where a program is expected")
	}
	r.commands = append(r.commands, Command{argv, join})
	return nil
}

// text is what a word stands for, which must be what is written.
func text(w *syntax.Word) (string, error) {
	var b strings.Builder
	quoted := false // the part before is in single quotes
	for _, p := range w.Parts {
		single, isSingle := p.(*syntax.SglQuoted)
		switch p := p.(type) {
		case *syntax.Lit:
			if b.Len() == 0 && strings.HasPrefix(p.Value, "=") {
				return "", notPlain("has a word that begins with =, which zsh expands")
			}
			if err := literal(p.Value, ""); err != nil {
				return "", err
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if single.Dollar || quoted { // zsh may read '' within single quotes as a quote
				return "", notPlain("has quotes that shells read differently")
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", notPlain("has quotes that shells read differently")
			}
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", notPlain("has an expansion in double quotes")
				}
				if err := literal(lit.Value, `"`); err != nil {
					return "", err
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", notPlain("has an expansion")
		}
		quoted = isSingle
	}
	return b.String(), nil
}

// literal reports whether the parser took for a literal what the scan did.
func literal(s, quote string) error {
	for _, r := range s {
		if special[r] != "" && (quote == "" || strings.ContainsRune("$`\\!", r)) || quote == "" && strings.ContainsRune("'\"&|; \n", r) {
			return notPlain("has a character that shells read differently")
		}
	}
	return nil
}

// reserved are the words that some shell does not take for a program.
var reserved = setOf("! { } [[ ]] case coproc do done elif else end esac fi for foreach function if in repeat select then time until while")

func setOf(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}
