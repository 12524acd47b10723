// Package argschema judges the arguments of a call by the JSON Schema of its
// tool: before anyone is asked to approve, and where a policy gives an example.
// It also says which arguments the schema marks as write-only.
//
// There are two schema libraries, and both stay. google/jsonschema-go derives a
// schema from a Go struct, which santhosh-tekuri/jsonschema cannot; package
// tools uses it for that only. It cannot judge: it holds bounds and values as
// float64, so an amount one above a maximum of 2^53 passes, and what a person
// approves would not be what the schema allows. santhosh-tekuri/jsonschema
// judges numbers by their digits. A test here checks both; when it fails
// because the first library compares numbers exactly, this package can use that
// one alone.
package argschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// A Schema judges arguments. Numbers are judged by their digits, never as
// floating point: a bound of 2^53 is not passed by 2^53+1.
type Schema struct{ compiled *jsonschema.Schema }

// Compile reads a schema. One that refers to anything outside itself is
// refused: nothing is loaded.
func Compile(schema json.RawMessage) (Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return Schema{}, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return Schema{}, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return Schema{}, fmt.Errorf("compile schema: %w", err)
	}
	return Schema{s}, nil
}

// A Violation is one thing that is wrong with arguments.
type Violation struct {
	At      []string // the keys to the value that it is about
	Keyword []string // of the schema
	Missing []string // the keys that the object there lacks
	Unknown []string // the keys that it has and may not have
	Words   string   // what is wrong, in English; it may quote the value unless Discreet
	// Discreet reports whether the words quote no value, only what the schema says.
	Discreet bool
}

// Judge returns what is wrong with the arguments, the innermost violations
// only. An error means that they could not be judged.
func (s Schema) Judge(args json.RawMessage) ([]Violation, error) {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	err = s.compiled.Validate(instance)
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return violations(wrong), nil
	}
	return nil, err
}

var english = message.NewPrinter(language.English)

func violations(e *jsonschema.ValidationError) []Violation {
	if len(e.Causes) > 0 {
		var all []Violation
		for _, cause := range e.Causes {
			all = append(all, violations(cause)...)
		}
		return all
	}
	v := Violation{At: e.InstanceLocation, Keyword: e.ErrorKind.KeywordPath(), Words: e.ErrorKind.LocalizedString(english)}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		v.Missing = k.Missing
	case *kind.AdditionalProperties:
		v.Unknown = k.Properties
	case *kind.Type, *kind.Enum, *kind.Const:
		v.Discreet = true
	}
	return []Violation{v}
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s: only to itself", url)
}
