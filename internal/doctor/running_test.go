package doctor_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// What answers at --url is judged by how it answers what Slack would send there.
func TestCheckOfWhatAnswersAtTheAddress(t *testing.T) {
	const at = "the running bot: https://bot.example.com/slack/events "
	for name, c := range map[string]struct {
		answers http.Handler
		want    string
	}{
		"the challenge": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Challenge string }
			if json.NewDecoder(r.Body).Decode(&body) == nil && r.Header.Get("X-Slack-Signature") != "" {
				_, _ = w.Write([]byte(body.Challenge))
			}
		}), "ok               " + at + "accepts requests signed with SLACK_SIGNING_SECRET"},
		"a refusal": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}), "problem          " + at + "uses another SLACK_SIGNING_SECRET"},
		"something else": {http.NotFoundHandler(), "problem          " + at + "answers 404, which is not what the bot answers"},
		"anything":       {http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "answers 200, which is not what the bot answers"},
		"a redirect":     {http.RedirectHandler("https://other.example.com/", http.StatusFound), "problem          " + at + "redirects (302)"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, slacksim.Config{})
			front := httptest.NewTLSServer(c.answers)
			t.Cleanup(front.Close)
			delete(i.env, "SLACK_BOT_TOKEN") // the client reaches only the front
			delete(i.env, "OPENAI_API_KEY")
			i.o.Address, i.o.HTTP = "https://bot.example.com/", front.Client().Transport
			require.Contains(t, i.check(), c.want)
		})
	}
}

// A Slack on this machine reaches the bot at any address of this machine, and
// the real one does not.
func TestAnAddressOfThisMachineIsEnoughForASimulator(t *testing.T) {
	i := newInstallation(t, slacksim.Config{})
	i.o.Online = false
	i.o.Address = "http://127.0.0.1:8080"
	require.NotContains(t, i.check(), "--url: ")
	i.env["SLACK_API_URL"] = "https://slack.com/api/"
	require.Contains(t, i.check(), "--url: must begin with https://")
	i.o.Address = "https://nobody.invalid"
	require.Contains(t, i.check(), "--url: must name a host")
}
