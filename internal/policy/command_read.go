package policy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/shellcmd"
	"github.com/countersign/countersign/internal/strictyaml"
)

// The bounds of what a rule says of a command.
const (
	maxForms   = 200
	maxPattern = 500 // letters of an expression
)

// readCommand reads what a rule says of a command.
func (b *builder) readCommand(r *rule, f *commandForm) {
	if f == nil {
		return
	}
	c := &command{argument: argCommand, cwd: argCwd}
	r.command = c
	if f.Argument.Written() {
		c.argument = f.Argument.Value
	}
	for _, t := range f.OtherArgs.Items {
		c.others = append(c.others, t.Value)
	}
	switch {
	case f.Forms.Written() == f.Runs.Written():
		b.Wrong(f.Mark, "must have exactly one of forms and runs")
	case f.Forms.Written() && r.kind == KindDeny:
		b.Wrong(f.Forms.Mark, "is for allow and ask; a deny that matches whole commands only is avoided by adding another: write runs")
	case f.Runs.Written() && r.kind == KindAllow:
		b.Wrong(f.Runs.Mark, "is for deny and ask; an allow has to list forms")
	case f.Runs.Written() && (f.Cwd != nil || f.OtherArgs.Written()):
		b.Wrong(f.Mark, "has cwd or other_args, which are for forms only; remove them")
	}
	if f.Cwd != nil {
		b.readCwd(c, f.Cwd)
	}
	if len(f.Forms.Items) > maxForms {
		b.Wrong(f.Forms.Mark, "has %d forms, and at most %d are allowed; write several rules", len(f.Forms.Items), maxForms)
	}
	for _, p := range f.Forms.Items {
		b.readForm(c, p)
	}
	for _, t := range f.Runs.Items {
		if words := b.words(t); words != nil {
			c.sought = append(c.sought, words)
		}
	}
	b.fitCommand(r, f)
	said, err := json.Marshal([]any{c.argument, c.cwd, c.others, c.permitted, c.sought})
	if err != nil {
		b.Wrong(f.Mark, "cannot be compared: %s", err) // unreachable
	}
	c.written = string(said)
}

func (b *builder) readCwd(c *command, f *cwdForm) {
	if f.Argument.Written() {
		c.cwd = f.Argument.Value
	}
	if !f.Under.Written() {
		b.Wrong(f.Key("under"), "is missing; list absolute directories")
	}
	for _, t := range f.Under.Items {
		if b.directory(t) && !strings.HasPrefix(t.Value, "/") {
			b.Wrong(t.Mark, "%q must be absolute", t.Value)
		}
		c.permitted.Directories = append(c.permitted.Directories, t.Value)
	}
}

func (b *builder) directory(t text) bool {
	if t.Value != "" && !shellcmd.IsDirectory(t.Value) {
		b.Wrong(t.Mark, "%q is not a directory that can be listed; write it without .., without a pattern but * for a whole name, and only with letters, digits and ._-+@,", t.Value)
		return false
	}
	return t.Value != ""
}

// aWord is a word of a command that needs no quotes.
var aWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// words are a program and the words after it.
func (b *builder) words(t text) []string {
	all := strings.Split(t.Value, " ")
	for _, w := range all {
		if t.Value != "" && !aWord.MatchString(w) {
			b.Wrong(t.Mark, "%q is not a program with the words after it; write words with one space between, of letters, digits and _./:@%%+,=-", t.Value)
			return nil
		}
	}
	read, err := shellcmd.Read(t.Value)
	if t.Value != "" && (err != nil || len(read) != 1 || strings.HasPrefix(t.Value, "-")) {
		b.Wrong(t.Mark, "%q would never match; begin with the program", t.Value)
		return nil
	}
	return all
}

func (b *builder) readForm(c *command, f programForm) {
	if !f.Run.Written() {
		b.Wrong(f.Key("run"), "is missing; name the program, and its subcommand if it has one")
		return
	}
	before := b.Count()
	form := shellcmd.Form{Run: b.words(f.Run), Values: map[string]shellcmd.Value{}, Piped: f.Piped.Value}
	if b.Count() > before {
		return
	}
	if why := shellcmd.Forbidden(form.Run[0]); why != "" {
		b.Wrong(f.Run.Mark, "%s cannot be permitted: %s", form.Run[0], why)
	}
	if shellcmd.IsRelative(form.Run[0]) && len(c.permitted.Directories) == 0 {
		b.Wrong(f.Run.Mark, "%s depends on where the command runs; write cwd too, or an absolute path", form.Run[0])
	}
	for _, t := range f.Flags.Items {
		switch {
		case t.Value == "":
		case !strings.HasPrefix(t.Value, "-") || t.Value == "-":
			b.Wrong(t.Mark, "%q does not begin with a dash; write it under run or operands", t.Value)
		case slices.Contains(form.Flags, t.Value):
			b.Wrong(t.Mark, "is listed twice")
		}
		form.Flags = append(form.Flags, t.Value)
	}
	for _, e := range f.Values.Entries {
		key := e.Key.Value
		switch bare, joined := strings.CutSuffix(key, "="); {
		case !strings.HasPrefix(key, "-") || bare == "-" || bare == "--" || strings.Contains(bare, "="):
			b.Wrong(e.Key.Mark, "%q is not a flag; write --name= for a value in the same word, --name or -n for one in the next", key)
		case !joined && slices.Contains(form.Flags, key):
			b.Wrong(e.Key.Mark, "is listed under flags too; a flag has a value or has none")
		}
		form.Values[key] = b.value(c, e.Value)
	}
	for _, v := range f.Operands.Items {
		form.Operands = append(form.Operands, b.value(c, v))
	}
	b.readCounts(&form, f)
	if slices.ContainsFunc(c.permitted.Forms, func(o shellcmd.Form) bool { return sameForm(o, form) }) {
		b.Wrong(f.Mark, "says the same as a form before it; remove one")
	}
	c.permitted.Forms = append(c.permitted.Forms, form)
	if b.Count() > before {
		return
	}
	for _, s := range form.Warnings() {
		b.warn(f.Run.Mark, s)
	}
}

