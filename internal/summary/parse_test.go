package summary_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/summary"
)

// refund is the schema of a tool that most tests are about.
const refund = `{
	"type": "object", "additionalProperties": false,
	"required": ["customer", "cents", "files", "address", "at", "currency", "lines", "labels", "any"],
	"properties": {
		"customer": {"type": "string"},
		"cents":    {"type": "integer"},
		"total":    {"type": ["number", "null"]},
		"currency": {"enum": ["EUR", "usd"]},
		"color":   {"enum": ["red", "blue"]},
		"force":    {"type": "boolean"},
		"note":     {"anyOf": [{"type": "string"}, {"type": "null"}]},
		"files":    {"type": "array", "items": {"type": "string"}},
		"pair":     {"type": "array", "minItems": 1, "prefixItems": [{"type": "string"}, {"type": "integer"}]},
		"address":  {"$ref": "#/$defs/address"},
		"at":       {"type": "string", "format": "date-time"},
		"lines":    {"type": "array", "items": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}}},
		"labels":   {"type": "object", "additionalProperties": {"type": "string"}},
		"free":     {"type": "object"},
		"any":      {},
		"auth":     {"type": "object", "required": ["user"], "properties": {"user": {"type": "string"}, "token": {"type": "string", "writeOnly": true}}},
		"pin":      {"$ref": "#/$defs/secret"},
		"odd key":  {"type": "string"}
	},
	"$defs": {
		"address": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
		"secret":  {"type": "string", "writeOnly": true}
	}}`

func TestATemplateThatCannotBeReadSaysWhereAndWhatToDo(t *testing.T) {
	for source, want := range map[string]string{
		"   ":                           "the template is empty; write what the call does, such as Delete {args.path}",
		strings.Repeat("x", 1001):       "the template has 1001 bytes; at most 1000 are allowed",
		"Refund {args.cents":            "column 8: the { is not closed; add }, or write {{ for a literal brace",
		"Refund 5}":                     "column 9: unmatched }; for a literal brace, write }}",
		"é {}":                          "column 3: the placeholder names no argument; write {args.path}, or {{ for a literal brace",
		"{cents}":                       "column 2: there is no function cents; an argument is written args.cents, and the functions are amount, bytes, count, date, fields, if, list, money, short, time",
		"{args}":                        "column 2: args alone names no argument; write args.NAME",
		"{args.}":                       "column 7: the name of an argument is missing after the point",
		"{args[x]}":                     `column 7: write [0], ["key"], or [] for every item`,
		`{args["x}`:                     `column 7: the text is not closed; add " at its end`,
		"{args.x[0}":                    "column 8: the [ is not closed; add ]",
		"{args.x[].y[].z}":              "column 13: [] can appear only once in a path",
		"{args.x[]}":                    "column 2: [] is for list only; write {list args.recipients[].email}",
		"{money args.cents}":            `column 1: money needs another value; write {money args.cents "EUR"}`,
		`{money "EUR"}`:                 `column 1: money needs an argument; write {money args.cents "EUR"}`,
		`{money args.cents "EURO"}`:     `column 19: "EURO" is not an ISO 4217 currency code such as EUR`,
		`{money args.cents 5}`:          `column 19: must be a text in quotes; write {money args.cents "EUR"}`,
		`{date args.at "x"}`:            `column 15: is not expected here; write {date args.day}`,
		`{short args.note 0}`:           `column 18: 0 is not a number from 1 to 150`,
		`{short args.note 200}`:         `column 18: 200 is not a number from 1 to 150`,
		`{args.note or}`:                `column 12: or needs a text, such as or "nobody"`,
		`{args.note or "a" "b"}`:        `column 19: nothing can follow the text of or`,
		`{if args.force "a" or "b"}`:    `column 1: if does not take or; write {if args.force "by force" "gently"}`,
		`{fields args.a "b"}`:           `column 16: is not expected here; write {fields args.service args.force}`,
		`{args.a {args.b}}`:             `column 9: '{' has no meaning here; for a literal brace, write {{ or }}`,
		`{args.a upper}`:                `column 9: upper has no meaning here; an argument is written args.upper, and text goes in quotes`,
		`Costs {money args.x "EUR" } }`: `column 29: unmatched }; for a literal brace, write }}`,
	} {
		_, err := summary.Parse(source)
		require.EqualError(t, err, want, source)
	}
}

