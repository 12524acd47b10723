package uistream

import "fmt"

// A Dialect is a form of the protocol, by the version of the client.
type Dialect string

// The dialects.
const (
	// Common is understood by all clients of the versions 6 and 7.
	Common Dialect = "common"
	// V7 also has chunks that say what was decided, and whether by people or by the
	// policy. A client of version 6 fails on them.
	V7 Dialect = "v7"
	// V7082 also says why people are asked, and can remove the draft of an attempt that
	// broke off. A client before 7.0.82 fails on both.
	V7082 Dialect = "v7.0.82"
	// V5 has no approvals: a client of it decides with requests of its own, and
	// reads a denial as a result.
	V5 Dialect = "v5"
)

// parseDialect reads the name of a dialect; the empty one is Common.
func parseDialect(name string) (Dialect, error) {
	switch d := Dialect(name); d {
	case "":
		return Common, nil
	case Common, V7, V7082, V5:
		return d, nil
	default:
		return "", fmt.Errorf("must be %s, %s, %s or %s", Common, V7, V7082, V5)
	}
}

func (d Dialect) approvals() bool { return d != V5 }

// decisions reports whether the dialect has a chunk for a decision.
func (d Dialect) decisions() bool { return d == V7 || d == V7082 }

// resets reports whether the parts of a step can be removed.
func (d Dialect) resets() bool { return d == V7082 }

// reasons reports whether a request says why people are asked.
func (d Dialect) reasons() bool { return d == V7082 }
