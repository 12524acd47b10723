package statetest

import (
	"bytes"
	"strings"
	"sync"
)

// A Log keeps what is written to it. A test may read it while others write.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often these words were written.
func (l *Log) Count(words string) int { return strings.Count(l.String(), words) }
