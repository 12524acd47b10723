package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// HTTP is the listener for agents that run elsewhere. Without an address there is
// none.
type HTTP struct {
	Listen  string   `yaml:"listen"`          // its address
	Origins []string `yaml:"origins"`         // of the pages that may call it from a browser; none if left out
	Hosts   []string `yaml:"hosts"`           // names under which it answers on loopback, besides localhost
	Proxies []string `yaml:"trusted_proxies"` // networks of proxies that say who sends a request; none if left out
}

// TrustedProxies returns the networks of the proxies.
func (h HTTP) TrustedProxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	var problems []error
	for i, text := range h.Proxies {
		p, err := prefix(text)
		if err == nil && p.Bits() == 0 {
			err = fmt.Errorf("%q is every address, so that everyone could say who sends a request", text)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("http.trusted_proxies[%d]: %w", i, err))
		}
		all = append(all, p)
	}
	return all, errors.Join(problems...)
}

func (h HTTP) check(wrong func(format string, args ...any)) {
	if h.Listen == "" {
		if len(h.Origins)+len(h.Hosts)+len(h.Proxies) > 0 {
			wrong("http.listen: not set, so the other settings of http have no effect")
		}
		return
	}
	if !isListen(h.Listen) {
		wrong("http.listen: must be an address with a port, such as 127.0.0.1:8090 or :8090, but is %q", h.Listen)
	}
	checkOrigins("http.origins", h.Origins, wrong)
	_, err := h.TrustedProxies()
	for _, p := range Problems(err) {
		wrong("%w", p)
	}
	for _, name := range h.Hosts {
		if name == "" || strings.ContainsAny(name, ":/* ") {
			wrong("http.hosts: %q is no name of a host such as agents.example.com, without a port", name)
		}
	}
}

// JWT says which JSON Web Tokens prove a remote agent. All of it is required.
type JWT struct {
	Issuer   string `yaml:"issuer"`
	Audience string `yaml:"audience"`
	Subject  string `yaml:"subject"`
	Keys     string `yaml:"keys"` // the JWKS of the issuer: a file, or a URL
}

func (j *JWT) check(at string, seen map[JWT]string, wrong func(format string, args ...any)) {
	if j == nil {
		return
	}
	for _, f := range []struct{ key, value string }{{"issuer", j.Issuer}, {"audience", j.Audience}, {"subject", j.Subject}, {"keys", j.Keys}} {
		if f.value == "" {
			wrong("%s.%s: not set; without it, any token would be accepted", at, f.key)
		}
	}
	if err := checkKeys(j.Keys); err != nil {
		wrong("%s.keys: %w", at, err)
	}
	same := JWT{Issuer: j.Issuer, Audience: j.Audience, Subject: j.Subject}
	if other := seen[same]; other != "" {
		wrong("%s: %s has the same issuer, audience and subject; one token proves one agent", at, other)
	}
	seen[same] = at
}

// checkKeys says what is wrong with the place of keys: they come from a file, over
// TLS, or from this machine.
func checkKeys(from string) error {
	if !isURL(from) {
		return nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no address of keys", from)
	}
	if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return errors.New("must begin with https://: whoever changes the keys on their way becomes the agent")
	}
	return nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") }
