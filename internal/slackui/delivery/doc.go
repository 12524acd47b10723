// Package delivery makes Slack agree with the store: its reconcilers draw cards,
// digests, replies, notices and Homes, and know where each batch is shown.
package delivery
