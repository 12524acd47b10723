// Package memo keeps versioned records beside documents: what is drawn of a batch,
// of a run or of a Home. One process at a time can claim a record.
package memo
