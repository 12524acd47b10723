package approvals

import (
	"path"
	"strings"
)

// MatchTool reports whether a pattern matches the name of a tool. It is [path.Match] for
// names that are no paths: * and ? match a slash too. The error is [path.ErrBadPattern].
func MatchTool(pattern, name string) (bool, error) {
	const slash = "\x00" // which no name holds
	return path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(name, "/", slash))
}
