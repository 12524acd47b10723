package config

import (
	"regexp"

	"github.com/goccy/go-yaml/ast"

	"github.com/countersign/countersign/internal/strictyaml"
)

// overlaps are the keys of a mapping that a merge (<<) in it sets too. The decoder takes
// the merge for those that stand before it, where YAML takes what the mapping says.
func (f *form) overlaps(m ast.MapNode) (before, after []ast.MapKeyNode) {
	var own []ast.MapKeyNode
	merged := map[string]bool{}
	for entries := m.MapRange(); entries.Next(); {
		key := entries.Key()
		if !key.IsMergeKey() {
			if merged[strictyaml.KeyOf(key)] {
				after = append(after, key)
			}
			own = append(own, key)
			continue
		}
		f.merged(entries.Value(), merged)
		for _, k := range own {
			if merged[strictyaml.KeyOf(k)] {
				before = append(before, k)
			}
		}
	}
	return before, after
}

// merged adds the keys that a merge of the node sets.
func (f *form) merged(n ast.Node, to map[string]bool) {
	switch v := n.(type) {
	case *ast.AnchorNode:
		f.merged(v.Value, to)
	case *ast.AliasNode:
		if known, ok := f.anchors[v.Value.String()]; ok {
			delete(f.anchors, v.Value.String()) // one that names itself ends here
			f.merged(known, to)
			f.anchors[v.Value.String()] = known
		}
	case ast.MapNode:
		for entries := v.MapRange(); entries.Next(); {
			if entries.Key().IsMergeKey() {
				f.merged(entries.Value(), to)
			} else {
				to[strictyaml.KeyOf(entries.Key())] = true
			}
		}
	}
}

// isText reports whether the key of a map is read as it is written: 0x10 and 010 are not,
// nor is what has a tag or an anchor.
func isText(key ast.MapKeyNode) bool {
	switch n := key.(type) {
	case *ast.StringNode:
		return true
	case *ast.IntegerNode:
		return wholeNumber.MatchString(n.GetToken().Value)
	}
	return false
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`)

// schemaMerges is about the merges in a schema.
func (f *form) schemaMerges(at string, n ast.Node) {
	strictyaml.Walk(n, func(n ast.Node) {
		if m, ok := n.(*ast.MappingNode); ok {
			before, _ := f.overlaps(m)
			for _, key := range before {
				f.wrong(key, at, "%s is replaced by the merge (<<) after it; put << first", strictyaml.KeyOf(key))
			}
		}
	})
}
