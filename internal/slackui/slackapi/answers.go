package slackapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// An answers transport removes from Slack's answers what nothing reads, see [Skim]. The
// answer to a posted or updated message repeats the whole message, and decoding its blocks
// costs more than sending them.
type answers struct{ through http.RoundTripper }

func (t answers) RoundTrip(r *http.Request) (*http.Response, error) {
	out, err := t.through.RoundTrip(r)
	if err == nil {
		out.Body = &skimmed{Closer: out.Body, from: out.Body, size: out.ContentLength}
		out.ContentLength = -1
	}
	return out, err
}

// A skimmed body reads the whole body behind it at its first read. If that fails, it
// returns what was read and then the error; for a body longer than [maxAnswer] it returns
// only the error.
type skimmed struct {
	io.Closer
	from io.Reader
	size int64 // as the header names it; -1 if it does not
	left io.Reader
}

const (
	// maxAnswer bounds what is read of an answer. The longest are pages of users.list, of
	// a few MiB.
	maxAnswer = 16 << 20
	// mostNamed bounds the memory that is allocated for the size that the header names.
	mostNamed = 1 << 20
)

func (s *skimmed) Read(p []byte) (int, error) {
	if s.left == nil {
		var all bytes.Buffer
		all.Grow(int(min(max(s.size, 0), mostNamed)) + bytes.MinRead)
		n, err := all.ReadFrom(io.LimitReader(s.from, maxAnswer+1))
		if n > maxAnswer {
			s.left = failing{fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)}
			return s.left.Read(p)
		}
		s.left = io.MultiReader(bytes.NewReader(Skim(make([]byte, 0, 4096), all.Bytes())), failing{err})
	}
	return s.left.Read(p)
}

// A failing reader is empty, and ends with err if that is not nil.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}
