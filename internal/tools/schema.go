package tools

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf derives the schema of In, and the JSON pointers of its fields that
// carry the tag `countersign:"writeOnly"`.
func schemaOf[In any]() (*jsonschema.Schema, []string, error) {
	typ := reflect.TypeFor[In]()
	if typ.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("arguments are a struct, not %s", typ)
	}
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, nil, fmt.Errorf("derive schema: %w", err)
	}
	if schema.Properties == nil {
		// A function's parameters need the key, even with nothing in it.
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	var hidden []string
	if err := markWriteOnly(typ, schema, "", &hidden); err != nil {
		return nil, nil, err
	}
	return schema, hidden, nil
}

// markWriteOnly walks the struct beside its schema. A tag that it could not
// honor is an error: a secret would be shown.
func markWriteOnly(typ reflect.Type, schema *jsonschema.Schema, at string, hidden *[]string) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		if taggedInside(typ, map[reflect.Type]bool{}) {
			return fmt.Errorf("%s: a writeOnly field inside a list or map cannot be hidden; tag the list or map itself", at)
		}
		return nil
	}
	for f := range typ.Fields() {
		if err := markField(f, schema, at, hidden); err != nil {
			return err
		}
	}
	return nil
}

func markField(f reflect.StructField, schema *jsonschema.Schema, at string, hidden *[]string) error {
	tag, tagged := f.Tag.Lookup("countersign")
	if tagged && tag != "writeOnly" {
		return fmt.Errorf("field %s: the tag countersign:%q is not known, only \"writeOnly\" is", f.Name, tag)
	}
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if f.Anonymous && key == "" {
		return markWriteOnly(f.Type, schema, at, hidden)
	}
	if key == "-" || !f.IsExported() {
		if tagged {
			return errors.New("field " + f.Name + ": a writeOnly field must be an argument")
		}
		return nil
	}
	if key == "" {
		key = f.Name
	}
	property := schema.Properties[key]
	place := at + pointer(key)
	if !tagged {
		if property == nil {
			return nil
		}
		return markWriteOnly(f.Type, property, place, hidden)
	}
	if property == nil {
		return fmt.Errorf("field %s: not in the schema, so it cannot be hidden", f.Name)
	}
	property.WriteOnly = true
	*hidden = append(*hidden, place)
	return nil
}

func taggedInside(typ reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[typ] {
		return false
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return taggedInside(typ.Elem(), seen)
	case reflect.Struct:
		for f := range typ.Fields() {
			if _, tagged := f.Tag.Lookup("countersign"); tagged || taggedInside(f.Type, seen) {
				return true
			}
		}
	default: // nothing inside
	}
	return false
}
