// Package ref is what buttons, forms and metadata carry: the table of all actions,
// and pointers to calls, cards, lists and sheets. Nothing in it has authority:
// what it points at is read from the store. It is pure.
package ref
