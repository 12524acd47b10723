// Package mcpreview asks the owners of agents about what MCP servers changed.
//
// The accepted tools are one memo in Redis, and so are the decisions about them: a
// decision and what follows from it are one commit, and the first one wins. Every
// replica looks at the memo every few seconds and takes what it finds, so a tool that
// was accepted is there without a restart.
//
// A replica whose server lists something else than was accepted keeps that as a
// proposal, one for each server, which is due work: the surface draws it. With a lock
// file the tools are those of the file, nothing is accepted here, and the proposal
// says which digests to commit.
package mcpreview
