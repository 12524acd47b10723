package main

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// How much of a request is read that its handler has refused, and for how long.
const (
	maxUnread  = 16 << 20
	unreadTime = 5 * time.Second
)

// readRest reads what a handler has not read of a body before its answer is sent. A
// client that reads no answer before it has sent its whole request, such as urllib of
// Python, would see that the connection is reset, and not why it is refused.
func readRest(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		body := &unreadBody{ReadCloser: r.Body}
		inner := r.WithContext(r.Context())
		inner.Body = body
		h.ServeHTTP(w, inner)
		waits := strings.EqualFold(r.Header.Get("Expect"), "100-continue") && !body.began.Load() // to be told to send it
		if body.ended.Load() || waits {
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
		_, _ = io.CopyN(io.Discard, body, maxUnread)
	})
}

// unreadBody is a body that notices whether it was read at all, and whether to its end or
// for as long as it can be.
type unreadBody struct {
	io.ReadCloser

	began, ended atomic.Bool
}

func (b *unreadBody) Read(p []byte) (int, error) {
	b.began.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}
