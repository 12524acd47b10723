package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/countersign/countersign/internal/strictyaml"
)

// Read reads the file, or returns everything that is wrong with its form,
// each with its line. A path that is not absolute is beside the file. With an
// error, the configuration holds what could be understood.
func Read(path string) (Config, error) {
	b, err := strictyaml.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	c, problems := Decode(b)
	for i, p := range problems {
		problems[i] = fmt.Errorf("%s: %w", path, p)
	}
	beside := func(p *string) {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	c.file = path
	beside(&c.Policy)
	beside(&c.Receipts.KeyFile)
	beside(&c.Receipts.OldKeys)
	beside(&c.MCPLock)
	beside(&c.Redis.TLS.CAFile)
	beside(&c.Redis.TLS.CertFile)
	beside(&c.Redis.TLS.KeyFile)
	for i := range c.Agents {
		beside(&c.Agents[i].Files)
		besideCommands(beside, c.Agents[i].MCP)
	}
	for i := range c.Gateways {
		besideCommands(beside, c.Gateways[i].MCP)
		for j := range c.Gateways[i].Clients {
			client := &c.Gateways[i].Clients[j]
			beside(&client.TokensFile)
			if client.JWT != nil && !isURL(client.JWT.Keys) {
				beside(&client.JWT.Keys)
			}
		}
	}
	for i := range c.RemoteAgents {
		beside(&c.RemoteAgents[i].TokensFile)
		if j := c.RemoteAgents[i].JWT; j != nil && !isURL(j.Keys) {
			beside(&j.Keys)
		}
	}
	for i := range c.Web.People {
		beside(&c.Web.People[i].TokensFile)
	}
	for i := range c.Web.Issuers {
		if s := &c.Web.Issuers[i]; !isURL(s.Keys) {
			beside(&s.Keys)
		}
	}
	return c, errors.Join(problems...)
}

// besideCommands moves the programs of MCP servers that are named by a path.
func besideCommands(beside func(*string), servers map[string]MCPServer) {
	for name, m := range servers {
		if strings.ContainsRune(m.Command, filepath.Separator) {
			beside(&m.Command)
			servers[name] = m
		}
	}
}

// Decode reads the text of a configuration file as [Read] does.
func Decode(b []byte) (Config, []error) {
	b = strictyaml.WithoutMark(b)
	if isUTF16(b) {
		return Config{}, []error{errors.New("the file is UTF-16; save it as UTF-8")}
	}
	if at := loneReturn.FindIndex(b); at != nil {
		before := b[:at[0]]
		line, column := 1+bytes.Count(before, []byte("\n")), at[0]-bytes.LastIndexByte(before, '\n')
		return Config{}, []error{fmt.Errorf("[%d:%d] contains a carriage return without a line feed; save the file with the line ends of one system", line, column)}
	}
	root, err := strictyaml.Open(b)
	switch {
	case errors.Is(err, strictyaml.ErrEmpty), errors.Is(err, strictyaml.ErrSeveral), errors.Is(err, strictyaml.ErrDirective):
		return Config{}, []error{err}
	case err != nil:
		return Config{}, []error{plainly(err)}
	}
	f := form{anchors: strictyaml.Anchors(root), templates: map[string]string{}}
	f.walk("", root, reflect.TypeFor[Config]())
	var c Config
	if err := unmarshal(b, &c); err != nil && len(f.problems) == 0 {
		f.problems = append(f.problems, plainly(err)) // the form is not as strict as the decoder
	}
	for _, a := range c.withTools() {
		for name := range a.Tools {
			if at, ok := f.templates[summaryPlace(a.at, name)]; ok {
				if c.summariesAt == nil {
					c.summariesAt = map[[2]string]string{}
				}
				c.summariesAt[[2]string{a.Name, name}] = at
			}
		}
	}
	return c, f.problems
}

// isUTF16 reports whether the text begins with the mark of UTF-16 or with an ASCII
// character in it.
func isUTF16(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	return len(b) > 1 && (b[0] == 0) != (b[1] == 0)
}

// unmarshal fills c with what can be decoded. The decoder panics at some files that a
// [form] finds wrong, such as one with a tag instead of a list, and a file that is read
// again must not end the program.
func unmarshal(b []byte, c *Config) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file cannot be decoded: %v", v)
		}
	}()
	return yaml.Unmarshal(b, c)
}

// ofProgram are the places of the arguments of programs, which may be empty.
var ofProgram = regexp.MustCompile(`\.mcp\.[^.]*\.args\[\d+\]$`)

// loneReturn ends a line for the parser, and in few editors.
var loneReturn = regexp.MustCompile(`\r([^\n]|$)`)

func plainly(err error) error {
	return errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
}

// A form compares a document with the type it is decoded into. A decoder stops
// at the first thing that is wrong, rounds numbers and takes a key without a
// value for one that is not there; a form does not.
type form struct {
	anchors   map[string]ast.Node
	templates map[string]string // where they are written, by their place
	problems  []error
}

func (f *form) wrong(n ast.Node, at, format string, args ...any) {
	place := n.GetToken().Position
	f.problems = append(f.problems, fmt.Errorf("[%d:%d] %s: %s", place.Line, place.Column, at, fmt.Sprintf(format, args...)))
}

