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
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// A Schema judges arguments. Numbers are judged by their digits, never as
// floating point: a bound of 2^53 is not passed by 2^53+1.
type Schema struct {
	compiled *jsonschema.Schema
	meter    *meter
}

// Compile reads a schema. One that refers to anything outside itself is
// refused: nothing is loaded. So is one with a number whose exponent is beyond
// [maxExponent].
func Compile(schema json.RawMessage) (Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return Schema{}, fmt.Errorf("the schema is not JSON: %w", err)
	}
	if far := farNumbers(doc, nil); len(far) > 0 {
		return Schema{}, fmt.Errorf("the schema has a number that %s", far[0].Words)
	}
	// With a vocabulary of ours, the library checks only the outermost part of a schema.
	if _, err := compile(doc, jsonschema.NewCompiler()); err != nil {
		return Schema{}, err
	}
	var m meter
	counting := jsonschema.NewCompiler()
	counting.RegisterVocabulary(m.vocabulary())
	counting.AssertVocabs()
	s, err := compile(doc, counting)
	return Schema{s, &m}, err
}

func compile(doc any, c *jsonschema.Compiler) (*jsonschema.Schema, error) {
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return s, nil
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
// only. A number whose exponent is beyond [maxExponent] fits no schema. An error
// means that they could not be judged: they are not JSON, or it is [ErrTooMuch].
func (s Schema) Judge(args json.RawMessage) ([]Violation, error) {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if far := farNumbers(instance, []string{}); len(far) > 0 {
		return far, nil
	}
	err = s.meter.run(instance, func() error { return s.compiled.Validate(instance) })
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

// maxExponent is the largest exponent of a number, in either direction. The library takes
// long for numbers with large ones, and panics from about a million on.
const maxExponent = 1000

// farNumbers returns the numbers of a document whose exponent is beyond [maxExponent].
func farNumbers(v any, at []string) []Violation {
	var all []Violation
	switch v := v.(type) {
	case json.Number:
		i := strings.IndexAny(string(v), "eE")
		if i < 0 {
			break
		}
		if exponent, err := strconv.Atoi(string(v[i+1:])); err != nil || exponent > maxExponent || exponent < -maxExponent {
			all = append(all, Violation{At: at, Keyword: []string{"type"}, Words: "is too large or too small", Discreet: true})
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, farNumbers(v[key], append(slices.Clone(at), key))...)
		}
	case []any:
		for i, e := range v {
			all = append(all, farNumbers(e, append(slices.Clone(at), strconv.Itoa(i)))...)
		}
	}
	return all
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s: only to itself", url)
}
