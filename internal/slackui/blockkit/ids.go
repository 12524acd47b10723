package blockkit

import (
	"regexp"
	"strings"
)

// ValidTS reports whether ts has the form of a Slack timestamp.
func ValidTS(ts string) bool {
	return ts != "" && len(ts) <= 32 && strings.Trim(ts, "0123456789.") == ""
}

// IDForm is the form of Slack's ids. Nothing else is put into a mention.
var IDForm = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,31}$`)

// IsChannel reports whether the id is that of a channel, public or private.
func IsChannel[ID ~string](id ID) bool {
	return strings.HasPrefix(string(id), "C") || strings.HasPrefix(string(id), "G")
}
