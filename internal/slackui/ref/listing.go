package ref

import (
	"github.com/countersign/countersign/internal/approvals"
)

// A Scope says which of the open calls that a person may see are listed.
type Scope string

// The scopes.
const (
	ScopeMine    Scope = "mine"
	ScopeAll     Scope = "all"
	ScopeChannel Scope = "channel"
)

// A List is one page of a list: its scope, and what was shown last. It is the
// value of the button that leads to the page, and carries no authority.
type List struct {
	Scope  Scope            `json:"s"`
	Cursor approvals.Cursor `json:"c,omitempty"` // where to read batches from
	Opened int64            `json:"o,omitempty"` // when the last batch shown was opened, in microseconds
	Batch  string           `json:"b,omitempty"` // the last batch shown
	Call   int              `json:"n,omitempty"` // how many calls of it were shown
	Before int              `json:"p,omitempty"` // how many calls earlier pages show
}

// A SheetButton is the value of a button that opens a sheet of the calls that
// the filter finds for the person who presses it.
type SheetButton struct {
	Verdict approvals.Verdict `json:"v"`
	Filter  Filter            `json:"f"`
}
