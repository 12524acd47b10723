package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/internal/dialguard"
	"github.com/countersign/countersign/internal/plainhttp"
)

// slowAfter is how long to wait at least after an answer that says too much is going
// on, if the answer does not say how long.
const slowAfter = time.Minute

// judge reads the status of the answer and its Retry-After.
func (s *Sender) judge(resp *http.Response) Outcome {
	o := Outcome{Kind: Retry, Status: resp.StatusCode, Reason: fmt.Sprintf("The receiver answered %d.", resp.StatusCode)}
	switch {
	case resp.StatusCode/100 == 2:
		return Outcome{Kind: Delivered, Status: resp.StatusCode}
	case resp.StatusCode == http.StatusGone:
		return Outcome{Kind: Gone, Status: resp.StatusCode, Reason: "The receiver answered 410: it wants no more messages."}
	case resp.StatusCode/100 == 3:
		o.Reason += " Redirects are not followed."
	}
	after, asked := s.retryAfter(resp.Header.Get("Retry-After"))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		if o.Slow = true; !asked {
			after = slowAfter
		}
	}
	o.After = min(max(after, 0), MaxRetryAfter)
	return o
}

// retryAfter reads a number of seconds or an HTTP date.
func (s *Sender) retryAfter(value string) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(s.cfg.Now()), true
	}
	return 0, false
}

// explain says in our own words why there was no answer. The texts of errors can
// hold the URL, whose path may be a secret, and what the receiver sent.
func (s *Sender) explain(err error, within time.Duration) string {
	var (
		refused *dialguard.RefusedError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		plain   tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	switch {
	case errors.As(err, &refused):
		return sentence(refused)
	case errors.As(err, &dns) && dns.IsNotFound:
		return "The host was not found."
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("The receiver did not answer within %s.", within)
	case errors.As(err, &dns):
		return "The host could not be looked up."
	case errors.As(err, &cert):
		return "The certificate of the receiver is not trusted."
	case errors.As(err, &plain), errors.As(err, &alert):
		return "The receiver and the bot could not agree on TLS."
	case errors.Is(err, plainhttp.ErrSwitched):
		return "The receiver answered 101, which is for another protocol."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The receiver refused the connection."
	}
	return "The connection to the receiver failed."
}

// sentence is an error of ours as a sentence.
func sentence(err error) string {
	text := strings.TrimSuffix(err.Error(), ".")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