func TestATemplateIsComparedWithTheSchemaOfItsTool(t *testing.T) {
	for source, want := range map[string]string{
		"{args.custmer}":                      "column 2: args.custmer: there is no such argument; args has address, any, at, auth, cents, color, currency, customer, files, force, free, labels, lines, note, odd key, pair, pin, total",
		"{args.address.town}":                 "column 2: args.address.town: there is no such argument; args.address has city, zip",
		"{args.customer.name}":                "column 2: args.customer.name: args.customer is not always an object",
		"{args.customer[0]}":                  "column 2: args.customer[0]: args.customer is not always a list",
		"{args.force}":                        `column 2: args.force: it is true or false; write {if args.force "yes" "no"}`,
		"{args.files}":                        `column 2: args.files: it is a list; write {list args.files} or {count args.files "item"}`,
		"{args.address}":                      "column 2: args.address: it is an object, and a placeholder without a function shows a text or a whole number or a number",
		`{money args.customer "EUR"}`:         "column 8: args.customer: it is a text, and money shows a whole number",
		`{money args.total "EUR"}`:            "column 8: args.total: it is a number, and money shows a whole number",
		`{money args.cents args.color}`:       "column 19: args.color: a call may leave the currency out; require it, or name one in quotes",
		`{money args.cents args.color or ""}`: `column 19: args.color: it may be "red", which is not an ISO 4217 currency code`,
		`{money args.cents args.files}`:       "column 19: args.files: it is a list, and money shows a text",
		"{short args.cents 5}":                "column 8: args.cents: it is a whole number, and short shows a text",
		"{args.note}":                         `column 2: args.note: a call may leave it out; add or "text" before the }, or use {if args.note "text"}`,
		"{args.address.zip}":                  `column 2: args.address.zip: a call may leave it out; add or "text" before the }, or use {if args.address.zip "text"}`,
		"{args.files[0]}":                     `column 2: args.files[0]: a call may leave it out; add or "text" before the }, or use {if args.files[0] "text"}`,
		"{args.labels.env}":                   `column 2: args.labels.env: a call may leave it out; add or "text" before the }, or use {if args.labels.env "text"}`,
		"{list args.lines}":                   "column 7: args.lines: its items are an object, and list shows texts and numbers; write [] and the name of a text in each item, or use count",
		"{list args.lines[].n}":               "column 7: args.lines[].n: some items may lack it, so not every item could be shown; use count",
		"{args.any}":                          "column 2: args.any: the schema does not say what type it has; add its type, or leave it out",
		"{args.any.x}":                        "column 2: args.any.x: the schema does not list what is in args.any; describe it there, or leave it out",
		`{args.free.x or ""}`:                 "column 2: args.free.x: the schema does not list what is in args.free; describe it there, or leave it out",
		"{args.auth.token}":                   "column 2: args.auth.token: it is write-only, or contains something that is, so it can't be shown; leave it out",
		"{if args.auth \"x\"}":                "column 5: args.auth: it is write-only, or contains something that is, so it can't be shown; leave it out",
		`{args.pin or ""}`:                    "column 2: args.pin: it is write-only, or contains something that is, so it can't be shown; leave it out",
		`{args.note or ""}`:                   "column 2: args.note: it is write-only, or contains something that is, so it can't be shown; leave it out", // by a pointer
		"{args.x} {args.cents} {args.force}": "column 2: args.x: there is no such argument; args has address, any, at, auth, cents, color, currency, customer, files, force, free, labels, lines, note, odd key, pair, pin, total; " +
			`column 24: args.force: it is true or false; write {if args.force "yes" "no"}`,
	} {
		var writeOnly []string
		if source == `{args.note or ""}` {
			writeOnly = []string{"/note"}
		}
		require.EqualError(t, summary.Check(source, json.RawMessage(refund), writeOnly), want, source)
	}
	for _, source := range []string{
		"Nothing to fill in", "{{}}", `Refund {money args.cents "EUR"} to {args.customer}`, `{money args.cents args.currency}`,
		`{amount args.total "EUR" or "all of it"}`, `{args.address.city} {args.address.zip or "-"}`, `{args["odd key"] or ''}`,
		"{list args.files}", "{list args.files 5}", "{list args.lines[].sku}", `{count args.lines "line"}`, `{count args.labels "label"}`,
		`{if args.force "a" "b"} {if args.note "with a note"}`, `{args.pair[0] or ""}{args.pair[1] or ""}`, `{args.labels.env or "?"}`,
		"{fields args.customer args.force args.files}", "{time args.at}", `{date args.note or "-"}`, `{if args.auth.user "x"}`,
	} {
		require.NoError(t, summary.Check(source, json.RawMessage(refund), nil), source)
	}
}

func TestATemplateForAToolWithoutASchemaNamesNoArguments(t *testing.T) {
	for _, schema := range []string{"", "true", "[]", "{"} {
		require.NoError(t, summary.Check("Restart everything", json.RawMessage(schema), nil))
		require.EqualError(t, summary.Check("{args.x}", json.RawMessage(schema), nil),
			"column 2: args.x: the tool has no schema, so nothing is known of its arguments; give it one, or write the template without arguments")
	}
	require.EqualError(t, summary.Check("{args.x}", json.RawMessage(`{"type":"object"}`), nil),
		"column 2: args.x: the schema does not list what is in args; describe it there, or leave it out")
}

// A schema may come from a server that nobody trusts.
func TestASchemaThatRefersToItselfIsReadInTime(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		`{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/properties/x"},{"$ref":"#/properties/x"}]}}}`,
	} {
		require.Error(t, summary.Check("{args.x}", json.RawMessage(schema), nil))
		require.Empty(t, summary.Default("t", json.RawMessage(schema), nil))
	}
	tree := `{"type":"object","required":["x"],"properties":{"name":{"type":"string"},"x":{"$ref":"#"}}}`
	require.Error(t, summary.Check("{args.x.x.x.name}", json.RawMessage(tree), nil), "name may be left out")
	require.NoError(t, summary.Check(`{args.x.x.x.name or "?"}`, json.RawMessage(tree), nil))
}
