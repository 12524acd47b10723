package slacksim

import (
	"maps"
	"slices"
)

// Methods returns the names of the Web API methods that the simulator has, in order.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Absent returns the names of methods that only Slack has.
func Absent() []string { return absent }
