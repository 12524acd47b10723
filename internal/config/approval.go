package config

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// Approval says which calls need approval: all (`true`), none
// (`false`), or those for which a condition holds (`{when: CONDITION}`). The
// zero value says nothing.
type Approval struct {
	Kind ApprovalKind
	When string // with ApprovalWhen
}

// ApprovalKind is one of the forms of an [Approval]; the empty one says nothing.
type ApprovalKind string

// The forms of an [Approval].
const (
	ApprovalAll  ApprovalKind = "true"
	ApprovalNone ApprovalKind = "false"
	ApprovalWhen ApprovalKind = "when"
)

// condition is the written form of a condition.
type condition struct {
	When string `yaml:"when"`
}

// UnmarshalYAML reads one of the three forms. What is none of them the [form]
// has said.
func (a *Approval) UnmarshalYAML(decode func(any) error) error {
	var all bool
	if decode(&all) == nil {
		*a = Approval{Kind: ApprovalNone}
		if all {
			a.Kind = ApprovalAll
		}
		return nil
	}
	var c condition
	if decode(&c) == nil {
		*a = Approval{Kind: ApprovalWhen, When: c.When}
	}
	return nil
}

const approvalForms = "true, false or {when: CONDITION}"

// approval compares a node with the forms that an approval may have.
func (f *form) approval(at string, n ast.Node) {
	switch n.(type) {
	case *ast.BoolNode:
	case ast.MapNode:
		f.mapping(at, n, reflect.TypeFor[condition]())
	default:
		f.wrong(n, at, "must be %s", approvalForms)
	}
}
