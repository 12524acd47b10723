package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// policyForms are the structs in which the policy package declares every key
// that it accepts, by their names.
func policyForms(t *testing.T) map[string]*ast.StructType {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "internal", "policy", "form.go"), nil, 0)
	require.NoError(t, err)
	forms := map[string]*ast.StructType{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				forms[spec.Name.Name] = s
			}
		}
		return true
	})
	return forms
}

// What the documentation calls the forms that occur in several places, and the
// values.
var (
	documentedForms  = map[string]string{"askForm": "ASK", "fromForm": "FROM", "plainQuorum": "QUORUM", "valueForm": "VALUE"}
	documentedValues = map[string]string{"text": "text", "whole": "number", "truth": "true or false", "span": "duration", "free": "any JSON"}
)

// keysOfForm adds the keys of a form with the words for their types.
func keysOfForm(t *testing.T, forms map[string]*ast.StructType, keys map[string]string, at, name string) {
	t.Helper()
	own := map[string]bool{}
	for _, f := range forms[name].Fields.List {
		if f.Tag != nil {
			tag, err := strconv.Unquote(f.Tag.Value)
			require.NoError(t, err)
			own[reflect.StructTag(tag).Get("yaml")] = true
		}
	}
	quorum := name != "plainQuorum" && own["name"] && own["need"] && own["from"] // it may be one, and that is said where it stands
	for _, f := range forms[name].Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		require.NoError(t, err)
		key := reflect.StructTag(tag).Get("yaml")
		if quorum && slices.Contains([]string{"name", "need", "from"}, key) {
			continue
		}
		place := strings.TrimPrefix(at+"."+key, ".")
		of := f.Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		several, isList := of.(*ast.IndexExpr)
		if isList {
			of = several.Index
		}
		inner := of.(*ast.Ident).Name
		isList = isList && several.X.(*ast.Ident).Name == "list"
		switch {
		case isList && documentedValues[inner] != "":
			keys[place] = "list"
			continue
		case isList:
			place += "[]"
		case several != nil:
			place += ".NAME"
		}
		switch {
		case documentedForms[inner] != "":
			keys[place] = documentedForms[inner]
		case documentedValues[inner] != "":
			keys[place] = documentedValues[inner]
		default:
			require.Contains(t, forms, inner, place)
			if inner == "quorumForm" || inner == "optionForm" {
				keys[place] = "QUORUM"
			}
			keysOfForm(t, forms, keys, place, inner)
		}
	}
}

// policyRows are the rows of the table of keys.
func policyRows(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.md"))
	require.NoError(t, err)
	_, table, there := strings.Cut(string(text), "## Every key\n")
	require.True(t, there)
	table, _, _ = strings.Cut(table, "\n## ")
	found := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		require.Len(t, cells, 4, line)
		key := strings.Trim(strings.TrimSpace(cells[0]), "`")
		require.NotContains(t, found, key)
		found[key] = cells[1:]
	}
	return found
}

// Every key that a policy may have is documented with its type, and no other.
func TestTheKeysOfAPolicyAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	keys, forms := map[string]string{}, policyForms(t)
	keysOfForm(t, forms, keys, "", "fileForm")
	for name, word := range documentedForms {
		keysOfForm(t, forms, keys, word, name)
	}
	documented := policyRows(t)
	require.Equal(t, slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(documented)))
	for key, kind := range keys {
		require.Equal(t, kind, documented[key][0], key)
		require.NotEmpty(t, documented[key][1], key)
		require.NotEmpty(t, documented[key][2], key)
	}
	require.Greater(t, len(keys), 50)
}
