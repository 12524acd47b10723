package telemetry

import (
	"strings"
	"sync"
)

// Other is the label of what came after [mostNames] names.
const Other = "other"

// mostNames is how many values a label has that the configuration or another
// service names.
const mostNames = 200

// bounded keeps the number of values of a label in bounds, for the life of the
// process. The zero value is ready.
type bounded struct {
	mu    sync.RWMutex
	known map[string]string
}

// label returns the value for a name: the name, cut to 80 characters, or [Other].
func (b *bounded) label(name string) string {
	b.mu.RLock()
	known, ok := b.known[name]
	b.mu.RUnlock()
	if ok {
		return known
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.known[name]; ok {
		return known
	}
	if len(b.known) >= mostNames {
		return Other
	}
	if b.known == nil {
		b.known = map[string]string{}
	}
	label := strings.ToValidUTF8(name, "?")
	if runes := []rune(label); len(runes) > 80 {
		label = string(runes[:80])
	}
	b.known[strings.Clone(name)] = label
	return label
}
