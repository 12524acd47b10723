package doctor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/manifests"
)

// checkRunning sends the running bot what Slack sends to verify its address,
// signed with our signing secret. Whether Slack signs with the same secret only
// Slack can say: it does when the Request URL is verified there.
func (c *checker) checkRunning(ctx context.Context) {
	if c.Address == "" || c.env.SigningSecret.Open() == "" || c.wrongAddress() != nil {
		return // not asked for, or said before
	}
	at := strings.TrimSuffix(c.Address, "/") + manifests.EventsPath
	challenge := rand.Text()
	body, err := json.Marshal(map[string]string{"type": "url_verification", "challenge": challenge})
	if err != nil {
		c.unknown("", "the running bot: %s", err)
		return
	}
	status, answer, err := c.ask(ctx, http.MethodPost, at, body, c.signature(body))
	switch {
	case err != nil:
		c.problem("start the bot; check its address, certificate and ingress", "the running bot: %s does not answer: %s", at, err)
	case status == http.StatusUnauthorized:
		c.problem(`set both to the "Signing Secret" of the app, from "Basic Information", and compare the clocks`,
			"the running bot: %s uses another SLACK_SIGNING_SECRET than this environment, or one of the clocks is wrong", at)
	case status >= 300 && status < 400:
		c.problem("use the address that it redirects to", "the running bot: %s redirects (%d)", at, status)
	case status != http.StatusOK || !bytes.Contains(answer, []byte(challenge)):
		c.problem("find out what listens there", "the running bot: %s answers %d, which is not what the bot answers", at, status)
	default:
		c.fine("the running bot: %s accepts requests signed with SLACK_SIGNING_SECRET", at)
		c.unknown(`look at "Event Subscriptions" in the app's settings: its Request URL must be verified`, "whether Slack signs with the same secret")
	}
}

// wrongAddress returns why Slack could not reach the bot at --url. A Slack on
// this machine, a simulator, reaches any address on this machine.
func (c *checker) wrongAddress() error {
	if onThisMachine(c.env.SlackAPIURL) && onThisMachine(c.Address) {
		return nil
	}
	return manifests.CheckAddress(c.Address)
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

func (c *checker) signature(body []byte) http.Header {
	stamp := strconv.FormatInt(c.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(c.env.SigningSecret.Open()))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	return http.Header{
		"Content-Type":              {"application/json"},
		"X-Slack-Request-Timestamp": {stamp},
		"X-Slack-Signature":         {"v0=" + hex.EncodeToString(mac.Sum(nil))},
	}
}

// checkModel asks the provider which models it has, which costs nothing, and
// then each model for one word.
func (c *checker) checkModel(ctx context.Context) {
	base, err := url.Parse(c.env.OpenAIBaseURL)
	if err != nil || base.Host == "" || c.env.OpenAIKey.Open() == "" {
		return // said before
	}
	at := "model: " + base.Host
	header := http.Header{"Authorization": {"Bearer " + c.env.OpenAIKey.Open()}}
	status, answer, err := c.ask(ctx, http.MethodGet, strings.TrimSuffix(c.env.OpenAIBaseURL, "/")+"/models", nil, header)
	var list struct{ Data []listedModel }
	switch {
	case err != nil:
		c.problem("check OPENAI_BASE_URL, and that this machine can reach it", "%s does not answer: %s", at, err)
		return
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		c.problem("correct OPENAI_API_KEY", "%s refuses the key (%d)", at, status)
		return
	case status != http.StatusOK || json.Unmarshal(answer, &list) != nil || len(list.Data) == 0:
		c.unknown("", "%s: whether it has the models of the agents; it does not list its models (%d)", at, status)
		c.tryModels(ctx, at)
		return
	}
	for _, name := range c.models() {
		has := slices.Contains(list.Data, listedModel{name})
		if has {
			c.fine("%s accepts the key and has %s", at, name)
		} else {
			c.unknown("correct OPENAI_MODEL or agents[].model, unless the provider has models that it does not list", "%s accepts the key but does not list the model %s", at, name)
		}
	}
	c.tryModels(ctx, at)
}

type listedModel struct{ ID string }

// models are the models of the agents.
func (c *checker) models() []string {
	var names []string
	for _, a := range c.config.Agents {
		name := a.Model
		if name == "" {
			name = c.env.OpenAIModel
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ask makes one request. It follows no redirect: that would carry what is
// signed, or the key, elsewhere.
func (c *checker) ask(ctx context.Context, method, at string, body []byte, h http.Header) (status int, answer []byte, err error) {
	client := c.client(Patience)
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header = h
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer, err
}

// client follows no redirect.
func (c *checker) client(patience time.Duration) *http.Client {
	return &http.Client{
		Transport: c.HTTP, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
