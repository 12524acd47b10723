package main

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// approvalConfig says which calls need a signature: all (`true`), none
// (`false`), or those for which a condition holds (`{when: CONDITION}`). The
// zero value says nothing.
type approvalConfig struct {
	Kind approvalKind
	When string // with approvalWhen
}

type approvalKind string

const (
	approvalAll  approvalKind = "true"
	approvalNone approvalKind = "false"
	approvalWhen approvalKind = "when"
)

// conditionConfig is the written form of a condition.
type conditionConfig struct {
	When string `yaml:"when"`
}

// UnmarshalYAML reads one of the three forms. What is none of them the [form]
// has said.
func (a *approvalConfig) UnmarshalYAML(decode func(any) error) error { //nolint:unparam // as the decoder wants it
	var all bool
	if decode(&all) == nil {
		*a = approvalConfig{Kind: approvalNone}
		if all {
			a.Kind = approvalAll
		}
		return nil
	}
	var c conditionConfig
	if decode(&c) == nil {
		*a = approvalConfig{Kind: approvalWhen, When: c.When}
	}
	return nil
}

const approvalForms = "true, false or {when: CONDITION}"

// approval compares a node with the forms that an approval may have.
func (f *form) approval(at string, n ast.Node) {
	switch n.(type) {
	case *ast.BoolNode:
	case ast.MapNode:
		f.mapping(at, n, reflect.TypeFor[conditionConfig]())
	default:
		f.wrong(n, at, "must be %s", approvalForms)
	}
}
