package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The forms of what docs/architecture.md names: a file, and an identifier of a
// package.
var (
	namedFile  = regexp.MustCompile("`([a-z][\\w/]*\\.(?:go|lua))`")
	namedIdent = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?`")
)

// TestTheArchitectureNamesWhatIsThere: the page names files and identifiers that
// exist, and every package.
func TestTheArchitectureNamesWhatIsThere(t *testing.T) {
	read, err := os.ReadFile(filepath.Join("..", "docs", "architecture.md"))
	require.NoError(t, err)
	page := string(read)

	files := namedFile.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(files), 20, "the files were not found on the page")
	for _, m := range files {
		require.True(t, slices.ContainsFunc([]string{"..", ".", "slackui"}, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m[1])))
			return err == nil
		}), "there is no file %s", m[1])
	}

	declared := declarations(t)
	idents := namedIdent.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(idents), 5, "the identifiers were not found on the page")
	for _, m := range idents {
		name := strings.TrimSuffix(m[1]+"."+m[2]+"."+m[3], ".")
		require.True(t, declared[name], "there is no %s", name)
	}

	for name := range may {
		base := filepath.Base(name)
		if name == "internal" || strings.HasPrefix(name, "internal/slacksim/") {
			continue // the tests of this folder, and the parts of the simulator
		}
		require.Regexp(t, "`(internal/)?([a-z]+/)*"+regexp.QuoteMeta(base)+"`", page, "the page does not name %s", name)
	}
}

// declarations are the exported names of all packages here: package.Name, and
// package.Type.Name for a method or a field.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules") {
			return orSkip(err, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of := file.Name.Name + "."
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					names[of+receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				} else {
					names[of+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						names[of+s.Name.Name] = true
						fields(s, func(field string) { names[of+s.Name.Name+"."+field] = true })
					}
				}
			}
		}
		return nil
	}))
	return names
}

// fields yields the names of the fields of a struct and the methods of an interface.
func fields(s *ast.TypeSpec, yield func(string)) {
	var list *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			yield(n.Name)
		}
	}
}
