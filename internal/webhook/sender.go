package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/dialguard"
	"github.com/countersign/countersign/internal/plainhttp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	defaultTimeout = 20 * time.Second
	maxTimeout     = 30 * time.Second
	maxHeaders     = 16 << 10 // bytes of an answer's header
	maxAnswer      = 4 << 10  // bytes of an answer that are read, and thrown away
	maxURL         = 2048
)

// Config is what an operator decides about webhooks. The zero Config sends to
// public addresses, over https, on port 443.
type Config struct {
	Allow      []netip.Prefix // addresses that are not public and may be sent to all the same
	Deny       []netip.Prefix // public addresses that may not, such as a NAT64 prefix of one's own network
	PlainHosts []string       // hosts to which http is allowed, by name or address
	Ports      []int          // besides 443, and besides 80 where http is allowed
	Proxy      *url.URL       // a proxy that refuses internal addresses by itself: with one, we cannot
	RootCAs    *x509.CertPool // nil means those of the system
	Resolver   *net.Resolver  // nil means that of the system
	Timeout    time.Duration  // for one attempt in total; 0 means 20 s, at most 30 s
	Now        func() time.Time
}

// An Endpoint is where messages go. It has one secret, and two while the secret is
// replaced, the new one first: every message has a signature by each.
type Endpoint struct {
	URL     string
	Secrets []Secret
}

// A Sender sends messages. It is safe for concurrent use.
type Sender struct {
	cfg       Config
	guard     dialguard.Guard
	transport http.RoundTripper
}

// New returns a sender, or an error that begins with the key of what is wrong.
func New(cfg Config) (*Sender, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	switch {
	case cfg.Now == nil:
		return nil, errors.New("webhook: Config.Now is missing")
	case cfg.Timeout < 0 || cfg.Timeout > maxTimeout:
		return nil, fmt.Errorf("timeout: must be at most %s, but is %s", maxTimeout, cfg.Timeout)
	case cfg.Proxy != nil && (cfg.Proxy.Scheme != "http" && cfg.Proxy.Scheme != "https" || cfg.Proxy.Host == ""):
		return nil, errors.New("proxy: must be a URL that begins with http:// or https://")
	}
	guard := dialguard.Guard{Allow: cfg.Allow, Deny: cfg.Deny}
	if err := guard.Check(); err != nil {
		return nil, fmt.Errorf("allow: cannot be %w", err)
	}
	for _, port := range cfg.Ports {
		if port < 1 || port > 65535 {
			return nil, fmt.Errorf("ports: there is no port %d", port)
		}
	}
	s := &Sender{cfg: cfg, guard: guard}
	transport := &http.Transport{
		DialContext:            guard.Dialer(cfg.Resolver).DialContext,
		DisableKeepAlives:      true, // a connection that is used again is not judged again
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaders,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
	}
	if cfg.Proxy != nil {
		transport.Proxy = http.ProxyURL(cfg.Proxy)
		transport.DialContext = (&net.Dialer{Timeout: dialguard.Timeout, KeepAlive: -1, Resolver: cfg.Resolver}).DialContext
	}
	s.transport = plainhttp.Transport(transport)
	return s, nil
}

// ErrEndpoint says that nothing can be sent to an endpoint as it is configured.
var ErrEndpoint = errors.New("the receiver is not usable")

// Check returns what is wrong with the endpoint, as far as that can be said without
// looking up its name. Send checks it too.
func (s *Sender) Check(e Endpoint) error {
	_, err := s.parse(e)
	return err
}

