package strictyaml

import (
	"errors"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A Decoder reads a document into forms, and keeps where everything is
// written. It is as strict as it can be: what it does not understand is a
// problem, and so is what says nothing.
type Decoder struct {
	*Problems
	file    string
	anchors map[string]ast.Node
	nodes   int
	depth   int
}

// Decode reads one file into form, which points to a struct. It is false if
// the file could not be read at all.
func Decode(file string, src []byte, p *Problems, form any) bool {
	top := Mark{File: file, Line: 1, Col: 1}
	src = WithoutMark(src)
	switch {
	case len(src) > maxBytes:
		p.Wrong(top, "has more than %d bytes", maxBytes)
		return false
	case !p.legible(top, src):
		return false
	case deep(src, maxDepth):
		p.Wrong(top, "is nested more than %d levels deep", maxDepth)
		return false
	}
	root, err := Open(src, parser.AllowDuplicateMapKey())
	repeated, isRepeated := errors.AsType[*RepeatedAnchorError](err)
	switch {
	case isRepeated:
		p.Wrong(Mark{File: file, Line: repeated.Line, Col: repeated.Col}, "%s", repeated.problem())
		return false
	case errors.Is(err, ErrEmpty):
		p.Wrong(top, "is empty")
		return false
	case errors.Is(err, ErrSeveral):
		p.Wrong(top, "contains several YAML documents, but only one is read; keep one, or split them into files of a directory")
		return false
	case errors.Is(err, ErrDirective):
		p.Wrong(top, "has a directive, a line that begins with %% such as %%YAML 1.1; remove it, because directives are not supported and the file is read as YAML 1.2")
		return false
	case err != nil:
		p.syntax(top, err)
		return false
	}
	d := &Decoder{Problems: p, file: file, anchors: Anchors(root)}
	d.into(root, Mark{File: file}, reflect.ValueOf(form).Elem())
	return true
}

// A Taker reads itself from a node that is neither an alias nor null.
type Taker interface {
	Take(d *Decoder, n ast.Node, at Mark)
}

func (d *Decoder) mark(n ast.Node, at Mark) Mark {
	at.File = d.file
	if t := n.GetToken(); t != nil && t.Position != nil {
		at.Line, at.Col = t.Position.Line, t.Position.Column
	}
	if m, ok := n.(*ast.MappingValueNode); ok && m.Key != nil { // its own token is the colon
		at.Line, at.Col = m.Key.GetToken().Position.Line, m.Key.GetToken().Position.Column
	}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return d.mark(m.Values[0], at)
	}
	return at
}

func (d *Decoder) into(n ast.Node, at Mark, v reflect.Value) {
	at = d.mark(n, at)
	if d.nodes++; d.nodes > maxNodes || d.depth > maxDepth {
		if d.nodes == maxNodes+1 || d.depth > maxDepth {
			d.Wrong(at, "is too large or nested too deeply")
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
		d.Wrong(at, "has no value; set one or remove the key")
		return
	case *ast.TagNode:
		d.Wrong(at, "has a YAML tag, which is not supported; remove it")
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if t, ok := reflect.TypeAssert[Taker](v.Addr()); ok {
		t.Take(d, n, at)
		return
	}
	d.fields(n, at, v)
}

func (d *Decoder) alias(n *ast.AliasNode, at Mark, v reflect.Value) {
	name := n.Value.String()
	known, ok := d.anchors[name]
	switch {
	case !ok:
		d.Wrong(at, "*%s refers to an anchor that does not exist", name)
	case known == nil:
		d.Wrong(at, "*%s contains itself", name)
	default:
		d.anchors[name] = nil
		d.into(known, at, v)
		d.anchors[name] = known
	}
}

// fields reads a mapping into a struct, by the yaml tags of its fields.
func (d *Decoder) fields(n ast.Node, at Mark, v reflect.Value) {
	if m, ok := reflect.TypeAssert[interface{ put(at Mark) }](v.Addr()); ok {
		m.put(at)
	}
	d.entries(n, at, func(name string, key, value ast.Node) {
		if field, ok := Field(v.Type(), name); ok {
			d.into(value, at.Key(name), v.FieldByIndex(field.Index))
			return
		}
		d.Wrong(d.mark(key, at.Key(name)), "there is no such key%s", HintOr(name, Keys(v.Type())))
	})
}

// entries goes over a mapping that is not empty and names no key twice.
func (d *Decoder) entries(n ast.Node, at Mark, each func(name string, key, value ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.Wrong(at, "must be a mapping, with keys")
		return
	}
	seen := map[string]bool{}
	for e := m.MapRange(); e.Next(); {
		key, value := e.Key(), e.Value()
		if key.IsMergeKey() {
			d.Wrong(d.mark(key, at), "merge keys (<<) are not supported; write the keys out")
			continue
		}
		name := KeyOf(key)
		if r, hides := hidden(name); hides {
			d.Wrong(d.mark(key, at.Key(name)), notShown, r)
			continue
		}
		if seen[name] {
			d.Wrong(d.mark(key, at.Key(name)), "is set twice")
			continue
		}
		seen[name] = true
		each(name, key, value)
	}
	if len(seen) == 0 {
		d.Wrong(at, "is empty; fill it in or remove the key")
	}
}
