package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The limits of a file. A larger file is a mistake or an attempt to slow the reader down.
const (
	maxBytes = 256 << 10
	maxNodes = 50_000
	maxDepth = 64

	// Those of any file: the parser takes gigabytes for one that is nested deeper than
	// any that a person writes.
	mostBytes = 4 << 20
	mostDepth = 1000
)

// Why a file holds no document to read; any other error of [Open] is the
// parser's.
var (
	ErrEmpty     = errors.New("the file is empty")
	ErrSeveral   = errors.New("the file contains several YAML documents; keep one")
	ErrDirective = errors.New("the file has a directive, a line that begins with % such as %YAML 1.1; " +
		"remove it, because directives are not supported and the file is read as YAML 1.2")
)

// Open returns the one document of a file. A byte-order mark in front is no
// part of it. Two anchors of one name are a [RepeatedAnchorError].
func Open(src []byte, how ...parser.Option) (ast.Node, error) {
	switch {
	case len(src) > mostBytes:
		return nil, tooLong()
	case deep(src, mostDepth):
		return nil, fmt.Errorf("the file is nested more than %d levels deep", mostDepth)
	}
	parsed, err := parse(WithoutMark(src), how)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(parsed.Docs, func(d *ast.DocumentNode) bool { _, yes := d.Body.(*ast.DirectiveNode); return yes }) {
		return nil, ErrDirective // the parser makes a document of it
	}
	documents := slices.DeleteFunc(slices.Clone(parsed.Docs), func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(documents) {
	case 0:
		return nil, ErrEmpty
	case 1:
		if err := oneOfEach(documents[0].Body); err != nil {
			return nil, err
		}
		return documents[0].Body, nil
	}
	return nil, ErrSeveral
}

// oneOfEach is nil if no two anchors of a document have the same name.
func oneOfEach(root ast.Node) error {
	var again *ast.AnchorNode
	seen := map[string]bool{}
	Walk(root, func(n ast.Node) {
		a, ok := n.(*ast.AnchorNode)
		if !ok || a.Name == nil {
			return
		}
		if name := a.Name.String(); !seen[name] {
			seen[name] = true
		} else if again == nil {
			again = a
		}
	})
	if again == nil {
		return nil
	}
	at := again.GetToken().Position
	return &RepeatedAnchorError{Name: again.Name.String(), Line: at.Line, Col: at.Column}
}

// A RepeatedAnchorError says that two anchors of a file have the same name. YAML then
// means the last one before each alias, which is easily misread.
type RepeatedAnchorError struct {
	Name      string
	Line, Col int // of the second one
}

func (e *RepeatedAnchorError) Error() string {
	return fmt.Sprintf("[%d:%d] %s", e.Line, e.Col, e.problem())
}

func (e *RepeatedAnchorError) problem() string {
	return fmt.Sprintf("the anchor &%s is set twice; give each anchor a name of its own", e.Name)
}

func tooLong() error { return fmt.Errorf("the file has more than %d bytes", mostBytes) }

// WithoutMark is the file without the mark that some editors put in front.
func WithoutMark(src []byte) []byte { return bytes.TrimPrefix(src, []byte("\ufeff")) }

// parse keeps a parser that panics on odd input from ending the process.
func parse(src []byte, how []parser.Option) (f *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is not YAML")
		}
	}()
	return parser.ParseBytes(src, 0, how...)
}

// Anchors returns what the anchors of a document of [Open] stand for.
func Anchors(root ast.Node) map[string]ast.Node {
	found := map[string]ast.Node{}
	Walk(root, func(n ast.Node) {
		if n, ok := n.(*ast.AnchorNode); ok && n.Name != nil {
			found[n.Name.String()] = n.Value
		}
	})
	return found
}

// Walk calls f with every node.
func Walk(root ast.Node, f func(ast.Node)) { ast.Walk(visitor(f), root) }

type visitor func(ast.Node)

// Visit implements [ast.Visitor].
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// KeyOf is a key as it is meant: without its quotes.
func KeyOf(n ast.MapKeyNode) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.String()
}

// deep reports whether brackets or indentation nest deeper than so many levels: a parser
// that recurses would not survive much of it.
func deep(src []byte, levels int) bool {
	brackets, dashes := 0, 0
	for _, c := range src {
		switch c {
		case '[', '{':
			brackets, dashes = brackets+1, 0
		case ']', '}':
			brackets, dashes = max(0, brackets-1), 0
		case '-', '?', ':':
			dashes++
		case ' ', '\t':
		default:
			dashes = 0
		}
		if brackets > levels || dashes > 2*levels {
			return true
		}
	}
	return false
}
