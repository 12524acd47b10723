// Package card draws a batch: as a card, in a review, on a Home, in a digest. It
// reads documents and a time, and is pure.
package card
