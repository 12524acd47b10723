package policy

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/countersign/countersign/internal/strictyaml"
)

// A span is a duration, as long as a deadline may be. One that is refused is written, and is 0.
type span struct {
	strictyaml.Mark
	d time.Duration
}

// Take implements [strictyaml.Taker].
func (s *span) Take(d *strictyaml.Decoder, n ast.Node, at strictyaml.Mark) {
	s.Mark = at
	written, _, _ := strictyaml.Words(n)
	long, err := time.ParseDuration(written)
	switch {
	case err != nil:
		d.Wrong(at, "must be a duration with its unit, such as 30m or 48h; there is no unit for days")
		return
	case long < time.Minute || long > MaxWithin:
		d.Wrong(at, "is %s, must be between 1m and %s", written, hours(MaxWithin))
		return
	}
	s.d = long
}

// hours is a duration as people write it in a policy: 2h, 1h30m.
func hours(d time.Duration) string {
	h, m, s := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute
	out := ""
	if h > 0 {
		out += fmt.Sprintf("%dh", h)
	}
	if m > 0 {
		out += fmt.Sprintf("%dm", m)
	}
	if s > 0 || out == "" {
		out += s.String()
	}
	return out
}
