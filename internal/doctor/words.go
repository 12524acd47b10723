package doctor

import (
	"fmt"
)

// counted is a number with what it counts: one thing, two things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
