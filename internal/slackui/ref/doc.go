// Package ref defines what buttons, forms and metadata carry: all actions, and
// pointers to calls, cards, lists and sheets. A pointer has no authority: what
// it points at is read from the store. The package is pure.
package ref
