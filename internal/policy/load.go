package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/strictyaml"
)

// Load reads a policy from a file, or from all *.yaml of a directory in the
// order of their names, as one. Folders and other names of YAML or JSON in the
// directory are refused; what begins with a dot, and files that could be no part
// of a policy, are left alone. All problems are reported at once, joined, each
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
		at := filepath.Join(path, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue // Kubernetes mounts a ConfigMap with links and folders of such names
		}
		info, err := os.Stat(at)
		switch ext := strings.ToLower(filepath.Ext(at)); {
		case err != nil:
			problems = append(problems, fmt.Errorf("read the policy: %w", err))
		case info.IsDir():
			problems = append(problems, fmt.Errorf("%s: is a folder, and subfolders are not read; move its files up, or move the folder elsewhere", at))
		case filepath.Ext(at) != ".yaml" && slices.Contains([]string{".yaml", ".yml", ".json"}, ext):
			problems = append(problems, fmt.Errorf("%s: is not read; rename it to .yaml, or move it elsewhere", at))
		case ext != ".yaml":
		case !info.Mode().IsRegular():
			problems = append(problems, fmt.Errorf("%s: is not a regular file", at))
		default:
			f, err := readFile(at)
			problems = append(problems, err)
			files = append(files, f)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: contains no .yaml file", path)
	}
	return slices.Clip(files), nil
}

func readFile(path string) (source, error) {
	b, err := strictyaml.ReadFile(path)
	if err != nil {
		return source{}, fmt.Errorf("read the policy: %w", err)
	}
	return source{path, filepath.Base(path), b}, nil
}
