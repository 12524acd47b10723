package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// The values of a form. Each knows where it is written; one that is left out
// has no mark.
type (
	text struct {
		mark
		s    string
		from int // how far into the line the text itself begins, or -1 if that is unknown
	}
	whole struct {
		mark
		n int
	}
	truth struct {
		mark
		b bool
	}
	span struct {
		mark
		d time.Duration
	}
	// A free value is any JSON.
	free struct {
		mark
		json json.RawMessage
	}
	list[T any] struct {
		mark
		items []T
	}
	table[T any] struct {
		mark
		entries []entry[T]
	}
	entry[T any] struct {
		key text
		val T
	}
)

func words(n ast.Node) (string, int, bool) {
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

func (t *text) take(d *decoder, n ast.Node, at mark) {
	s, from, ok := words(n)
	switch {
	case !ok:
		d.wrong(at, "must be a text; put it in quotes if it looks like a number")
	case strings.TrimSpace(s) == "":
		d.wrong(at, "is empty: write something or leave the key out")
		s = ""
	default:
		if r, hides := hidden(s); hides { // by an escape sequence: the file itself is legible
			d.wrong(at, notShown, r)
		}
	}
	*t = text{at, s, from}
}

// decimal is how numbers are written: others read them in other ways.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// plain says of a number that is written otherwise.
func (d *decoder) plain(n *ast.IntegerNode, at mark) bool {
	if written := n.GetToken().Value; !decimal.MatchString(written) {
		d.wrong(at, "%s is no plain number; write it in decimal, without a leading 0", written)
		return false
	}
	return true
}

func (w *whole) take(d *decoder, n ast.Node, at mark) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		d.wrong(at, "must be a whole number")
		return
	}
	if w.mark = at; !d.plain(i, at) {
		w.n = 1 // nothing more is said of it
		return
	}
	switch v := i.Value.(type) {
	case int64:
		w.n = int(v)
	case uint64:
		w.n = int(min(v, 1<<31))
	}
	if w.n < 0 || w.n > 1_000_000 {
		d.wrong(at, "is %s, must be between 0 and 1000000", i.GetToken().Value)
	}
}

func (t *truth) take(d *decoder, n ast.Node, at mark) {
	t.mark = at
	b, ok := n.(*ast.BoolNode)
	if !ok {
		d.wrong(at, "must be true or false")
		return
	}
	t.b = b.Value
}

func (s *span) take(d *decoder, n ast.Node, at mark) {
	written, _, _ := words(n)
	long, err := time.ParseDuration(written)
	switch {
	case err != nil:
		d.wrong(at, "must be a duration with its unit, such as 30m or 24h")
		return
	case long < time.Minute || long > MaxWithin:
		d.wrong(at, "is %s, must be between 1m and %s", written, hours(MaxWithin))
		return
	}
	s.mark, s.d = at, long
}

// hours is a duration as people write it in a policy: 2h, 1h30m.
func hours(d time.Duration) string {
	h, m, s := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute
	out := ""
	if h > 0 {
		out += fmt.Sprintf("%dh", h)
	}
	if m > 0 {
		out += fmt.Sprintf("%dm", m)
	}
	if s > 0 || out == "" {
		out += s.String()
	}
	return out
}

func (f *free) take(d *decoder, n ast.Node, at mark) {
	f.mark = at
	v := d.value(n, at)
	b, err := json.Marshal(v)
	if err != nil {
		d.wrong(at, "is nothing that JSON can hold")
	}
	f.json = b
}

// value reads a node as JSON would.
func (d *decoder) value(n ast.Node, at mark) any {
	if d.nodes++; d.nodes > maxNodes || d.depth > maxDepth {
		d.wrong(at, "is too large, or nested too deep")
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
			d.wrong(d.mark(n, at), "*%s names nothing, or itself", name)
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
			all = append(all, d.value(v, at.key(fmt.Sprintf("[%d]", i))))
		}
		return all
	case ast.MapNode:
		object := map[string]any{}
		for e := n.MapRange(); e.Next(); {
			name := e.Key().String()
			if s, ok := e.Key().(*ast.StringNode); ok {
				name = s.Value
			}
			if _, twice := object[name]; twice {
				d.wrong(d.mark(e.Key(), at.key(name)), "is there twice")
			}
			object[name] = d.value(e.Value(), at.key(name))
		}
		return object
	}
	s, _, ok := words(n)
	if !ok {
		d.wrong(d.mark(n, at), "is nothing that JSON can hold")
	}
	return s
}

func (l *list[T]) take(d *decoder, n ast.Node, at mark) {
	l.mark = at
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrong(at, "must be a list")
		return
	}
	if len(s.Values) == 0 {
		d.wrong(at, "is an empty list: write something or leave the key out")
	}
	for i, v := range s.Values {
		var item T
		place := at
		place.path = fmt.Sprintf("%s[%d]", at.path, i)
		d.into(v, place, reflect.ValueOf(&item).Elem())
		l.items = append(l.items, item)
	}
}

func (t *table[T]) take(d *decoder, n ast.Node, at mark) {
	t.mark = at
	d.entries(n, at, func(name string, key, value ast.Node) {
		e := entry[T]{key: text{mark: d.mark(key, at.key(name)), s: name}}
		d.into(value, at.key(name), reflect.ValueOf(&e.val).Elem())
		t.entries = append(t.entries, e)
	})
}

// elem is the type of what a list or table holds, for whoever walks the forms.
func (l *list[T]) elem() reflect.Type  { return reflect.TypeFor[T]() }
func (t *table[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
