// Package blockkit writes text for Slack: rich text, arguments as they are stored,
// Markdown of a model, numbers and lists. It is the only package that makes
// mrkdwn, and puts nothing into it but our own words and ids. It is pure.
package blockkit
