package slackui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretsCannotBePrinted(t *testing.T) {
	c := Config{BotToken: func() string { return "xoxb-hush" }, SigningSecret: func() string { return "hush" }}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c)} {
		require.NotContains(t, s, "hush")
	}
}

func TestEveryProblemOfTheConfigurationIsToldAtOnce(t *testing.T) {
	_, err := New(Config{Team: "acme", APIURL: "slack", Agents: map[string]string{"#ops": "ops"}, Membership: -1})
	for _, problem := range []string{"bot token", "signing secret", "desk", "runner", "clock", "log", `not "acme"`, "API URL", `"#ops"`, "negative"} {
		require.ErrorContains(t, err, problem)
	}
}
