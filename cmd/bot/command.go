package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/config"
)

// A command is something that the program can be asked to do, with everything
// that its help says. A group has commands of its own instead of run.
type command struct {
	name    string
	short   string // what it is for, in one sentence
	about   string // the same at length, in lines of at most 80 characters
	args    []argument
	needs   []string // the flags that must be given
	example string
	sub     []*command
	run     func(ctx context.Context, in *call) error
}

// An argument is what follows the flags of a command.
type argument struct {
	name     string
	what     string
	optional bool
	check    func(value string) error // what is wrong with a value; nil if the command itself finds out
}

// A call is one use of the program. A command declares its flags on it and
// calls parse before it does anything.
type call struct {
	*command
	path           string // of the command, such as "bot policy check"
	words          []string
	flags          *flag.FlagSet
	extra          config.ToolsFor // the tools that the program adds to those of the configuration
	environ        []string
	stdout, stderr io.Writer
}

// A usageError is a call that the program does not understand.
type usageError struct {
	path string
	err  error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%s: %v\nRun `%s --help` for usage.", e.path, e.err, e.path)
}

func (e usageError) Unwrap() error { return e.err }

func (in *call) wrong(format string, args ...any) error {
	return usageError{in.path, fmt.Errorf(format, args...)}
}

// errHelped ends a call that only asked for help, which has been printed.
var errHelped = errors.New("help was printed")

// do runs the command, or the one of the group that the words name.
func (in *call) do(ctx context.Context) error {
	if in.run != nil {
		in.flags = flag.NewFlagSet(in.path, flag.ContinueOnError)
		in.flags.SetOutput(io.Discard) // its problems are returned
		if err := in.run(ctx, in); !errors.Is(err, errHelped) {
			return err
		}
		return nil
	}
	if len(in.words) == 0 || isHelp(in.words[0]) {
		return in.help()
	}
	if in.words[0] == "help" && in.find("help") == nil { // a group has it as the program does
		next := *in
		next.words = append(slices.Clone(in.words[1:]), "--help")
		return next.do(ctx)
	}
	at := slices.IndexFunc(in.words, func(w string) bool { return in.find(w) != nil })
	if at < 0 || !strings.HasPrefix(in.words[0], "-") {
		at = 0 // flags may stand before the name
	}
	sub := in.find(in.words[at])
	if sub == nil {
		return in.wrong("there is no command %q", in.words[at])
	}
	next := *in
	next.command, next.path, next.words = sub, in.path+" "+sub.name, slices.Delete(slices.Clone(in.words), at, at+1)
	return next.do(ctx)
}

func (c *command) find(name string) *command {
	for _, s := range c.sub {
		if s.name == name {
			return s
		}
	}
	return nil
}

func isHelp(word string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, word) }

// number is an argument that looks like a flag.
var number = regexp.MustCompile(`^-[0-9]`)

// A wordedValue is a flag whose errors say what it takes, where those of package flag
// say "parse error".
type wordedValue struct{ flag.Getter }

