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

// A List is a page of a list: what is listed, and what was shown last. It is
// the value of the button that leads to the page, and carries no authority.
type List struct {
	Scope  Scope            `json:"s"`
	Cursor approvals.Cursor `json:"c,omitempty"` // from here batches are read
	Opened int64            `json:"o,omitempty"` // of the last batch that was shown, in microseconds
	Batch  string           `json:"b,omitempty"`
	Call   int              `json:"n,omitempty"` // so many calls of it were shown
	Before int              `json:"p,omitempty"` // calls on earlier pages
}

// A SheetWish is the value of a button that opens a sheet of what the filter
// means to whoever presses it.
type SheetWish struct {
	Verdict approvals.Verdict `json:"v"`
	Filter  Filter            `json:"f"`
}
