// Package delivery makes Slack show what is stored of batches: its reconcilers post
// and update cards, the digests that list what has no card, and notices to people.
// It also tells where each batch is shown.
package delivery
