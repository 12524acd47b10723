package slackui_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const wordsTable = "testdata/words.txt"

// A phrase is a text in the source code that a person may read.
type phrase struct {
	room string // the package below internal/slackui; empty: slackui itself
	file string
	text string
	// internal is the text of an error or of a log record, which people in Slack
	// never see.
	internal bool
}

// TestEveryTextStandsInTheTable writes all texts of the packages into one file,
// so that a reader can go through them, and a change of one shows as a diff.
func TestEveryTextStandsInTheTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("Every text of internal/slackui, by package and file. Written by the tests with -update.\n")
	b.WriteString("People read the lines with quotes in Slack; the lines after a # are errors and log records.\n")
	at := ""
	for _, p := range phrases(t) {
		if here := filepath.Join(p.room, p.file); here != at {
			fmt.Fprintf(&b, "\n== %s\n", here)
			at = here
		}
		if p.internal {
			b.WriteString("# ")
		}
		b.WriteString(strconv.Quote(p.text) + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(wordsTable, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(wordsTable)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run the test with -update and read the diff")
}

// plain are the packages whose texts keep to the words of the product.
var plain = []string{"", "blockkit", "bulk", "card", "chats", "command", "delivery", "directory", "form", "home", "inbound", "interact", "reply", "respond", "toolcards", "verdict"}

// avoided are words that the product does not use for people, and what it says
// in their place.
var avoided = map[string]string{
	`sign|signs|signed|signing|signature|signatures|signers?`: "approve, approval, approver",
	`goes on|go on`:                          "continues",
	`somebody|everybody|nobody else|anybody`: "someone, everyone, no one else, anyone",
	`settled?|settles`:                       "decided",
	`any ?more`:                              "no longer",
	`is told|are told|was told`:              "is notified, gets a message",
	`stands? in for themselves`:              "You can't delegate to yourself",
	`in (the|your|their) place( of)?`:        "for",
	`whoever`:                                "the person who, the requester",
	`cannot|could not|does not|do not|did not|is not|are not|was not|were not|will not`: "the contraction",
}

// excused are texts that may have such a word, and why.
var excused = map[string]string{
	"the signing secret":                 "Slack's name of a setting",
	"X-Slack-Signature":                  "a header of Slack's",
	"arguments that do not fit the tool": "a log record",
	"told the person why not":            "an error",
}

func TestTextsKeepToTheWordsOfTheProduct(t *testing.T) {
	for _, p := range phrases(t) {
		if p.internal || !slices.Contains(plain, p.room) || excused[p.text] != "" {
			continue
		}
		for words, better := range avoided {
			bad := regexp.MustCompile(`(?i)\b(` + words + `)\b`).FindString(p.text)
			if bad != "" {
				t.Errorf("%s/%s: %q says %q: say %s", p.room, p.file, p.text, bad, better)
			}
		}
	}
}

// inOnePlace are the packages whose sentences stand in one file, and which.
var inOnePlace = map[string]string{
	"bulk": "words.go", "card": "words.go", "chats": "words.go", "verdict": "words.go", "command": "words.go", "delivery": "words.go",
	"form": "words.go", "interact": "words.go", "reply": "words.go", "respond": "explain.go", "toolcards": "words.go",
}

// TestTheSentencesOfASurfaceStandInOneFile: a reader goes through that file
// instead of the code. Parts of a line that are put between names and times may
// stand where the line is built.
func TestTheSentencesOfASurfaceStandInOneFile(t *testing.T) {
	for _, p := range phrases(t) {
		file := inOnePlace[p.room]
		if file == "" || p.internal || p.file == file || p.file == "log.go" || excused[p.text] != "" {
			continue
		}
		if len(oneWord.FindAllString(p.text, -1)) > 3 {
			t.Errorf("%s/%s: %q belongs into %s", p.room, p.file, p.text, file)
		}
	}
}

var oneWord = regexp.MustCompile(`\p{L}[\p{L}'’]+`)

// phrases are the texts of the source files in order. A text that is not one of
// words, such as an id, a name of Slack's or a pattern, is not among them.
func phrases(t *testing.T) []phrase {
	t.Helper()
	var all []phrase
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		v := &textVisitor{room: strings.TrimPrefix(filepath.Dir(path), "."), file: filepath.Base(path)}
		ast.Walk(v, f)
		all = append(all, v.found...)
		return nil
	})
	require.NoError(t, err)
	return all
}

type textVisitor struct {
	room, file string
	internal   bool
	found      []phrase
}

func (v *textVisitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.CaseClause:
		if c, ok := n.(*ast.CaseClause); ok { // what it is compared with is not shown
			for _, s := range c.Body {
				ast.Walk(v, s)
			}
		}
		return nil
	case *ast.Field: // a tag
		return nil
	case *ast.CallExpr:
		switch kind := calls(n); kind {
		case "pattern":
			return nil
		case "internal":
			was := v.internal
			for _, a := range n.Args {
				_, code := a.(*ast.FuncLit) // what it says is not part of the error or record
				v.internal = was || !code
				ast.Walk(v, a)
			}
			v.internal = was
			return nil
		}
	case ast.Expr:
		if text, ok := folded(n); ok {
			if hasWords(text) {
				v.found = append(v.found, phrase{v.room, v.file, text, v.internal})
			}
			return nil
		}
	}
	return v
}

// calls tells calls whose texts people in Slack never see from others.
func calls(c *ast.CallExpr) string {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg := ""
	if x, ok := s.X.(*ast.Ident); ok {
		pkg = x.Name
	}
	switch name := s.Sel.Name; {
	case pkg == "regexp", pkg == "slog":
		return "pattern"
	case pkg == "errors", pkg == "fmt" && name == "Errorf",
		slices.Contains([]string{"InfoContext", "WarnContext", "ErrorContext", "DebugContext", "After"}, name):
		return "internal"
	}
	return ""
}

// folded is the value of texts that are joined with +.
func folded(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, left := folded(e.X)
		y, right := folded(e.Y)
		return x + y, left && right
	}
	return "", false
}

var (
	wordForm  = regexp.MustCompile(`\p{L}{2}`)
	plainName = regexp.MustCompile(`^[a-z0-9_./:-]*$`) // ids, keys, names of Slack's
)

func hasWords(text string) bool { return wordForm.MatchString(text) && !plainName.MatchString(text) }
