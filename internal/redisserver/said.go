package redisserver

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// logLine is a line of Redis' log: the process and its role, the time, how
// important it is, and the words.
var logLine = regexp.MustCompile(`^\d+:[A-Z] \d+ \w+ \d{4} [\d:.]+ ([-.*#]) (.*)$`)

// keptLines is how much of what a server said an error tells.
const keptLines = 4

// said passes on what a server says. What it says while it starts and stops is
// debug: it warns then of what is meant to be.
type said struct {
	log *slog.Logger

	mu   sync.Mutex
	busy bool // it answers, and was not told to stop
	rest []byte
	last []string
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.rest = rest
		s.pass(strings.TrimSpace(string(line)))
	}
}

func (s *said) pass(line string) {
	if line == "" {
		return
	}
	level := slog.LevelWarn // what has no form of its own is an error of Redis
	if m := logLine.FindStringSubmatch(line); m != nil {
		line = m[2]
		if m[1] != "#" {
			level = slog.LevelDebug
		}
	}
	if !s.busy {
		level = slog.LevelDebug
	}
	if s.last = append(s.last, line); len(s.last) > keptLines {
		s.last = s.last[1:]
	}
	s.log.Log(context.Background(), level, "redis-server", slog.String("said", line))
}

func (s *said) setBusy(busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = busy
}

// words are the last lines.
func (s *said) words() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) == 0 {
		return "nothing"
	}
	return strings.Join(s.last, "\n")
}
