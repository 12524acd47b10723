package summary

import (
	"maps"
	"slices"
	"strings"
)

// kinds are types of arguments, one bit each.
type kinds int

const (
	kindText kinds = 1 << iota
	kindInteger
	kindNumber
	kindTruth
	kindList
	kindObject
	kindNull

	kindScalar = kindText | kindInteger | kindNumber
)

// String lists the kinds in the words of errors.
func (k kinds) String() string {
	var all []string
	for _, one := range []struct {
		kind kinds
		name string
	}{
		{kindText, "a text"},
		{kindInteger, "a whole number"},
		{kindNumber, "a number"},
		{kindTruth, "true or false"},
		{kindList, "a list"},
		{kindObject, "an object"},
		{kindNull, "null"},
	} {
		if k&one.kind != 0 {
			all = append(all, one.name)
		}
	}
	return strings.Join(all, " or ")
}

// A function is one of the closed set.
type function struct {
	name   string
	fits   kinds         // of the argument that it shows
	takes  []operandKind // after the argument
	needed int           // so many of them
	many   bool          // it takes more arguments instead
	bare   bool          // it says itself what is shown where nothing is given, so there is no or
	write  string        // how it is written
	render func(c call) (string, bool)
}

// show is what a placeholder does without a function.
var show = function{fits: kindScalar, write: "{args.path}", render: call.show}

// functions are the closed set, by name. The package comment describes them.
var functions = map[string]function{}

func init() {
	for _, f := range []function{
		{name: "money", fits: kindInteger, takes: []operandKind{operandText}, needed: 1, write: `{money args.cents "EUR"}`, render: call.money},
		{name: "amount", fits: kindScalar, takes: []operandKind{operandText}, needed: 1, write: `{amount args.total "EUR"}`, render: call.amount},
		{name: "count", fits: kindList | kindObject | kindInteger, takes: []operandKind{operandText, operandText}, needed: 1, write: `{count args.files "file" "files"}`, render: call.count},
		{name: "list", fits: kindList, takes: []operandKind{operandNumber}, write: `{list args.hosts 5}`, render: call.list},
		{name: "short", fits: kindText, takes: []operandKind{operandNumber}, needed: 1, write: `{short args.note 40}`, render: call.short},
		{name: "date", fits: kindText, write: `{date args.day}`, render: call.date},
		{name: "time", fits: kindText, write: `{time args.at}`, render: call.time},
		{name: "bytes", fits: kindInteger | kindText, write: `{bytes args.size}`, render: call.bytes},
		{name: "if", fits: kindScalar | kindTruth | kindList | kindObject, takes: []operandKind{operandText, operandText}, needed: 1, bare: true, write: `{if args.force "by force" "gently"}`, render: call.choose},
		{name: "fields", fits: kindScalar | kindTruth | kindList, many: true, bare: true, write: `{fields args.service args.force}`, render: call.fields},
	} {
		functions[f.name] = f
	}
}

func functionNames() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }

// complete says what is wrong with the operands of a placeholder.
func (e *expr) complete(open int) error {
	f := e.fn
	if len(e.args) == 0 || e.args[0].kind != operandPath {
		if f.name == "" {
			return wrongAt(open, "the placeholder names no argument; write %s, or {{ for a literal brace", f.write)
		}
		return wrongAt(open, "%s needs an argument; write %s", f.name, f.write)
	}
	if e.or != nil && f.bare {
		return wrongAt(open, "%s does not take or; write %s", f.name, f.write)
	}
	for i, a := range e.args[1:] {
		switch {
		case f.many && a.kind == operandPath:
		case f.many || i >= len(f.takes):
			return wrongAt(a.at, "is not expected here; write %s", f.write)
		case a.kind == f.takes[i]:
		case f.currency() && a.kind == operandPath:
		default:
			return wrongAt(a.at, "must be %s; write %s", operandWords[f.takes[i]], f.write)
		}
	}
	if len(e.args)-1 < f.needed {
		return wrongAt(open, "%s needs another value; write %s", f.name, f.write)
	}
	for i, a := range e.args {
		if a.kind == operandPath && a.path.each() && (f.name != "list" || i > 0) {
			return wrongAt(a.at, "[] is for list only; write {list args.recipients[].email}")
		}
	}
	if c := e.args[len(e.args)-1]; f.currency() && c.kind == operandText {
		if _, known := minorUnits(c.text); !known {
			return wrongAt(c.at, "%q is not an ISO 4217 currency code such as EUR", c.text)
		}
	}
	return nil
}

// currency reports whether the function takes a currency: a text, or an argument
// that holds one.
func (f function) currency() bool { return f.name == "money" || f.name == "amount" }
