package config

import (
	"net"
	"strconv"
)

// Metrics is the listener for those who operate the bot. Without an address there
// is none, and nothing is measured.
type Metrics struct {
	Listen string `yaml:"listen"` // its address
	Pprof  bool   `yaml:"pprof"`  // whether it serves profiles of the process
}

func (m Metrics) check(h HTTP, wrong func(format string, args ...any)) {
	switch {
	case m.Listen == "" && m.Pprof:
		wrong("metrics.listen: not set, so metrics.pprof has no effect")
	case m.Listen == "":
	case !isListen(m.Listen):
		wrong("metrics.listen: must be an address with a port, such as 127.0.0.1:9090 or :9090, but is %q", m.Listen)
	case m.Listen == h.Listen:
		wrong("metrics.listen: is %q, and so is http.listen: agents would reach the metrics", m.Listen)
	}
}

// isListen reports whether it is an address on which a server can listen.
func isListen(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && n > 0
}
