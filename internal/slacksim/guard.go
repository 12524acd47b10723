package slacksim

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// gate refuses the requests of other web pages.
type gate struct{ *installations }

// slackOrigin is what slack-go sends as its origin when it opens a connection
// of Socket Mode. Browsers send it only from pages of Slack.
const slackOrigin = "https://api.slack.com"

// guard keeps other web pages in a person's browser away from everything that
// the simulator serves. Browsers name the origin of requests that change
// something. A page whose name was pointed at this machine afterwards (DNS
// rebinding) has the simulator's own origin, so that the name itself has to be
// one of ours. Apps send no origin, and reach the simulator by its address.
func (s *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.ownHost(r.Host):
			writeJSON(w, http.StatusForbidden, Problem{fmt.Sprintf(
				"the simulator is not served under the name %s; use its address, --public-url or --expose", r.Host)})
		case !ownOrigin(r):
			writeJSON(w, http.StatusForbidden, Problem{"another site's page may not use the simulator"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func ownOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || (origin == slackOrigin && r.URL.Path == linkPath) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}

func (s *gate) ownHost(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if public, err := url.Parse(s.cfg.PublicURL); s.cfg.AnyHost || (err == nil && public.Host == host) {
		return true
	}
	name := (&url.URL{Host: host}).Hostname()
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || (err == nil && ip.IsLoopback())
}

// reachedBy remembers how the app reaches the simulator, where no public URL
// says it: response_urls and connections of Socket Mode start with that. Only a
// call that proves with its token that it is the app's may name the host;
// before the first one it is the address of the connection.
func (s *gate) reachedBy(r *http.Request, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.PublicURL != "" {
		return
	}
	if s.withToken(token) != nil || token == s.cfg.AppToken {
		s.public = "http://" + r.Host
		return
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && s.public == "" {
		s.public = "http://" + local.String()
	}
}
