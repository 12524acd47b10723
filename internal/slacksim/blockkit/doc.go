// Package blockkit judges Block Kit payloads and views as Slack does: it
// takes decoded JSON, with numbers as [encoding/json.Number], and returns
// what is wrong in Slack's wording, each with a JSON pointer. It also knows
// which elements hold a value, what that is at first, and what Slack's client
// refuses to send.
//
// It is pure: no clock, no workspace, no I/O.
//
// The reference is https://docs.slack.dev/reference/block-kit.
package blockkit
