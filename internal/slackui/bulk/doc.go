// Package bulk makes sheets, the lists of calls that are decided at once: what is
// on one, how it is shown, what its submission commits, and what became of it.
package bulk
