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

// keptLines is how many of the last lines of a server an error quotes.
const keptLines = 4

// A said passes on the log of a server. Lines from its start and its stop are logged at
// debug level, because Redis warns then of what is intended, except that it cuts off the
// end of its log.
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
	switch {
	case strings.Contains(line, "Truncating the AOF"): // what a machine that failed left of a write
		level = slog.LevelWarn
	case !s.busy:
		level = slog.LevelDebug
	}
	if strings.HasPrefix(line, "WARNING ") { // of the settings of the machine
		s.log.Log(context.Background(), level, "redis-server", slog.String("said", line))
		return
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
