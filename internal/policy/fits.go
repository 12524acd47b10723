package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/argschema"
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
	schema, err := argschema.Compile(t.Schema)
	if err != nil {
		return nil, errSchema
	}
	wrong, err := schema.Judge(args)
	if err != nil {
		return nil, fmt.Errorf("judge the arguments: %w", err)
	}
	var all []string
	for _, v := range wrong {
		all = append(all, misfit(v)...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// unreadable returns why people cannot be asked about such arguments.
func unreadable(args json.RawMessage) string {
	if err := approvals.CheckArgs(args); err != nil {
		return err.Error()
	}
	return ""
}

// misfit is a violation with the place of its argument.
func misfit(v argschema.Violation) []string {
	at := argument(v.At...)
	var all []string
	switch {
	case v.Missing != nil:
		for _, name := range v.Missing {
			all = append(all, at+argument(name)[len("args"):]+" is missing")
		}
	case v.Unknown != nil:
		for _, name := range v.Unknown {
			all = append(all, "there is no "+at+argument(name)[len("args"):])
		}
	case v.Discreet:
		all = append(all, at+": "+v.Words)
	default: // the words may quote the value
		all = append(all, at+": not what the schema says under "+cmp.Or(strings.Join(v.Keyword, "/"), "its keywords"))
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
