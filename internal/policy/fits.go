package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/countersign/countersign/internal/approvals"
)

// errSchema is a schema by which nothing can be judged.
var errSchema = errors.New("its schema cannot be read")

// misfits says what is wrong with the arguments of a call by the schema of its
// tool, as the tool itself would before the policy is asked. It quotes names of
// arguments and words of the schema, never a value. Without a schema it says
// nothing.
func (t *tool) misfits(args json.RawMessage) ([]string, error) {
	if len(t.Schema) == 0 {
		return nil, nil
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if wrong := unreadable(args); wrong != "" {
		return []string{wrong}, nil
	}
	schema, err := compileSchema(t.Schema)
	if err != nil {
		return nil, errSchema
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err) // unreachable: they are JSON
	}
	wrong, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(instance))
	if !ok {
		return nil, nil
	}
	all := violations(wrong)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// unreadable says why nobody could be asked about such arguments.
func unreadable(args json.RawMessage) string {
	if err := approvals.CheckArgs(args); err != nil {
		return err.Error()
	}
	return ""
}

// compileSchema reads a schema that refers to nothing outside itself.
func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothingElse{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

type nothingElse struct{}

func (nothingElse) Load(string) (any, error) { return nil, errSchema }

var english = message.NewPrinter(language.English)

// violations are the innermost ones, each with the place of its argument.
func violations(e *jsonschema.ValidationError) []string {
	var all []string
	for _, cause := range e.Causes {
		all = append(all, violations(cause)...)
	}
	if len(e.Causes) > 0 {
		return all
	}
	at := argument(e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, at+argument(name)[len("args"):]+" is missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			all = append(all, "there is no "+at+argument(name)[len("args"):])
		}
	case *kind.Type, *kind.Enum, *kind.Const:
		all = append(all, at+": "+e.ErrorKind.LocalizedString(english))
	default: // their words may quote the value
		keyword := e.ErrorKind.KeywordPath()
		all = append(all, at+": not what the schema says under "+cmp.Or(strings.Join(keyword, "/"), "its keywords"))
	}
	return all
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	anIndex   = regexp.MustCompile(`^[0-9]+$`)
)

// argument is a place in the arguments, as a condition would write it.
func argument(keys ...string) string {
	at := []string{"args"}
	for _, k := range keys {
		switch {
		case plainName.MatchString(k):
			at = append(at, "."+k)
		case anIndex.MatchString(k):
			at = append(at, "["+k+"]")
		default:
			at = append(at, fmt.Sprintf("[%q]", k))
		}
	}
	return strings.Join(at, "")
}
