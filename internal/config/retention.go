package config

import "time"

// Retention says how long conversations and requests that have ended are kept.
type Retention struct {
	Threads *time.Duration `yaml:"threads"` // since their last use; 30 days if left out, 0s for ever
}

// The default and the minimum of retention.threads.
const (
	defaultThreads = 30 * 24 * time.Hour
	// leastThreads is longer than the time for which Slack repeats an event, a caller
	// waits for an answer, or a webhook message is retried.
	leastThreads = 7 * 24 * time.Hour
)

// ThreadAge is how long a thread is kept after its last use; 0 means for ever.
func (r Retention) ThreadAge() time.Duration {
	if r.Threads == nil {
		return defaultThreads
	}
	return *r.Threads
}

func (r Retention) check(wrong func(format string, args ...any)) {
	if age := r.ThreadAge(); age != 0 && age < leastThreads {
		wrong("retention.threads: must be at least %s, or 0s to keep them forever, but is %s", leastThreads, age)
	}
}
