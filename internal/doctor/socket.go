package doctor

import (
	"context"
	"net/http"
	"strings"

	"github.com/slack-go/slack"
)

// newAppToken is how to come by the token of Socket Mode.
const newAppToken = `generate one with the scope connections:write in "Basic Information", "App-Level Tokens", and copy it into SLACK_APP_TOKEN`

// checkAppToken looks at the token of Socket Mode, if there is one.
func (c *checker) checkAppToken() {
	token := c.env.AppToken.Open()
	if token == "" {
		return
	}
	if strings.TrimSpace(token) != token {
		c.problem("remove the space", "SLACK_APP_TOKEN: begins or ends with a space")
	}
	if !strings.HasPrefix(strings.TrimSpace(token), "xapp-") {
		c.problem(newAppToken, "SLACK_APP_TOKEN: this is not an app-level token; those begin with xapp-")
	}
	if c.Address != "" {
		c.problem("leave out one of them", "--url: with SLACK_APP_TOKEN, the bot connects to Slack and has no address")
	}
}

// checkSocket asks Slack for the address of a connection, and does not connect.
func (c *checker) checkSocket(ctx context.Context) {
	token := c.env.AppToken.Open()
	if token == "" || c.env.SlackAPIURL == "" {
		return
	}
	api := slack.New("", slack.OptionAppLevelToken(token), slack.OptionAPIURL(c.env.SlackAPIURL),
		slack.OptionHTTPClient(&http.Client{Transport: c.HTTP, Timeout: Timeout}))
	_, _, err := api.StartSocketModeContext(ctx)
	switch {
	case isCode(err, "invalid_auth", "not_authed", "not_allowed_token_type", "token_revoked", "token_expired", "missing_scope"):
		c.problem(newAppToken, "Slack: cannot open a connection with SLACK_APP_TOKEN (apps.connections.open): %s", err)
	case err != nil:
		c.problem(slackAdvice(err), "Slack: cannot open a connection (apps.connections.open): %s", err)
	default:
		c.fine("Slack: opens connections with SLACK_APP_TOKEN")
		c.unknown(`look at "Socket Mode" in the app's settings`, "whether Socket Mode is turned on")
	}
}
