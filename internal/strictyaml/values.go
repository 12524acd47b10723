package strictyaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// The values of a form. Each knows where it is written; one that is left out
// has no mark.
type (
	// A Text is words: never a number or a truth that is taken for one.
	Text struct {
		Mark
		Value  string
		Offset int // how far into the line the text itself begins, or -1 if that is unknown
	}
	// A Whole is a whole number, 0 to a million.
	Whole struct {
		Mark
		Value int
	}
	// A Truth is true or false.
	Truth struct {
		Mark
		Value bool
	}
	// A Free value is any JSON.
	Free struct {
		Mark
		JSON json.RawMessage
	}
	// A List is not empty where it is written.
	List[T any] struct {
		Mark
		Items []T
	}
	// A Table is a mapping with keys of its own, in their order.
	Table[T any] struct {
		Mark
		Entries []Entry[T]
	}
	// An Entry is one key of a [Table] with its value.
	Entry[T any] struct {
		Key   Text
		Value T
	}
)

// Words returns the text of a node, whether it is one, and how far into its line
// the text begins: -1 if that is not known.
func Words(n ast.Node) (string, int, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		t := n.GetToken()
		if t.Value != n.Value {
			return n.Value, -1, true
		}
		from := 0
		if len(t.Origin) > 0 && (t.Type.String() == "SingleQuote" || t.Type.String() == "DoubleQuote") {
			from = 1
		}
		return n.Value, from, true
	case *ast.LiteralNode:
		return n.Value.Value, -1, true
	}
	return "", -1, false
}

// NotText says of a node that [Words] does not read what it must be instead.
func NotText(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "text, not a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "text, not a mapping; put it in quotes if it begins with a brace"
	case *ast.IntegerNode, *ast.FloatNode:
		return "text, not a number; put it in quotes"
	default: // true, .inf and the like; the file may hold a secret, so it is not repeated
		return "text; put it in quotes"
	}
}

// Take implements [Taker].
func (t *Text) Take(d *Decoder, n ast.Node, at Mark) {
	s, from, ok := Words(n)
	switch {
	case !ok:
		d.Wrong(at, "must be %s", NotText(n))
	case strings.TrimSpace(s) == "":
		d.Wrong(at, "is empty; fill it in or remove the key")
		s = ""
	default:
		if r, hides := hidden(s); hides { // by an escape sequence: the file itself is legible
			d.Wrong(at, notShown, r)
		}
	}
	*t = Text{at, s, from}
}

// decimal is how numbers are written: others read them in other ways.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// plain says of a number that is written otherwise.
func (d *Decoder) plain(n *ast.IntegerNode, at Mark) bool {
	if !IsPlain(n) {
		d.Wrong(at, "%s is not a plain number; write it in decimal, without a leading 0", n.GetToken().Value)
		return false
	}
	return true
}

// IsPlain reports whether a number is written in decimal, without a leading 0.
func IsPlain(n *ast.IntegerNode) bool { return decimal.MatchString(n.GetToken().Value) }

// Take implements [Taker].
func (w *Whole) Take(d *Decoder, n ast.Node, at Mark) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		d.Wrong(at, "must be a whole number")
		return
	}
	if w.Mark = at; !d.plain(i, at) {
		w.Value = 1 // nothing more is said of it
		return
	}
	switch v := i.Value.(type) {
	case int64:
		w.Value = int(v)
	case uint64:
		w.Value = int(min(v, 1<<31))
	}
	if w.Value < 0 || w.Value > 1_000_000 {
		d.Wrong(at, "is %s, must be between 0 and 1000000", i.GetToken().Value)
	}
}

// Take implements [Taker].
func (t *Truth) Take(d *Decoder, n ast.Node, at Mark) {
	t.Mark = at
	b, ok := n.(*ast.BoolNode)
	if !ok {
		d.Wrong(at, "must be true or false")
		t.Value = true // nothing more is said of it
		return
	}
	t.Value = b.Value
}

// Take implements [Taker].
func (f *Free) Take(d *Decoder, n ast.Node, at Mark) {
	f.Mark = at
	v := d.value(n, at)
	b, err := json.Marshal(v)
	if err != nil {
		d.Wrong(at, "is not a JSON value")
	}
	f.JSON = b
}

// value reads a node as JSON would.
func (d *Decoder) value(n ast.Node, at Mark) any {
	if d.nodes++; d.nodes > maxNodes || d.depth > maxDepth {
		d.Wrong(at, "is too large or nested too deeply")
		return nil
	}
	d.depth++
	defer func() { d.depth-- }()
	switch n := n.(type) {
	case *ast.AnchorNode:
		return d.value(n.Value, at)
	case *ast.AliasNode:
		name := n.Value.String()
		known := d.anchors[name]
		if known == nil {
			d.Wrong(d.mark(n, at), "*%s refers to an anchor that does not exist, or to itself", name)
			return nil
		}
		d.anchors[name] = nil
		defer func() { d.anchors[name] = known }()
		return d.value(known, at)
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		d.plain(n, at)
		return n.Value
	case *ast.FloatNode:
		return n.Value
	case *ast.SequenceNode:
		all := []any{}
		for i, v := range n.Values {
			all = append(all, d.value(v, at.Key(fmt.Sprintf("[%d]", i))))
		}
		return all
	case ast.MapNode:
		object := map[string]any{}
		for e := n.MapRange(); e.Next(); {
			name := KeyOf(e.Key())
			if _, twice := object[name]; twice {
				d.Wrong(d.mark(e.Key(), at.Key(name)), "is set twice")
			}
			object[name] = d.value(e.Value(), at.Key(name))
		}
		return object
	}
	s, _, ok := Words(n)
	if !ok {
		d.Wrong(d.mark(n, at), "is not a JSON value")
	}
	return s
}

// Take implements [Taker].
func (l *List[T]) Take(d *Decoder, n ast.Node, at Mark) {
	l.Mark = at
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.Wrong(at, "must be a list")
		return
	}
	if len(s.Values) == 0 {
		d.Wrong(at, "is an empty list; fill it in or remove the key")
	}
	for i, v := range s.Values {
		var item T
		place := at
		place.Path = fmt.Sprintf("%s[%d]", at.Path, i)
		d.into(v, place, reflect.ValueOf(&item).Elem())
		l.Items = append(l.Items, item)
	}
}

// Take implements [Taker].
func (t *Table[T]) Take(d *Decoder, n ast.Node, at Mark) {
	t.Mark = at
	d.entries(n, at, func(name string, key, value ast.Node) {
		e := Entry[T]{Key: Text{Mark: d.mark(key, at.Key(name)), Value: name}}
		d.into(value, at.Key(name), reflect.ValueOf(&e.Value).Elem())
		t.Entries = append(t.Entries, e)
	})
}

// Elem returns the type of the list's elements, for code that walks the forms.
func (l *List[T]) Elem() reflect.Type { return reflect.TypeFor[T]() }

// Elem returns the type of the table's values, for code that walks the forms.
func (t *Table[T]) Elem() reflect.Type { return reflect.TypeFor[T]() }
