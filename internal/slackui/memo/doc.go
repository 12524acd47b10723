// Package memo keeps versioned records beside documents, which one process at a
// time claims: what is drawn of a batch, of a run, of a Home.
package memo
