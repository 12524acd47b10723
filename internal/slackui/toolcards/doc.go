// Package toolcards asks the owners of agents about what MCP servers changed: one card
// for a server, in the channel of its agent, with the difference as the server sent it.
//
// A definition is text of the server. It stands in boxes, with what would not be seen
// made visible, and a difference that does not fit into a card has no button that
// accepts it: what is accepted was shown.
package toolcards
