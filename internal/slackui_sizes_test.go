package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the packages of slackui may grow to. What needs more is cut where a concept
// shows.
const (
	mostLines   = 3200 // of a package, without tests
	mostMethods = 25   // of a type
	mostReaders = 12   // files that read the payload of a click
)

func TestTheSurfacesOfSlackStaySmall(t *testing.T) {
	lines, methods, readers := map[string]int{}, map[string]int{}, []string{}
	err := filepath.WalkDir("slackui", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == "testdata" {
			return orSkip(err, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		room := filepath.Dir(path)
		lines[room] += set.File(file.Package).LineCount()
		if readsInteraction(file) {
			readers = append(readers, path)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[room+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(lines), 10, "the packages were not found")
	for room, n := range lines {
		require.LessOrEqual(t, n, mostLines, "lines of %s", room)
	}
	for name, n := range methods {
		require.LessOrEqual(t, n, mostMethods, "methods of %s", name)
	}
	require.NotEmpty(t, readers)
	require.LessOrEqual(t, len(readers), mostReaders, "%s", readers)
}

func orSkip(err error, d fs.DirEntry) error {
	if err == nil && d.IsDir() {
		return fs.SkipDir
	}
	return err
}

// readsInteraction reports whether the file names inbound.Interaction.
func readsInteraction(file *ast.File) (names bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := s.X.(*ast.Ident)
		names = names || ok && from.Name == "inbound" && s.Sel.Name == "Interaction"
		return true
	})
	return names
}

// receiver is the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
