// Package httptool makes tools of HTTP endpoints that an operator describes, for those
// who have an endpoint and no MCP server.
//
// The scheme, the host and the port of a request are those of the configuration. A
// model fills in placeholders in the path and the query, where its text is escaped and
// can neither add a segment nor end one, and the other arguments are the body. The
// address is judged when it is dialed, proxies of the environment are not used, and a
// redirect is followed only for a read, to the same scheme, host and port.
//
// What the endpoint answers is hostile: it is bounded, and what is not UTF-8 is
// described. A request that left and has no clear answer is in doubt, see
// [agentrun.UnsureError].
package httptool