// IsBoolFlag reports whether the flag may stand without a value.
func (v wordedValue) IsBoolFlag() bool {
	b, ok := v.Getter.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// Set implements [flag.Value].
func (v wordedValue) Set(value string) error {
	err := v.Getter.Set(value)
	if err == nil {
		return nil
	}
	switch v.Get().(type) {
	case bool:
		return errors.New("it must be true or false")
	case int:
		if _, wrong := strconv.Atoi(value); errors.Is(wrong, strconv.ErrSyntax) {
			return errors.New("it must be a whole number")
		}
	case time.Duration:
		return errors.New("it must be a duration such as 30s, 5m or 24h")
	}
	return err
}

// parse reads the flags, wherever they stand, and returns the arguments.
func (in *call) parse() ([]string, error) {
	in.flags.VisitAll(func(f *flag.Flag) {
		if v, ok := f.Value.(flag.Getter); ok {
			f.Value = wordedValue{v}
		}
	})
	var args []string
	for rest := in.words; len(rest) > 0; {
		if number.MatchString(rest[0]) {
			args, rest = append(args, rest[0]), rest[1:]
			continue
		}
		err := in.flags.Parse(rest)
		if errors.Is(err, flag.ErrHelp) {
			if err := in.help(); err != nil {
				return nil, err
			}
			return nil, errHelped
		}
		if err != nil {
			return nil, usageError{in.path, err}
		}
		read := len(rest) - in.flags.NArg()
		if read > 0 && rest[read-1] == "--" {
			args = append(args, in.flags.Args()...)
			break
		}
		if rest = in.flags.Args(); len(rest) > 0 {
			args, rest = append(args, rest[0]), rest[1:]
		}
	}
	return args, in.complete(args)
}

// given reports whether the flag stands in the call, also without text, as of a variable
// of a shell that is not set.
func (in *call) given(name string) bool {
	found := false
	in.flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// complete returns the problems of the arguments: missing, unexpected or invalid
// ones.
func (in *call) complete(args []string) error {
	given := map[string]bool{}
	in.flags.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() != "" })
	for _, name := range in.needs {
		if !given[name] {
			value, _ := flag.UnquoteUsage(in.flags.Lookup(name))
			return in.wrong("%s %s is missing", dashed(name), value)
		}
	}
	if len(args) > len(in.args) {
		return in.wrong("takes no argument %q", args[len(in.args)])
	}
	for _, a := range in.args[len(args):] {
		if !a.optional {
			return in.wrong("%s is missing", a.name)
		}
	}
	for i, value := range args {
		if check := in.args[i].check; check != nil {
			if err := check(value); err != nil {
				return in.wrong("%s: %w", in.args[i].name, err)
			}
		}
	}
	return nil
}

// help writes everything about the command.
func (in *call) help() error {
	var out strings.Builder
	fmt.Fprintf(&out, "Usage:\n  %s\n\n%s\n", in.usage(), strings.Trim(in.about, "\n"))
	if len(in.sub) > 0 {
		out.WriteString("\nCommands:\n")
		wide := 0
		for _, s := range in.sub {
			wide = max(wide, len(s.name))
		}
		for _, s := range in.sub {
			fmt.Fprintf(&out, "  %-*s  %s\n", wide, s.name, s.short)
		}
		fmt.Fprintf(&out, "\n`%s COMMAND --help` explains one of them.\n", in.path)
	}
	if len(in.args) > 0 {
		out.WriteString("\nArguments:\n")
		for _, a := range in.args {
			fmt.Fprintf(&out, "  %s\n%s", a.name, wrapped(a.what))
		}
	}
	if flags := in.allFlags(); len(flags) > 0 {
		out.WriteString("\nFlags:\n")
		for _, f := range flags {
			value, what := flag.UnquoteUsage(f)
			switch f.DefValue {
			case "", "false":
			case ".":
				what += " The default is the current directory."
			default:
				what += fmt.Sprintf(" The default is %s.", f.DefValue)
			}
			fmt.Fprintf(&out, "  %s\n%s", strings.TrimSpace(dashed(f.Name)+" "+value), wrapped(what))
		}
	}
	fmt.Fprintf(&out, "\nExample:\n  %s\n", strings.ReplaceAll(strings.Trim(in.example, "\n"), "\n", "\n  "))
	_, err := io.WriteString(in.stdout, out.String())
	return err
}

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// usage is the form of a call of the command.
func (in *call) usage() string {
	words := []string{in.path}
	if len(in.sub) > 0 {
		words = append(words, "COMMAND")
	}
	optional := false
	for _, f := range in.allFlags() {
		if value, _ := flag.UnquoteUsage(f); slices.Contains(in.needs, f.Name) {
			words = append(words, dashed(f.Name)+" "+value)
			continue
		}
		optional = true
	}
	if optional {
		words = append(words, "[FLAGS]")
	}
	for _, a := range in.args {
		name := a.name
		if a.optional {
			name = "[" + name + "]"
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

func (in *call) allFlags() []*flag.Flag {
	var all []*flag.Flag
	if in.flags != nil {
		in.flags.VisitAll(func(f *flag.Flag) { all = append(all, f) })
	}
	return all
}

// wrapped is the text in indented lines of at most 80 characters.
func wrapped(text string) string {
	const indent, width = "      ", 80
	var out strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && len(line)+len(word) > width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	return out.String() + strings.TrimRight(line, " ") + "\n"
}
