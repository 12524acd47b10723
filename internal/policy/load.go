package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads a policy from a file, or from all *.yaml of a directory in the
// order of their names, as one. All problems are reported at once, joined, each
// with its file, line and column, its place, what is wrong, and often a hint.
func Load(path string, o Options) (*Policy, error) {
	files, err := read(path)
	if err != nil {
		return nil, err
	}
	return compile(files, o)
}

// Parse reads a policy from memory, as one file of that name.
func Parse(name string, src []byte, o Options) (*Policy, error) {
	return compile([]source{{name, filepath.Base(name), src}}, o)
}

func read(path string) ([]source, error) {
	is, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	if !is.IsDir() {
		f, err := readFile(path)
		return []source{f}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var files []source
	var problems []error
	for _, e := range entries { // in the order of their names
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case strings.EqualFold(filepath.Ext(name), ".yml"), filepath.Ext(name) != ".yaml" && strings.EqualFold(filepath.Ext(name), ".yaml"):
			problems = append(problems, fmt.Errorf("%s: is not read: only files that end in .yaml are; rename it", filepath.Join(path, name)))
		case filepath.Ext(name) == ".yaml":
			f, err := readFile(filepath.Join(path, name))
			problems = append(problems, err)
			files = append(files, f)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: holds no file that ends in .yaml", path)
	}
	return slices.Clip(files), nil
}

func readFile(path string) (source, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return source{}, fmt.Errorf("read the policy: %w", err)
	}
	return source{path, filepath.Base(path), b}, nil
}
