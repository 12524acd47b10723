package main

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// counted is a number with what it counts: one thing, two things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// tableLine is a line of a table. Names of tools and ids of calls are what a model wrote, so
// that nothing in a column is obeyed by a terminal, hidden by it, or taken for the next
// column or line.
func tableLine(columns ...string) string {
	shown := make([]string, len(columns))
	for i, c := range columns {
		shown[i] = approvals.VisibleLine(c)
	}
	return strings.Join(shown, "\t") + "\n"
}
