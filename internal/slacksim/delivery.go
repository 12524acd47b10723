package slacksim

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// courier takes requests to the app, by HTTP or over its connections.
type courier struct {
	*engine

	journal    *journal
	socketMode *socketMode
}

// deliver signs one request, sends it and waits for the answer, at most as
// long as the app may take. The caller does not hold mu.
func (s *courier) deliver(d delivery) reply {
	if d.url == overSocket {
		return s.socketMode.deliverEnvelope(d)
	}
	ctx, cancel := context.WithTimeout(s.life(), s.ackTimeout())
	defer cancel()

	s.mu.Lock()
	at := s.cfg.Now().Add(time.Duration(s.faults.SkewSeconds) * time.Second)
	secret := s.cfg.SigningSecret
	if s.faults.BadSignatures > 0 {
		s.faults.BadSignatures--
		secret += " not"
	}
	s.mu.Unlock()

	timestamp := strconv.FormatInt(at.Unix(), 10)
	headers := map[string]string{
		"Content-Type": d.contentType, "Accept": "application/json,*/*",
		"User-Agent":                "Slackbot 1.0 (+https://api.slack.com/robots)",
		"X-Slack-Request-Timestamp": timestamp,
		"X-Slack-Signature":         Sign(secret, timestamp, d.body),
	}
	if d.unsigned {
		delete(headers, "X-Slack-Request-Timestamp")
		delete(headers, "X-Slack-Signature")
	}
	maps.Copy(headers, d.headers)
	r := s.send(ctx, d, headers)

	entry := LogEntry{
		Direction: ToApp, Kind: d.kind, Method: http.MethodPost, URL: d.url,
		Headers: headers, Request: string(d.body), Problem: r.problem,
	}
	s.mu.Lock()
	s.journal.logged(entry, r.status, r.body)
	s.mu.Unlock()
	return r
}

func (s *courier) send(ctx context.Context, d delivery, headers map[string]string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(d.body))
	if err != nil {
		return reply{problem: "connection_failed"}
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return reply{problem: reason(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return reply{problem: reason(ctx, err)}
	}
	r := reply{status: resp.StatusCode, header: resp.Header, body: body}
	if r.status < 200 || r.status > 299 {
		r.problem = "http_error"
	}
	return r
}

// reason names why no answer came.
func reason(ctx context.Context, err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "http_timeout"
	case errors.Is(err, errRedirects):
		return "too_many_redirects"
	case errors.As(err, &certificate), errors.As(err, &record):
		return "ssl_error"
	}
	return "connection_failed"
}
