package internal_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const slackui = module + "internal/slackui"

// TestOnlyAReaderLoadsArguments: no package of slackui gets at the arguments of
// a call but through [directory.Reader], so none can draw them for somebody who
// may not read them.
func TestOnlyAReaderLoadsArguments(t *testing.T) {
	packages, read := slackuiPackages(t)
	require.Greater(t, len(packages), 10, "the packages were not listed")
	readers := 0
	for _, p := range packages {
		info := read(p)
		for at, used := range info.Uses {
			f, ok := used.(*types.Func)
			if !ok || !returnsArguments(f) {
				continue
			}
			switch {
			case isReader(f):
				readers++
			case p.ImportPath == slackui+"/directory":
			case isSlackui(f) && !ofInterface(f): // its own body is looked at
			default:
				t.Errorf("%s uses %s, which returns arguments: take a directory.Reader", at.Name, f.FullName())
			}
		}
		if p.ImportPath != slackui+"/directory" {
			continue
		}
		for at, declared := range info.Defs {
			f, ok := declared.(*types.Func)
			if ok && f.Exported() && returnsArguments(f) && !isReader(f) && !ofInterface(f) {
				t.Errorf("%s of the directory returns arguments to everybody", at.Name)
			}
		}
	}
	require.Greater(t, readers, 5, "the uses of a Reader were not seen")
}

// A listed package is what go list says of one.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// slackuiPackages returns the packages of slackui and what checks the types of one.
func slackuiPackages(t *testing.T) ([]listed, func(listed) types.Info) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", slackui+"/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // which the image compiles too
	out, err := list.Output()
	require.NoError(t, err)
	var ours []listed
	exports := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, slackui) {
			ours = append(ours, p)
		}
	}
	files := token.NewFileSet()
	from := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return ours, func(p listed) types.Info {
		t.Helper()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			parsed = append(parsed, f)
		}
		info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		_, err := (&types.Config{Importer: from}).Check(p.ImportPath, files, parsed, &info)
		require.NoError(t, err)
		return info
	}
}

// returnsArguments reports whether a result of f holds a call with its arguments,
// or is the arguments.
func returnsArguments(f *types.Func) bool {
	results := f.Signature().Results()
	for result := range results.Variables() {
		of := result.Type()
		if of.String() == "encoding/json.RawMessage" || holdsArguments(of, map[types.Type]bool{}) {
			return true
		}
	}
	return false
}

func holdsArguments(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return t.String() == module+"internal/approvals.ToolCall" || holdsArguments(t.Underlying(), seen)
	case *types.Struct:
		for field := range t.Fields() {
			if holdsArguments(field.Type(), seen) {
				return true
			}
		}
	case interface{ Elem() types.Type }:
		return holdsArguments(t.Elem(), seen)
	}
	return false
}

func isReader(f *types.Func) bool {
	recv := f.Signature().Recv()
	return recv != nil && recv.Type().String() == slackui+"/directory.Reader"
}

func isSlackui(f *types.Func) bool {
	return strings.HasPrefix(f.Pkg().Path(), slackui) && f.Pkg().Path() != slackui+"/directory"
}

func ofInterface(f *types.Func) bool {
	recv := f.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}
