package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
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
// where, and what.
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
	leaves(wrong, func(e *jsonschema.ValidationError) {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		lines = append(lines, at+": "+e.ErrorKind.LocalizedString(english))
	})
	sort.Strings(lines)
	return errors.New("the arguments do not fit the schema: " + strings.Join(lines, "; "))
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
