package strictyaml_test

import (
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/strictyaml"
)

func TestOneDocumentIsOpenedWithoutItsMark(t *testing.T) {
	for _, text := range []string{"a: 1\n", "\ufeffa: 1\n", "---\na: 1\n", "a: 1\n---\n"} {
		root, err := strictyaml.Open([]byte(text))
		require.NoError(t, err, "%q", text)
		m, ok := root.(ast.MapNode)
		require.True(t, ok)
		e := m.MapRange()
		require.True(t, e.Next())
		require.Equal(t, "a", strictyaml.KeyOf(e.Key()), "%q", text)
	}
	for text, want := range map[string]error{
		"":                         strictyaml.ErrEmpty,
		"# nothing\n":              strictyaml.ErrEmpty,
		"a: 1\n---\nb: 2\n":        strictyaml.ErrSeveral,
		"%YAML 1.1\n---\na: 1\n":   strictyaml.ErrDirective,
		"# x\n%TAG ! t:\n---\na\n": strictyaml.ErrDirective,
	} {
		_, err := strictyaml.Open([]byte(text))
		require.ErrorIs(t, err, want, "%q", text)
	}
}

func TestAFileWithADirectiveIsToldSo(t *testing.T) {
	var form struct{ strictyaml.Mark }
	var found strictyaml.Problems
	require.False(t, strictyaml.Decode("f.yaml", []byte("%YAML 1.1\n---\n{}\n"), &found, &form))
	require.EqualError(t, found.Err(), "f.yaml:1:1: the file: has a directive, a line that begins with % such as %YAML 1.1; "+
		"remove it, because directives are not supported and the file is read as YAML 1.2")
}

// YAML reads an alias as the last anchor of that name before it. A reader who misses the
// second anchor takes people for approvers who are not.
func TestTwoAnchorsOfOneNameAreRefused(t *testing.T) {
	const text = "first: &who [bob]\nthen: *who\nlast: {of: &who [carol]}\nagain: &who [dave]\n"
	var form struct {
		strictyaml.Mark
		First strictyaml.List[strictyaml.Text] `yaml:"first"`
	}
	var found strictyaml.Problems
	require.False(t, strictyaml.Decode("f.yaml", []byte(text), &found, &form))
	require.EqualError(t, found.Err(), "f.yaml:3:12: the file: the anchor &who is set twice; give each anchor a name of its own")
	_, err := strictyaml.Open([]byte(text))
	require.EqualError(t, err, "[3:12] the anchor &who is set twice; give each anchor a name of its own")
	_, err = strictyaml.Open([]byte("first: &who [bob]\nthen: *who\nagain: *who\nother: &others [carol]\n"))
	require.NoError(t, err)
}

func TestEveryProblemHasItsPlace(t *testing.T) {
	var form struct {
		strictyaml.Mark
		Name strictyaml.Text                    `yaml:"name"`
		Many strictyaml.List[strictyaml.Whole]  `yaml:"many"`
		By   strictyaml.Table[strictyaml.Truth] `yaml:"by"`
	}
	var found strictyaml.Problems
	read := strictyaml.Decode("f.yaml", []byte("name: 5\nmany: [1, 0x2]\nby: {a: true, a: false, b: maybe}\nnames: x\nname: !!str y\n"), &found, &form)
	require.True(t, read)
	require.EqualError(t, found.Err(), `f.yaml:1:7: name: must be text, not a number; put it in quotes
f.yaml:2:11: many[1]: 0x2 is not a plain number; write it in decimal, without a leading 0
f.yaml:3:15: by.a: is set twice
f.yaml:3:28: by.b: must be true or false
f.yaml:4:1: names: there is no such key; did you mean name?
f.yaml:5:1: name: is set twice`)
	require.Equal(t, 1, form.Many.Items[0].Value)
}

// What is no text is told what it is, so that nobody is told of numbers who wrote none.
func TestWhatIsNoTextIsToldWhatToDo(t *testing.T) {
	for written, want := range map[string]string{
		"true":     "must be text; put it in quotes",
		"0x10":     "must be text, not a number; put it in quotes",
		"1.50":     "must be text, not a number; put it in quotes",
		".inf":     "must be text; put it in quotes",
		"[a]":      "must be text, not a list",
		"{args.x}": "must be text, not a mapping; put it in quotes if it begins with a brace",
		"\n  a: b": "must be text, not a mapping",
	} {
		var form struct {
			strictyaml.Mark
			Name strictyaml.Text `yaml:"name"`
		}
		var found strictyaml.Problems
		strictyaml.Decode("f.yaml", []byte("name: "+written+"\n"), &found, &form)
		require.ErrorContains(t, found.Err(), "name: "+want, written)
	}
}
