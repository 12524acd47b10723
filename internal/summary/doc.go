// Package summary says what a call does in one line of words, from a template
// over its arguments:
//
//	Refund {money args.cents "EUR"} to {args.customer}
//
// A surface calls [Of]. The line helps people to read; it never stands in place
// of the exact arguments, which are what is approved. It quotes text that models
// and people wrote, so a surface marks what cannot be seen and escapes it.
//
// # Templates
//
// A placeholder stands in braces; for a literal brace, write {{ or }}. Texts
// in a placeholder stand in double or single quotes and have no escapes. A path
// begins with args: args.customer.name, args["odd key"], args.hosts[0].
//
//	{args.path}                                  a text, or a number as it is written
//	{money args.cents "EUR"}                     minor units, such as cents, of a currency of ISO 4217
//	{amount args.total args.currency}            major units; a currency may also be an argument
//	{count args.files "file"}                    3 files; of a list, an object or a whole number
//	{count args.boxes "box" "boxes"}             with a plural that is not formed with s
//	{list args.hosts}                            a, b, c, and 4 more; {list args.hosts 5} shows up to five
//	{list args.recipients[].email}               one value of each item
//	{short args.note 40}                         at most 40 characters
//	{date args.day}                              Mar 2, 2026; of a date or a time of RFC 3339
//	{time args.at}                               Mar 2, 2026, 09:30 UTC; with the offset that is written
//	{bytes args.size}                            1.5 KB, of 1000 bytes each; of a text, how long it is
//	{if args.force "by force" "gently"}          by a truth, or by whether the argument is given; the last text may be left out
//	{fields args.service args.force}             (service: "api", force: true): the first three that are given
//
// Behind everything but if and fields may stand or "text", which is shown where
// the argument is not given: left out, null, or empty. An argument that the
// schema does not require needs that, or if or fields.
//
// Money is computed with exact decimals and never rounded; sizes are rounded to
// one decimal. A value is cut at 60 characters, and the line at 150.
//
// # When it is checked, and when it does not fit
//
// [Check] compares a template with the schema of its tool when it is loaded. So
// a template does not fit a call only after an edit, a change of the tool, or
// for a tool whose arguments nobody validates. Then, as for a call without a
// template, the line is the default.
//
// # The default
//
// Without a template the line is the name of the tool in words, and up to three
// arguments: those that the schema requires before those that it does not, each
// in the order of the schema, texts, numbers and truths before lists, of which
// only the length is shown. Objects, empty arguments and write-only ones are left
// out. [Default] is the template that does this; where there is no schema, the
// order is that of the arguments themselves.
//
// Arguments that are write-only never appear, nor does anything that holds one.
package summary