func (b *builder) readCounts(form *shellcmd.Form, f programForm) {
	n := len(form.Operands)
	form.Min, form.Max = n, n
	if f.Max.Written() {
		form.Max = f.Max.Value
	}
	if f.Min.Written() {
		form.Min = f.Min.Value
	}
	switch {
	case n == 0 && (f.Min.Written() || f.Max.Written()):
		b.Wrong(f.Mark, "has min or max, and no operands that they could count; list operands, or remove them")
	case form.Max < n:
		b.Wrong(f.Max.Mark, "is %d, so the last of the %d operands are never used; list fewer, or write more", form.Max, n)
	case form.Min > form.Max:
		b.Wrong(f.Min.Mark, "is %d, more than the %d operands that a command may have", form.Min, form.Max)
	}
}

func sameForm(a, b shellcmd.Form) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && string(one) == string(other)
}

func (b *builder) value(c *command, f valueForm) (v shellcmd.Value) {
	if !f.Is.Written() && !f.Under.Written() && !f.Matches.Written() {
		b.Wrong(f.Mark, "says nothing; write is, under or matches")
	}
	for _, t := range f.Is.Items {
		if slices.Contains(v.Is, t.Value) {
			b.Wrong(t.Mark, "is listed twice")
		}
		v.Is = append(v.Is, t.Value)
	}
	for _, t := range f.Under.Items {
		if b.directory(t) && !strings.HasPrefix(t.Value, "/") && len(c.permitted.Directories) == 0 {
			b.Wrong(t.Mark, "%q depends on where the command runs; write cwd too, or an absolute directory", t.Value)
		}
		v.Under = append(v.Under, t.Value)
	}
	if f.Matches.Value == "" {
		return v
	}
	re, err := shellcmd.Pattern(f.Matches.Value)
	switch {
	case len(f.Matches.Value) > maxPattern:
		b.Wrong(f.Matches.Mark, "has %d letters, and at most %d are allowed", len(f.Matches.Value), maxPattern)
	case err != nil:
		b.Wrong(f.Matches.Mark, "is not a regular expression: %s", firstLine(err.Error()))
	default:
		v.Matches = re
	}
	return v
}

// fitCommand says of known tools which do not have the arguments.
func (b *builder) fitCommand(r *rule, f *commandForm) {
	if len(r.tools) == 0 {
		b.Wrong(f.Mark, "needs the tools that run commands; name them under tools")
		return
	}
	c := r.command
	for _, t := range b.concerned(r) {
		b.fitArgument(f.Mark, t, c.argument)
		if len(c.permitted.Directories) > 0 {
			b.fitArgument(f.Cwd.Mark, t, c.cwd)
		}
		for _, o := range f.OtherArgs.Items {
			if t.shape.kind == "object" && t.shape.rest == nil && t.shape.fields[o.Value] == nil {
				b.Wrong(o.Mark, "the tool %s of %s has no argument %q", t.Name, t.Agent, o.Value)
			}
		}
	}
}

func (b *builder) fitArgument(at strictyaml.Mark, t *tool, name string) {
	if t.shape.kind != "object" {
		return
	}
	s := t.shape.fields[name]
	if s == nil {
		s = t.shape.rest
	}
	switch {
	case s == nil:
		b.Wrong(at, "the tool %s of %s has no argument %q; write argument, or name other tools", t.Name, t.Agent, name)
	case s.kind != "" && s.kind != "string":
		b.Wrong(at, "the argument %s of the tool %s of %s is not text", name, t.Name, t.Agent)
	}
}

// warn adds a warning: the file is used anyway.
func (b *builder) warn(at strictyaml.Mark, what string) {
	b.p.warnings = append(b.p.warnings, at.String()+": "+at.Path+": "+what)
}
