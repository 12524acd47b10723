package tools

import (
	"encoding/json"
	"sort"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/argschema"
)

// Validate returns what is wrong with the arguments in words for the model:
// where, and what. In the tree of the error each wrong argument is an
// [*agentrun.ArgumentError], in words for people.
func Validate(schema argschema.Schema, args json.RawMessage) error {
	wrong, err := schema.Judge(args)
	if err != nil || len(wrong) == 0 {
		return err
	}
	var lines []string
	var arguments []*agentrun.ArgumentError
	for _, v := range wrong {
		lines = append(lines, "/"+strings.Join(v.At, "/")+": "+v.Words)
		arguments = append(arguments, argumentErrors(v)...)
	}
	sort.Strings(lines)
	sort.Slice(arguments, func(i, j int) bool { return arguments[i].Error() < arguments[j].Error() })
	return &schemaError{"the arguments do not fit the schema: " + strings.Join(lines, "; "), arguments}
}

// A schemaError has a message for the model, and the problems by argument.
type schemaError struct {
	words     string
	arguments []*agentrun.ArgumentError
}

func (e *schemaError) Error() string { return e.words }

func (e *schemaError) Unwrap() []error {
	all := make([]error, len(e.arguments))
	for i, a := range e.arguments {
		all[i] = a
	}
	return all
}

// argumentErrors says which arguments a violation is about: the schema finds
// what is missing, or is too much, in the object around it.
func argumentErrors(v argschema.Violation) []*agentrun.ArgumentError {
	at := pointer(v.At...)
	var all []*agentrun.ArgumentError
	switch {
	case v.Missing != nil:
		for _, name := range v.Missing {
			all = append(all, &agentrun.ArgumentError{Pointer: at + pointer(name), Message: agentrun.ArgumentMissing})
		}
	case v.Unknown != nil:
		for _, name := range v.Unknown {
			all = append(all, &agentrun.ArgumentError{Pointer: at + pointer(name), Message: "there is no such argument"})
		}
	default:
		all = append(all, &agentrun.ArgumentError{Pointer: at, Message: v.Words})
	}
	return all
}

// pointer is the JSON pointer (RFC 6901) along these keys.
func pointer(keys ...string) string {
	var s strings.Builder
	for _, k := range keys {
		s.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k))
	}
	return s.String()
}