func (f *form) walk(at string, n ast.Node, t reflect.Type) {
	switch v := n.(type) {
	case *ast.AnchorNode:
		f.walk(at, v.Value, t)
		return
	case *ast.AliasNode:
		if known, ok := f.anchors[v.Value.String()]; ok {
			delete(f.anchors, v.Value.String()) // one that names itself ends here
			f.walk(at, known, t)
			f.anchors[v.Value.String()] = known
			return
		}
		f.wrong(n, at, "*%s refers to an anchor that does not exist", v.Value)
		return
	case *ast.NullNode:
		f.wrong(n, orTop(at), "has no value; set one or remove the key")
		return
	}
	switch t {
	case reflect.TypeFor[Approval]():
		f.approval(at, n)
		return
	case reflect.TypeFor[Schema]():
		f.schema(at, n)
		return
	case reflect.TypeFor[Template]():
		f.template(at, n)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if e := t.Elem().Kind(); e == reflect.Int || e == reflect.Int64 {
			f.value(at, n, t.Elem()) // 0 differs from a missing key
			return
		}
		f.walk(at, n, t.Elem())
	case reflect.Struct, reflect.Map:
		f.mapping(at, n, t)
	case reflect.Slice:
		f.sequence(at, n, t)
	default:
		if f.value(at, n, t) && isZero(n, t) {
			f.wrong(n, at, "must be more than 0; without the key, the default applies")
		}
	}
}

// value reports whether the node can be a value of the type.
func (f *form) value(at string, n ast.Node, t reflect.Type) bool {
	text, _, isText := strictyaml.Words(n)
	if want := unlike(n, t); want != "" {
		f.wrong(n, at, "must be %s", want)
		return false
	}
	if isText && strings.TrimSpace(text) == "" && !ofProgram.MatchString(at) {
		f.wrong(n, at, "is empty; fill it in or remove the key")
		return false
	}
	return true
}

// isZero reports whether the node is 0, which the decoder cannot tell from a key that is
// missing. A limit of 0 would be the default limit.
func isZero(n ast.Node, t reflect.Type) bool {
	if t == reflect.TypeFor[time.Duration]() {
		text, _, _ := strictyaml.Words(n)
		d, err := time.ParseDuration(text)
		return err == nil && d == 0
	}
	whole, ok := n.(*ast.IntegerNode)
	return ok && t.Kind() == reflect.Int && fmt.Sprint(whole.Value) == "0"
}

func (f *form) mapping(at string, n ast.Node, t reflect.Type) {
	m, ok := n.(ast.MapNode)
	if !ok {
		f.wrong(n, orTop(at), "must be a mapping of keys to values")
		return
	}
	before, after := f.overlaps(m)
	for _, key := range before {
		if t.Kind() == reflect.Map {
			f.wrong(key, at+"."+strictyaml.KeyOf(key), "is replaced by the merge (<<) after it; put << first")
		}
	}
	if t.Kind() == reflect.Struct {
		for _, key := range slices.Concat(before, after) {
			f.wrong(key, strings.TrimPrefix(at+"."+strictyaml.KeyOf(key), "."), "is set here and by the merge (<<); keep one of them")
		}
	}
	empty := true
	for entries := m.MapRange(); entries.Next(); empty = false {
		key, value := entries.Key(), entries.Value()
		if key.IsMergeKey() {
			f.walk(at, value, t)
			continue
		}
		name := strictyaml.KeyOf(key)
		place := strings.TrimPrefix(at+"."+name, ".")
		if t.Kind() == reflect.Map {
			if !isText(key) {
				f.wrong(key, place, "the key is not text; put it in quotes")
			} else if strings.TrimSpace(name) == "" {
				f.wrong(key, place, "the key is empty")
			}
			f.walk(place, value, t.Elem())
			continue
		}
		field, ok := strictyaml.Field(t, name)
		if !ok {
			f.wrong(key, place, "there is no such key; the keys here are %s", strings.Join(strictyaml.Keys(t), ", "))
			continue
		}
		f.walk(place, value, field.Type)
	}
	if empty {
		f.wrong(n, orTop(at), "is empty; fill it in or remove the key")
	}
}

func (f *form) sequence(at string, n ast.Node, t reflect.Type) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		f.wrong(n, at, "must be a list")
		return
	}
	if len(s.Values) == 0 {
		f.wrong(n, at, "is an empty list; fill it in or remove the key")
	}
	for i, v := range s.Values {
		f.walk(fmt.Sprintf("%s[%d]", at, i), v, t.Elem())
	}
}

// unlike returns what the node must be and is not.
func unlike(n ast.Node, t reflect.Type) string {
	text, _, isText := strictyaml.Words(n)
	switch {
	case t == reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(text); err != nil {
			return "a duration with its unit, such as 30s, 5m or 24h"
		}
	case t.Kind() == reflect.Int:
		if whole, ok := n.(*ast.IntegerNode); !ok {
			return "a whole number"
		} else if !strictyaml.IsPlain(whole) {
			return "a whole number in decimal, without a leading 0"
		}
	case t.Kind() == reflect.Bool && n.Type() != ast.BoolType:
		return "true or false"
	case t.Kind() == reflect.String && !isText:
		return strictyaml.NotText(n)
	}
	return ""
}

func orTop(at string) string {
	if at == "" {
		return "the file"
	}
	return at
}
