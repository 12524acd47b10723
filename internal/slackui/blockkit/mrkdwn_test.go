package blockkit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A variable, a typed constant and escaped text are no Mrkdwn, whatever another
// package writes around them. The compiler says so of exactly the lines that
// are marked.
func TestForeignTextDoesNotCompileAsMrkdwn(t *testing.T) {
	const file = "testdata/foreign/foreign.go"
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	want := map[int]string{}
	for i, l := range strings.Split(string(source), "\n") {
		if strings.HasSuffix(l, "// must not compile") {
			want[i+1] = l
		}
	}
	require.Greater(t, len(want), 30)

	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, "./"+filepath.Dir(file))
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // which the image compiles too
	out, err := build.CombinedOutput()
	exit := &exec.ExitError{}
	require.ErrorAs(t, err, &exit, "it compiles")
	for _, m := range regexp.MustCompile(`(?m)^`+file+`:(\d+):.*$`).FindAllStringSubmatch(string(out), -1) {
		line, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.Contains(t, want, line, m[0])
		require.NotContains(t, m[0], "undefined", "nothing else must be wrong with the line")
		want[line] = ""
	}
	for line, source := range want {
		require.Empty(t, source, "line %d compiles\n%s", line, out)
	}
}

// Every format in slackui has as many arguments as it names.
func TestFormatsHaveTheirArguments(t *testing.T) {
	var wrong []string
	formats := 0
	fset := token.NewFileSet()
	files, words := map[string]*ast.File{}, map[string]map[string]ast.Expr{} // words: the constants of each folder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files[path] = f
		if words[filepath.Dir(path)] == nil {
			words[filepath.Dir(path)] = map[string]ast.Expr{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, is := n.(*ast.ValueSpec); is && len(v.Names) == len(v.Values) {
				for i, name := range v.Names {
					words[filepath.Dir(path)][name.Name] = v.Values[i]
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	for path, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !callsOurs(call) {
				return true
			}
			formats++
			if verbs, ok := verbsOf(call.Args[0], words[filepath.Dir(path)]); !ok || verbs != len(call.Args)-1 {
				wrong = append(wrong, fmt.Sprintf("%s: %d for %d", fset.Position(call.Pos()), len(call.Args)-1, verbs))
			}
			return true
		})
	}
	require.Empty(t, wrong, "arguments that do not fit")
	require.Greater(t, formats, 100)
}

func callsOurs(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "Ours"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && x.Name == "blockkit" && f.Sel.Name == "Ours"
	}
	return false
}

var verbForm = regexp.MustCompile(`%(?:\[(\d)\])?(.)`)

// verbsOf returns how many arguments the format uses, with the constants that
// it names.
func verbsOf(format ast.Expr, words map[string]ast.Expr) (used int, ok bool) {
	text := ""
	var read func(n ast.Node) bool
	read = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			s, _ := strconv.Unquote(n.Value)
			text += s
		case *ast.Ident:
			if value := words[n.Name]; value != nil {
				ast.Inspect(value, read)
			}
		}
		return true
	}
	ast.Inspect(format, read)
	next := 0
	for _, m := range verbForm.FindAllStringSubmatch(text, -1) {
		switch {
		case m[2] == "%" && m[1] == "":
			continue
		case m[2] != "s":
			return 0, false
		case m[1] != "":
			next, _ = strconv.Atoi(m[1])
		default:
			next++
		}
		used = max(used, next)
	}
	return used, true
}

func TestMentionsHoldNothingButIDs(t *testing.T) {
	require.Equal(t, "<@U0ANN>", Person("U0ANN").String())
	require.Equal(t, "<!subteam^S0OPS>", Group("S0OPS").String())
	require.Equal(t, "<#C0OPS>", Group("C0OPS").String())
	for _, id := range []string{"", "u0ann", "U0ANN> <!channel", "U0ANN|*all*", "!channel", "U0ANN\n"} {
		require.Equal(t, "someone", Person(id).String(), "%q", id)
		require.Equal(t, "an unknown group", Group(id).String(), "%q", id)
	}
}

func TestCodeWordsHoldNoMarkup(t *testing.T) {
	require.Equal(t, "/countersign-dev_2", CodeWord("/countersign-dev_2").String())
	require.Equal(t, "channelboldx", CodeWord("`<!channel>` *bold*\n\u202e~x~").String())
	require.Equal(t, "0a1b2c…", CodeWord("0a1b2c…").String())
}

func TestOursPutsArgumentsIntoTheFormat(t *testing.T) {
	for want, got := range map[string]Mrkdwn{
		"100% of %s":            Ours("100% of %s"),
		"1 call waits":          Ours("%s %s", Counted(1, "call"), Plural(1, "waits", "wait")),
		"1,200 calls wait":      Ours("%s %s", Counted(1200, "call"), Plural(1200, "waits", "wait")),
		"`/c a`, `/c b`":        Ours("`%[1]s a`, `%[1]s b`", CodeWord("/c")),
		"an unknown time":       When(time.Time{}),
		"a %s, b":               Join([]Mrkdwn{Ours("a %s"), Ours("b")}, ", "),
		"a, b and c":            And([]Mrkdwn{Ours("a"), Ours("b"), Ours("c")}),
		"Two hours":             Ours("two hours").Capitalized(),
		"<@U0ANN> may not sign": Ours("%s may not sign", Person("U0ANN")).Capitalized(),
		"":                      Mrkdwn{}.Capitalized(),
	} {
		require.Equal(t, want, got.String())
	}
	require.True(t, Mrkdwn{}.IsZero())
	require.False(t, Ours("a").IsZero())
}
