// Package plainhttp is for clients that send requests and want answers, and nothing
// else that HTTP can do.
//
// When a server switches protocols (status 101), net/http hands the connection itself
// to the caller. Neither the context of the request nor a timeout of the client ends a
// read of it, so a server that then sends nothing would hold the reader forever.
package plainhttp

import (
	"errors"
	"net/http"
)

// ErrSwitched is the error of a request whose server switched protocols. The request has
// reached the server, and whether it took effect is not known.
var ErrSwitched = errors.New("the server switched protocols (HTTP status 101), which the request did not ask for")

// Transport returns a round tripper that sends requests through base and refuses
// status 101, with [ErrSwitched]. A nil base is [http.DefaultTransport].
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	_ = resp.Body.Close() // it is the connection
	return nil, ErrSwitched
}

// CloseIdleConnections closes those of base.
func (t transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}
