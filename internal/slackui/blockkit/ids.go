package blockkit

import (
	"regexp"
	"strings"
)

// ValidTS reports whether ts looks like Slack's timestamps.
func ValidTS(ts string) bool {
	return ts != "" && len(ts) <= 32 && strings.Trim(ts, "0123456789.") == ""
}

// IDForm is how Slack's ids look. Nothing else is ever put into a mention.
var IDForm = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,31}$`)

// IsChannel reports whether the id is one of a channel, public or private.
func IsChannel[ID ~string](id ID) bool {
	return strings.HasPrefix(string(id), "C") || strings.HasPrefix(string(id), "G")
}
