package doctor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign/countersign/manifests"
)

// checkRunning sends the running bot what Slack sends to verify its address,
// signed with our signing secret. Whether Slack signs with the same secret only
// Slack can say: it does when the Request URL is verified there.
func (a addresses) checkRunning(ctx context.Context) {
	if a.Address == "" || a.env.SigningSecret.Open() == "" || a.wrong() != nil {
		return // not asked for, or said before
	}
	at := strings.TrimSuffix(a.Address, "/") + manifests.EventsPath
	challenge := rand.Text()
	body, err := json.Marshal(map[string]string{"type": "url_verification", "challenge": challenge})
	if err != nil {
		a.unknown("", "the running bot: %s", err)
		return
	}
	status, answer, err := a.ask(ctx, http.MethodPost, at, body, a.signature(body))
	switch {
	case err != nil:
		a.problem("start the bot; check its address, certificate and ingress", "the running bot: %s does not answer: %s", at, err)
	case status == http.StatusUnauthorized:
		a.problem(`set both to the "Signing Secret" of the app, from "Basic Information", and compare the clocks`,
			"the running bot: %s uses another SLACK_SIGNING_SECRET than this environment, or one of the clocks is wrong", at)
	case status >= 300 && status < 400:
		a.problem("use the address that it redirects to", "the running bot: %s redirects (%d)", at, status)
	case status != http.StatusOK || !bytes.Contains(answer, []byte(challenge)):
		a.problem("find out what listens there", "the running bot: %s answers %d, which is not what the bot answers", at, status)
	default:
		a.fine("the running bot: %s accepts requests signed with SLACK_SIGNING_SECRET", at)
		a.unknown(`look at "Event Subscriptions" in the app's settings: its Request URL must be verified`, "whether Slack signs with the same secret")
	}
}

func (a addresses) signature(body []byte) http.Header {
	stamp := strconv.FormatInt(a.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(a.env.SigningSecret.Open()))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	return http.Header{
		"Content-Type":              {"application/json"},
		"X-Slack-Request-Timestamp": {stamp},
		"X-Slack-Signature":         {"v0=" + hex.EncodeToString(mac.Sum(nil))},
	}
}
