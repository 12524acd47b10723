package doctor_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

// installation is everything around a bot that is to be checked.
type installation struct {
	t     *testing.T
	slack *slacksim.Server
	redis *miniredis.Miniredis
	dir   string
	text  string // of the configuration
	rules string // of the policy
	env   map[string]string
	o     doctor.Options
}

const wholeConfig = `
agents:
  - name: ops
    files: reports
    channels: [C0OPS]
    who: {groups: [S0SRE], users: [U0ALICE]}
policy: policy.yaml
redis: {durability: fsync}
`

const wholePolicy = `
groups: {sre: S0SRE}
people: {carol: U0CAROL}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
rules:
  - name: deletions
    tools: [delete_file]
    ask:
      fragile: true
      quorums:
        - {name: sre, need: 1, from: {groups: [sre]}}
        - {name: security, need: 1, from: {people: [carol]}}
`

// oneOfSRE is a policy in which someone in @sre approves what a tool asks for.
const oneOfSRE = `
groups: {sre: S0SRE}
default:
  why: It changes something.
  quorums: [{name: sre, need: 1, from: {groups: [sre]}}]
`

// newInstallation is one in which nothing is wrong, but for what miniredis
// cannot say.
func newInstallation(t *testing.T, c slacksim.Config) *installation {
	t.Helper()
	if c.Scopes == nil {
		c.Scopes = append(manifests.Scopes(), "channels:read")
	}
	slack := slacksim.New(c)
	slackServer := httptest.NewServer(slack)
	t.Cleanup(func() { slack.Close(); slackServer.Close() })
	model := httptest.NewServer(openaisim.New(callsWhatItIsAsked()))
	t.Cleanup(model.Close)
	memory := miniredis.RunT(t)
	i := &installation{t: t, slack: slack, redis: memory, dir: t.TempDir(), text: wholeConfig, rules: wholePolicy, env: map[string]string{
		"SLACK_BOT_TOKEN": slack.BotToken(), "SLACK_SIGNING_SECRET": slack.SigningSecret(), "SLACK_API_URL": slackServer.URL + "/api/",
		"REDIS_URL": "redis://" + memory.Addr(), "OPENAI_API_KEY": "sk-scripted",
		"OPENAI_BASE_URL": model.URL + "/v1", "OPENAI_MODEL": openaisim.ModelName,
	}}
	i.o = doctor.Options{Online: true, HTTP: http.DefaultTransport, Now: time.Now}
	require.NoError(t, os.Mkdir(filepath.Join(i.dir, "reports"), 0o700))
	return i
}

// check returns what is found, a line each.
func (i *installation) check() string {
	i.t.Helper()
	i.o.Path = filepath.Join(i.dir, "config.yaml")
	require.NoError(i.t, os.WriteFile(i.o.Path, []byte(i.text), 0o600))
	require.NoError(i.t, os.WriteFile(filepath.Join(i.dir, "policy.yaml"), []byte(i.rules), 0o600))
	i.o.Environ = nil
	for k, v := range i.env {
		i.o.Environ = append(i.o.Environ, k+"="+v)
	}
	var out bytes.Buffer
	_ = doctor.Report(&out, doctor.Check(i.t.Context(), i.o))
	return out.String()
}

func (i *installation) replace(old, by string) {
	i.t.Helper()
	require.Contains(i.t, i.text, old)
	i.text = strings.ReplaceAll(i.text, old, by)
}

// callsWhatItIsAsked is a model that calls the tool that it is told to call.
func callsWhatItIsAsked() openaisim.Story {
	return openaisim.Story{
		Name: "check", Prompt: "one call of the tool",
		Match: func(text string) bool { return strings.Contains(text, "one call of the tool") },
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			return openaisim.Reply{Calls: []openaisim.Call{{Name: c.Tools[0], Args: "{}"}}}
		},
	}
}
