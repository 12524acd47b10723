package policy

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/countersign/countersign/internal/approvals"
)

// A mark is where something is written.
type mark struct {
	file      string
	line, col int
	path      string // the place in the document, such as rules[0].ask.within
}

func (m mark) set() bool      { return m.line > 0 }
func (m *mark) put(at mark)   { *m = at }
func (m mark) String() string { return fmt.Sprintf("%s:%d:%d", m.file, m.line, m.col) }

func (m mark) key(name string) mark {
	m.path = strings.TrimPrefix(m.path+"."+name, ".")
	return m
}

// A problem is one thing that is wrong, and where.
type problem struct {
	mark
	what string
}

// Error shows what an editor would not: it may quote the file.
func (p problem) Error() string { return approvals.Visible(p.text()) }

func (p problem) text() string {
	path := p.path
	if path == "" {
		path = "the file"
	}
	if p.file == "" { // it is written in no file of the policy
		return fmt.Sprintf("%s: %s", path, p.what)
	}
	if !p.set() {
		return fmt.Sprintf("%s: %s: %s", p.file, path, p.what)
	}
	return fmt.Sprintf("%s: %s: %s", p.mark, path, p.what)
}

// Problems are collected, so that all are reported at once.
type problems struct{ all []problem }

func (p *problems) wrong(m mark, format string, args ...any) {
	p.all = append(p.all, problem{m, fmt.Sprintf(format, args...)})
}

// err joins the problems in the order of the files, each once.
func (p *problems) err() error {
	slices.SortStableFunc(p.all, func(a, b problem) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		if a.line != b.line {
			return a.line - b.line
		}
		return a.col - b.col
	})
	var errs []error
	for i, e := range p.all {
		if i == 0 || e != p.all[i-1] {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// The bounds of a file: what is larger is a slip, or made to be slow.
const (
	maxBytes = 256 << 10
	maxNodes = 50_000
	maxDepth = 64
)

// A decoder reads a document into forms, and keeps where everything is
// written. It is as strict as it can be: what it does not understand is a
// problem, and so is what says nothing.
type decoder struct {
	*problems
	file    string
	anchors map[string]ast.Node
	nodes   int
	depth   int
}

// decode reads one file into form, which points to a struct. It is false if
// the file could not be read at all.
func decode(file string, src []byte, p *problems, form any) bool {
	top := mark{file: file, line: 1, col: 1}
	src = bytes.TrimPrefix(src, []byte("\ufeff")) // some editors begin a file with it
	switch {
	case len(src) > maxBytes:
		p.wrong(top, "holds %d bytes; at most %d are read", len(src), maxBytes)
		return false
	case !p.legible(top, src):
		return false
	case deep(src):
		p.wrong(top, "is nested more than %d deep", maxDepth)
		return false
	}
	parsed, err := parse(src)
	if err != nil {
		p.syntax(top, err)
		return false
	}
	documents := slices.DeleteFunc(slices.Clone(parsed.Docs), func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(documents) {
	case 0:
		p.wrong(top, "is empty")
		return false
	case 1:
	default:
		p.wrong(top, "holds several documents; only one is read, so remove the others or make them files of a directory")
		return false
	}
	d := &decoder{problems: p, file: file, anchors: map[string]ast.Node{}}
	ast.Walk(d, documents[0].Body)
	d.into(documents[0].Body, mark{file: file}, reflect.ValueOf(form).Elem())
	return true
}

// parse keeps a parser that panics on odd input from ending the process.
func parse(src []byte) (f *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is not YAML")
		}
	}()
	return parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
}

// deep reports whether brackets or indentation nest deeper than any policy
// does: a parser that recurses would not survive much of it.
func deep(src []byte) bool {
	brackets, dashes := 0, 0
	for _, c := range src {
		switch c {
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(0, brackets-1)
		case '-', '?', ':':
			dashes++
			continue
		case ' ', '\t':
			continue
		}
		if brackets > maxDepth || dashes > 2*maxDepth {
			return true
		}
		dashes = 0
	}
	return false
}

func (p *problems) syntax(at mark, err error) {
	var s *yaml.SyntaxError
	if errors.As(err, &s) && s.Token != nil {
		at.line, at.col = s.Token.Position.Line, s.Token.Position.Column
		p.wrong(at, "is not YAML: %s", s.Message)
		return
	}
	p.wrong(at, "is not YAML")
}

// Visit collects the anchors of the document.
func (d *decoder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		d.anchors[a.Name.String()] = a.Value
	}
	return d
}

