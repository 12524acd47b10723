// Package inbound receives from Slack, over HTTP and in Socket Mode: it checks the
// signature, the size and the workspace, and reads what came into one typed
// [Interaction], [Command] or [Event].
package inbound
