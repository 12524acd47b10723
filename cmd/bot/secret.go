package main

// A secret cannot be printed, logged or marshalled; only open returns it. The
// zero secret is empty.
type secret struct{ value func() string }

func newSecret(s string) secret { return secret{func() string { return s }} }

func (s secret) open() string {
	if s.value == nil {
		return ""
	}
	return s.value()
}

func (secret) String() string   { return "[redacted]" }
func (secret) GoString() string { return "[redacted]" }

// MarshalText never tells.
func (secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil } //nolint:unparam // the interface has an error
