package openaisim

import (
	"net/http"
	"time"
)

// Paced has the server take this long before each piece of a streamed answer, as a
// model does that writes, and returns the server.
func (s *Server) Paced(d time.Duration) *Server {
	s.pace = d
	return s
}

// paced rests before each write, unless the client leaves.
type paced struct {
	http.ResponseWriter

	r    *http.Request
	pace time.Duration
}

func (p paced) Write(b []byte) (int, error) {
	if p.pace > 0 {
		t := time.NewTimer(p.pace)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.r.Context().Done():
		}
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (p paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
