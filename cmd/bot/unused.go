package main

import (
	"net"
	"net/http"
	"sync"
)

// unused are the connections of a server on which no request has come. Browsers
// and HTTP clients open such ahead of need, and [http.Server.Shutdown] would wait
// for them: for longer than a stopping bot does.
type unused struct {
	mu   sync.Mutex
	all  map[net.Conn]struct{}
	over bool
}

// follow is the ConnState of the server.
func (u *unused) follow(c net.Conn, s http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case s != http.StateNew:
		delete(u.all, c)
	case u.over:
		_ = c.Close() // nothing was sent on it
	default:
		if u.all == nil {
			u.all = map[net.Conn]struct{}{}
		}
		u.all[c] = struct{}{}
	}
}

// close closes them, and those that still come.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	for c := range u.all {
		_ = c.Close() // as above
	}
}