// A taker reads itself from a node that is neither an alias nor null.
type taker interface {
	take(d *decoder, n ast.Node, at mark)
}

func (d *decoder) mark(n ast.Node, at mark) mark {
	at.file = d.file
	if t := n.GetToken(); t != nil && t.Position != nil {
		at.line, at.col = t.Position.Line, t.Position.Column
	}
	if m, ok := n.(*ast.MappingValueNode); ok && m.Key != nil { // its own token is the colon
		at.line, at.col = m.Key.GetToken().Position.Line, m.Key.GetToken().Position.Column
	}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return d.mark(m.Values[0], at)
	}
	return at
}

func (d *decoder) into(n ast.Node, at mark, v reflect.Value) {
	at = d.mark(n, at)
	if d.nodes++; d.nodes > maxNodes || d.depth > maxDepth {
		if d.nodes == maxNodes+1 || d.depth > maxDepth {
			d.wrong(at, "is too large, or nested too deep")
		}
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	switch n := n.(type) {
	case *ast.AnchorNode:
		d.into(n.Value, at, v)
		return
	case *ast.AliasNode:
		d.alias(n, at, v)
		return
	case *ast.NullNode:
		d.wrong(at, "has no value: write one or leave the key out")
		return
	case *ast.TagNode:
		d.wrong(at, "has a tag; tags are not read, so remove it")
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if t, ok := reflect.TypeAssert[taker](v.Addr()); ok {
		t.take(d, n, at)
		return
	}
	d.fields(n, at, v)
}

func (d *decoder) alias(n *ast.AliasNode, at mark, v reflect.Value) {
	name := n.Value.String()
	known, ok := d.anchors[name]
	switch {
	case !ok:
		d.wrong(at, "*%s names nothing", name)
	case known == nil:
		d.wrong(at, "*%s holds itself", name)
	default:
		d.anchors[name] = nil
		d.into(known, at, v)
		d.anchors[name] = known
	}
}

// fields reads a mapping into a struct, by the yaml tags of its fields.
func (d *decoder) fields(n ast.Node, at mark, v reflect.Value) {
	if m, ok := reflect.TypeAssert[interface{ put(at mark) }](v.Addr()); ok {
		m.put(at)
	}
	d.entries(n, at, func(name string, key, value ast.Node) {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("yaml") == name {
				d.into(value, at.key(name), v.Field(i))
				return
			}
		}
		d.wrong(d.mark(key, at.key(name)), "there is no such key%s", hintOr(name, keysOf(v.Type())))
	})
}

// entries goes over a mapping that is not empty and names no key twice.
func (d *decoder) entries(n ast.Node, at mark, each func(name string, key, value ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.wrong(at, "must be a mapping, with keys")
		return
	}
	seen := map[string]bool{}
	for e := m.MapRange(); e.Next(); {
		key, value := e.Key(), e.Value()
		if key.IsMergeKey() {
			d.wrong(d.mark(key, at), "merges (<<) are not read; write the keys out")
			continue
		}
		name := key.String()
		if s, ok := key.(*ast.StringNode); ok {
			name = s.Value
		}
		if r, hides := hidden(name); hides {
			d.wrong(d.mark(key, at.key(name)), notShown, r)
			continue
		}
		if seen[name] {
			d.wrong(d.mark(key, at.key(name)), "is there twice")
			continue
		}
		seen[name] = true
		each(name, key, value)
	}
	if len(seen) == 0 {
		d.wrong(at, "is empty: write something or leave the key out")
	}
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// hintOr is a hint or, if nothing is close, all that is known.
func hintOr(name string, known []string) string {
	if h := hint(name, known); h != "" || len(known) == 0 {
		return h
	}
	return "; here may be " + strings.Join(known, ", ")
}

// hint is "; did you mean ...?" if something known is close to name.
func hint(name string, known []string) string {
	best, least := "", 1+len(name)/4
	for _, k := range known {
		if n := distance(strings.ToLower(name), strings.ToLower(k)); n <= least && n < max(len(name), len(k)) && (best == "" || n < least) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is how many letters must be changed, added, removed or swapped with
// their neighbour.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := 1; i <= len(a); i++ {
		row = []int{i}
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, before[j-2]+1)
			}
			row = append(row, n)
		}
		before, last = last, row
	}
	return last[len(b)]
}
