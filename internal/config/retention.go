package config

import "time"

// Retention is how long what has ended stays.
type Retention struct {
	Threads *time.Duration `yaml:"threads"` // after they were used last; 30 days if left out, 0s for ever
}

// What retention.threads is if it is left out, and at least.
const (
	defaultThreads = 30 * 24 * time.Hour
	// leastThreads is longer than Slack repeats an event, a caller waits for an
	// answer, and a webhook message is tried again.
	leastThreads = 7 * 24 * time.Hour
)

// ThreadAge is how long a thread stays after it was used last; 0 means for ever.
func (r Retention) ThreadAge() time.Duration {
	if r.Threads == nil {
		return defaultThreads
	}
	return *r.Threads
}

func (r Retention) check(wrong func(format string, args ...any)) {
	if age := r.ThreadAge(); age != 0 && age < leastThreads {
		wrong("retention.threads: must be at least %s, or 0s to keep them for ever, but is %s", leastThreads, age)
	}
}
