package config

// A Secret cannot be printed, logged or marshaled; only Open returns it. The
// zero Secret is empty.
type Secret struct{ value func() string }

// NewSecret returns the secret that opens to s.
func NewSecret(s string) Secret { return Secret{func() string { return s }} }

// Open returns the value. Only callers that send it to its service may use it.
func (s Secret) Open() string {
	if s.value == nil {
		return ""
	}
	return s.value()
}

func (Secret) String() string { return "[redacted]" }

// GoString never tells.
func (Secret) GoString() string { return "[redacted]" }

// MarshalText never tells.
func (Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }
