// Package inbound receives requests of Slack over HTTP and in Socket Mode. It checks
// their signature, size and workspace, and reads each into a typed [Interaction],
// [Command] or [Event].
package inbound
