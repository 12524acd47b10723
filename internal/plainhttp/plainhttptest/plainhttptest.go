// Package plainhttptest has a handler that clients made with plainhttp are tested against.
package plainhttptest

import (
	"io"
	"net/http"
)

// Switch answers that the connection is for another protocol from now on, and then says
// nothing until the client closes it. No time limit of net/http ends a read of such a
// connection. It returns an error if the connection could not be taken over, or did not
// end well.
func Switch(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the client has closed it
	if _, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"); err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	return err
}
