// Package mcptool makes tools for agents out of the tools of MCP servers.
//
// A [Set] is the servers of all agents. Its tools are those that an operator has
// accepted: their definitions come from the pins, so what a policy is checked
// against and what the model reads does not depend on a server being there.
// [Set.Run] keeps the servers connected. It lists their tools again when they say that
// these have changed, and when the stream ends on which they would say so. A tool whose
// server now sends another definition is unavailable: its calls are refused before anybody
// is asked.
//
// Everything that a server says is hostile: names, descriptions, annotations,
// results, errors. Annotations only make us more careful, unless the operator
// trusts them. The program of a server over stdio gets the variables that its
// configuration names and nothing else, and cannot read this process.
//
// The SDK speaks the protocol. What is pinned and what becomes of a call are
// read from the messages as they were on the wire, because the SDK decodes a
// task, a request for input and an incomplete result to an empty success, and
// drops what it does not know of a definition.
package mcptool
