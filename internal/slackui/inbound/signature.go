package inbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// window is how far a request's timestamp may be from our clock, before or
// after it.
const window = 300 * time.Second

// Why a request is rejected. The caller does not learn the reason.
var (
	ErrNoSignature  = errors.New("signature or timestamp missing")
	errOldSignature = errors.New("timestamp outside the window")
	errBadSignature = errors.New("signature does not match")
)

// verify checks Slack's signature over the raw body: v0, the secret as text,
// lowercase hex, compared in constant time.
func verify(secret string, h http.Header, body []byte, now time.Time) error {
	stamp, given := h.Get("X-Slack-Request-Timestamp"), h.Get("X-Slack-Signature")
	if stamp == "" || given == "" {
		return ErrNoSignature
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != stamp {
		return ErrNoSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > window || age < -window {
		return errOldSignature
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	want := hex.AppendEncode([]byte("v0="), mac.Sum(nil))
	if !hmac.Equal(want, []byte(given)) {
		return errBadSignature
	}
	return nil
}
