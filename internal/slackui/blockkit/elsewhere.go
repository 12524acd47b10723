package blockkit

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// Fulfillers says which agents may give the results of the calls of a tool of an
// agent; nil knows none.
type Fulfillers func(agent, tool string) []string

// Left says which external calls of the batch are still to run, and by whom; nothing if
// none is.
func (f Fulfillers) Left(b approvals.Batch) string {
	left := 0
	for _, c := range b.Calls {
		if c.Result == nil {
			left++
		}
	}
	if left == 0 {
		return ""
	}
	if who := f.Named(b); who != "" {
		return who + " to run " + Count(left, "call") + "."
	}
	return Count(left, "call") + " to run elsewhere."
}

// Named says who may run all external calls of the batch: nothing if that is
// nobody's to run all, or not known.
func (f Fulfillers) Named(b approvals.Batch) string {
	if f == nil {
		return ""
	}
	var names []string
	for i, e := range b.Calls {
		may := f(b.Agent, e.Call.Name)
		if i == 0 {
			names = slices.Clone(may)
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(may, name) })
	}
	for i, name := range names {
		names[i] = Brief(name, 60)
	}
	return strings.Join(names, " or ")
}
