package slacksim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// Sign returns the X-Slack-Signature of a request body: v0, keyed with the
// signing secret as text.
//
// https://docs.slack.dev/authentication/verifying-requests-from-slack
func Sign(signingSecret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(signingSecret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// delivery is one signed request to the app, or one envelope.
type delivery struct {
	kind, url   string
	contentType string
	body        []byte
	headers     map[string]string
	unsigned    bool

	envelope envelope
	retry    int // of an event, and why
	why      string
}

// reply is what the app made of it. problem is empty for a status of 2xx,
// and otherwise a retry reason as the Events API names them.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	problem string
}

// mediaType is the Content-Type of the answer without its parameters.
func (r reply) mediaType() string {
	kind, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func (r reply) timedOut() bool { return r.problem == "http_timeout" || r.problem == "timeout" }

// envelope is how something reaches an app in Socket Mode: what is the body
// over HTTP, and how its acknowledgment is read.
type envelope struct {
	kind    string
	payload []byte
	accepts bool // the acknowledgment may carry what is the answer's body over HTTP
}
