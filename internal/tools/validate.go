package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/countersign/countersign/internal/agentrun"
)

// A validator judges arguments by a JSON Schema. Numbers are judged by their
// digits, never as floating point: a bound of 2^53 is not passed by 2^53+1.
type validator struct{ schema *jsonschema.Schema }

// newValidator compiles a schema. One that refers to anything outside itself
// is refused: nothing is loaded.
func newValidator(schema json.RawMessage) (validator, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return validator{}, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return validator{}, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return validator{}, fmt.Errorf("compile schema: %w", err)
	}
	return validator{s}, nil
}

// validate returns what is wrong with the arguments in words for the model:
// where, and what. In the tree of the error each wrong argument is an
// [*agentrun.ArgumentError], in words for people.
func (v validator) validate(args json.RawMessage) error {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	err = v.schema.Validate(instance)
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return err
	}
	var lines []string
	var arguments []*agentrun.ArgumentError
	leaves(wrong, func(e *jsonschema.ValidationError) {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		lines = append(lines, at+": "+e.ErrorKind.LocalizedString(english))
		arguments = append(arguments, argumentErrors(e)...)
	})
	sort.Strings(lines)
	sort.Slice(arguments, func(i, j int) bool { return arguments[i].Error() < arguments[j].Error() })
	return &schemaError{"the arguments do not fit the schema: " + strings.Join(lines, "; "), arguments}
}

// A schemaError has words for the model, and what is wrong by argument.
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
func argumentErrors(e *jsonschema.ValidationError) []*agentrun.ArgumentError {
	at := pointer(e.InstanceLocation...)
	var all []*agentrun.ArgumentError
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, &agentrun.ArgumentError{Pointer: at + pointer(name), Message: agentrun.ArgumentMissing})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			all = append(all, &agentrun.ArgumentError{Pointer: at + pointer(name), Message: "there is no such argument"})
		}
	default:
		all = append(all, &agentrun.ArgumentError{Pointer: at, Message: e.ErrorKind.LocalizedString(english)})
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

var english = message.NewPrinter(language.English)

func leaves(e *jsonschema.ValidationError, f func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		f(e)
	}
	for _, cause := range e.Causes {
		leaves(cause, f)
	}
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s: only to itself", url)
}
