package strictyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/countersign/countersign/internal/approvals"
)

// A Mark is where something is written.
type Mark struct {
	File      string
	Line, Col int
	Path      string // the place in the document, such as rules[0].ask.within
}

// Written reports whether it is written in a file at all.
func (m Mark) Written() bool { return m.Line > 0 }

func (m *Mark) put(at Mark) { *m = at }

// String is file:line:column.
func (m Mark) String() string { return fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Col) }

// Place is where it is written or, if that is in no file, what it is about.
func (m Mark) Place() string {
	if m.Written() {
		return m.String()
	}
	return m.Path
}

// Key is the place of a key below, whose own position is not known.
func (m Mark) Key(name string) Mark {
	m.Path = strings.TrimPrefix(m.Path+"."+name, ".")
	return m
}

// A problem is one thing that is wrong, and where.
type problem struct {
	Mark
	what string
}

// Error shows what an editor would not: it may quote the file.
func (p problem) Error() string { return approvals.Visible(p.text()) }

func (p problem) text() string {
	path := p.Path
	if path == "" {
		path = "the file"
	}
	if p.File == "" { // it is written in no file
		return fmt.Sprintf("%s: %s", path, p.what)
	}
	if !p.Written() {
		return fmt.Sprintf("%s: %s: %s", p.File, path, p.what)
	}
	return fmt.Sprintf("%s: %s: %s", p.Mark, path, p.what)
}

// Problems are collected, so that all are reported at once.
type Problems struct{ all []problem }

// Wrong adds a problem at a place in the file.
func (p *Problems) Wrong(m Mark, format string, args ...any) {
	p.all = append(p.all, problem{m, fmt.Sprintf(format, args...)})
}

// Count returns the number of problems so far, so that a caller can see new ones.
func (p *Problems) Count() int { return len(p.all) }

// Err joins the problems in the order of the files, each once.
func (p *Problems) Err() error {
	slices.SortStableFunc(p.all, func(a, b problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	var errs []error
	for i, e := range p.all {
		if i == 0 || e != p.all[i-1] {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

func (p *Problems) syntax(at Mark, err error) {
	var s *yaml.SyntaxError
	if errors.As(err, &s) && s.Token != nil {
		at.Line, at.Col = s.Token.Position.Line, s.Token.Position.Column
		p.Wrong(at, "is not YAML: %s", s.Message)
		return
	}
	p.Wrong(at, "is not YAML")
}