func (s *Sender) parse(e Endpoint) (*url.URL, error) {
	wrong := func(format string, args ...any) (*url.URL, error) {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, fmt.Errorf(format, args...))
	}
	u, err := url.Parse(e.URL)
	if err != nil || len(e.URL) > maxURL || u.Opaque != "" || u.Hostname() == "" {
		return wrong("expected a URL such as https://example.com/hooks") // without the URL: its path can be a secret
	}
	ports := slices.Clone(s.cfg.Ports)
	switch plain := slices.ContainsFunc(s.cfg.PlainHosts, func(h string) bool { return sameHost(h, u.Hostname()) }); {
	case u.Scheme == "https":
		ports = append(ports, 443)
	case u.Scheme == "http" && plain:
		ports = append(ports, 80)
	case u.Scheme == "http":
		return wrong("http is not allowed to this host: use https, or list the host in webhooks.plain_hosts")
	default:
		return wrong("the URL must begin with https://")
	}
	if u.User != nil {
		return wrong("the URL must not contain a name or a password")
	}
	if u.Fragment != "" {
		return wrong("the URL must not have a fragment")
	}
	if text := u.Port(); text != "" || strings.HasSuffix(u.Host, ":") {
		if port, err := strconv.Atoi(text); err != nil || !slices.Contains(ports, port) {
			return wrong("the port is not allowed: list it in webhooks.ports")
		}
	}
	if a, ok := dialguard.Literal(u.Hostname()); ok {
		if err := s.guard.Judge(a); err != nil {
			return wrong("%w", err)
		}
	}
	if len(e.Secrets) == 0 || slices.ContainsFunc(e.Secrets, func(k Secret) bool { return k.open == nil }) {
		return wrong("it has no signing secret, or an empty one")
	}
	return u, nil
}

func sameHost(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(strings.Trim(a, "[]"), "."), strings.TrimSuffix(b, "."))
}

// Send makes one attempt to send the message and says how it ended. It follows no
// redirect, and takes at most the time limit, from name resolution to the answer.
func (s *Sender) Send(ctx context.Context, e Endpoint, m Message) Outcome {
	body, err := m.Body()
	if err != nil {
		return Outcome{Kind: Invalid, Reason: sentence(err)}
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	resp, failed := s.post(limited, e, m.ID, m.Trace, body, s.cfg.Timeout)
	switch {
	case resp == nil && failed.Kind == Retry && errors.Is(ctx.Err(), context.Canceled):
		return Outcome{Kind: Interrupted, Reason: "The attempt was interrupted."}
	case resp == nil:
		return failed
	}
	defer resp.Body.Close() //nolint:errcheck // the status is all that counts
	// Some receivers fail when nobody reads their answer.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return s.judge(resp)
}

// post sends a body. If it returns no response, the outcome says why.
func (s *Sender) post(ctx context.Context, e Endpoint, id, trace string, body []byte, within time.Duration) (*http.Response, Outcome) {
	to, err := s.parse(e)
	if err != nil {
		return nil, Outcome{Kind: Retry, Reason: sentence(err)} // the configuration can be mended meanwhile
	}
	req, err := s.request(ctx, to, e.Secrets, id, body)
	if err != nil {
		return nil, Outcome{Kind: Invalid, Reason: sentence(err)}
	}
	if traceForm.MatchString(trace) {
		req.Header.Set("traceparent", trace)
	}
	resp, err := s.transport.RoundTrip(req) // a client would follow redirects
	if err != nil {
		return nil, Outcome{Kind: Retry, Reason: s.explain(err, within)}
	}
	return resp, Outcome{}
}

// request signs the body. The time that is signed is that of the attempt: receivers
// refuse old ones.
func (s *Sender) request(ctx context.Context, to *url.URL, secrets []Secret, id string, body []byte) (*http.Request, error) {
	now := s.cfg.Now()
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key, err := standardwebhooks.NewWebhookRaw(secret.open())
		if err != nil {
			return nil, fmt.Errorf("%w: the library refused it", ErrSecret)
		}
		signature, err := key.Sign(id, now, body)
		if err != nil {
			return nil, fmt.Errorf("sign the message: %w", err)
		}
		signatures = append(signatures, signature)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL of the receiver makes no request")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Countersign-Webhook/1")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return req, nil
}
