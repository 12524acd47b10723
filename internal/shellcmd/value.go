package shellcmd

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Value is what an operand, or the value of a flag, may be: any of what is
// listed. The zero Value permits nothing.
type Value struct {
	Is      []string       // exactly one of these
	Under   []string       // a path that is, or is below, one of these directories
	Matches *regexp.Regexp // a text that matches as a whole; see [Pattern]
}

// Pattern compiles an expression that has to match a text as a whole.
func Pattern(expr string) (*regexp.Regexp, error) { return regexp.Compile(`\A(?:` + expr + `)\z`) }

func (v Value) permits(s string) bool {
	return slices.Contains(v.Is, s) ||
		slices.ContainsFunc(v.Under, func(dir string) bool { return under(dir, s) }) ||
		v.Matches != nil && v.Matches.MatchString(s)
}

// permitsWord is permits of a whole word. One that begins with a dash may be
// read as a flag, so it has to be listed as it is.
func (v Value) permitsWord(w string) bool {
	return slices.Contains(v.Is, w) || !strings.HasPrefix(w, "-") && v.permits(w)
}

// under reports whether a path is a directory, or is below it, by its letters
// alone: it is plain, has no .. and, unless dir is absolute too, is not absolute.
// A * in dir stands for one name. Names that begin with a dot, such as .git and
// .env, match only where dir has them.
func under(dir, path string) bool {
	if !plainPath(path) || strings.HasPrefix(dir, "/") != strings.HasPrefix(path, "/") {
		return false
	}
	of, ok := names(dir)
	parts, clean := names(path)
	if !ok || !clean || len(parts) < len(of) {
		return false
	}
	for i, name := range parts {
		named := i < len(of) && of[i] == name
		if !named && (i < len(of) && of[i] != "*" || isHidden(name)) {
			return false
		}
	}
	return true
}

// isHidden spares the ... in which a package pattern of Go ends.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") && name != "..." }

// plainPath refuses what some programs take for more than a path: a pattern, a
// file that lists others (@), a remote host (:), an assignment (=).
func plainPath(path string) bool {
	for i, r := range path {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '.', r == '_', r == '/':
		case i > 0 && strings.ContainsRune("-+@,", r):
		default:
			return false
		}
	}
	return path != ""
}

// names are the names in a path, unless one of them leads elsewhere. A ./ in
// front and a / at the end are left out.
func names(path string) ([]string, bool) {
	if path == "." || path == "./" || path == "/" {
		return nil, true
	}
	path = strings.TrimSuffix(strings.TrimPrefix(path, "./"), "/")
	all := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, name := range all {
		if name == "" || name == "." || name == ".." {
			return nil, false
		}
	}
	return all, true
}

// IsDirectory reports whether dir can be listed under [Value.Under]: a clean
// path, in which a * may stand for a whole name.
func IsDirectory(dir string) bool {
	parts, ok := names(dir)
	return ok && plainPath(strings.ReplaceAll(dir, "*", "x")) && !slices.ContainsFunc(parts, func(s string) bool {
		return s != "*" && strings.Contains(s, "*")
	})
}
