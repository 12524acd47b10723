package config

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What can change while the bot runs is told from what cannot, key by key.
func TestChangesAreToldApartByTheirKeys(t *testing.T) {
	path := write(t, good)
	before, err := Read(path)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		old, by           string
		reloaded, restart []string
	}{
		"nothing":          {"", "", nil, nil},
		"instructions":     {"You help.", "You help a lot.", []string{"agents[0].instructions"}, nil},
		"an API":           {"instructions: You help.", "instructions: You help.\n    model_api: responses", []string{"agents[0].model_api"}, nil},
		"a limit":          {"requests: 5", "requests: 6", []string{"agents[0].limits.requests"}, nil},
		"a folder":         {"/srv/reports", "/srv/others", nil, []string{"agents[0].files"}},
		"an approval":      {"read_file: {approval: true}", "read_file: {approval: false}", nil, []string{"agents[0].tools"}},
		"who may ask":      {"groups: [S0SRE1]", "groups: [S0SRE2]", nil, []string{"agents[0].who"}},
		"another agent":    {"agents:\n", "agents:\n  - {name: more, channels: [C0MORE]}\n", nil, []string{"agents"}},
		"of both kinds":    {"You help.", "Help.\n    replies: all", []string{"agents[0].instructions"}, []string{"agents[0].replies"}},
		"where Redis is":   {"prefix: ours", "prefix: theirs", nil, []string{"redis.prefix"}},
		"a listener of it": {"redis:", "metrics: {listen: ':9090'}\nredis:", nil, []string{"metrics.listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(good, c.old, c.by, 1)), 0o600))
			after, err := before.Again()
			require.NoError(t, err)
			reloaded, restart := before.Changes(after)
			require.Equal(t, c.reloaded, reloaded)
			require.Equal(t, c.restart, restart)
		})
	}
	require.NoError(t, os.WriteFile(path, []byte("policy: x\n"), 0o600))
	_, err = before.Again()
	require.ErrorContains(t, err, "agents: there are none")
	same, err := Config{Policy: "p"}.Again()
	require.NoError(t, err, "what was read from no file stays as it is")
	require.Equal(t, "p", same.Policy)
}

// A secret may be in a file, as orchestrators mount them.
func TestSecretsComeFromFiles(t *testing.T) {
	file := write(t, "from-a-file\n")
	environ := []string{"SLACK_SIGNING_SECRET=s", "REDIS_URL=redis://h", "OPENAI_API_KEY=k"}
	e, err := ReadEnvironment(append(environ, "SLACK_BOT_TOKEN_FILE="+file, "HOOK_FILE="+file, "GONE_FILE="+file+".gone"))
	require.NoError(t, err)
	require.Equal(t, "from-a-file", e.SlackToken.Open())
	require.Contains(t, e.Secrets(), "from-a-file")
	hook, err := e.secret("at", "HOOK")
	require.NoError(t, err)
	require.Equal(t, "from-a-file", hook)
	_, err = e.secret("at", "GONE")
	require.ErrorContains(t, err, "at: GONE_FILE: open ")

	for want, more := range map[string]string{
		"SLACK_BOT_TOKEN and SLACK_BOT_TOKEN_FILE: both are set": "SLACK_BOT_TOKEN=x\nSLACK_BOT_TOKEN_FILE=" + file,
		"SLACK_BOT_TOKEN_FILE: open ":                            "SLACK_BOT_TOKEN_FILE=" + file + ".gone",
		"is empty":                                               "SLACK_BOT_TOKEN_FILE=" + write(t, " \n"),
		"SLACK_BOT_TOKEN: not set":                               "SLACK_API_URL_FILE=" + file,
	} {
		_, err := ReadEnvironment(append(environ, strings.Split(more, "\n")...))
		require.ErrorContains(t, err, want)
		require.Len(t, Problems(err), 1, "%v", err)
		require.NotContains(t, err.Error(), "from-a-file")
	}
	_, err = ReadEnvironment([]string{"SLACK_APP_TOKEN_FILE=" + file, "SLACK_BOT_TOKEN=x", "REDIS_URL=redis://h", "OPENAI_API_KEY=k"})
	require.NoError(t, err, "Socket Mode needs no signing secret")
}

// What an editor or a copy has left in a secret is said when the program starts: Slack, or
// the provider of the model, would only say that the secret is wrong.
func TestASecretHasNoInvisibleCharacter(t *testing.T) {
	for _, secret := range []string{"xoxb-old\nxoxb-new", "\ufeffxoxb-new", "xoxb-n\x00ew"} {
		e, err := ReadEnvironment([]string{"SLACK_SIGNING_SECRET=s", "OPENAI_API_KEY=any text", "SLACK_BOT_TOKEN_FILE=" + write(t, secret)})
		require.ErrorContains(t, err, "SLACK_BOT_TOKEN: it has a line break or an invisible character in it")
		require.Len(t, Problems(err), 1)
		require.NotContains(t, err.Error(), "new")
		_, err = ReadEnvironment([]string{"SLACK_SIGNING_SECRET=s\r", "OPENAI_API_KEY=k", "SLACK_BOT_TOKEN=x"})
		require.ErrorContains(t, err, "SLACK_SIGNING_SECRET: it has a line break")
		require.NotEmpty(t, e.Secrets(), "they are kept out of the log all the same")
	}
}

// The same holds for the secrets that the configuration names: a service would only say that
// they are wrong, at the first call. A program may get a key of several lines.
func TestASecretThatTheFileNamesHasNoInvisibleCharacter(t *testing.T) {
	headers := map[string]string{"Authorization": "TOKEN"}
	c := Config{
		Agents: []Agent{{
			Name: "ops", HTTP: &HTTPTools{Tools: []HTTPTool{{Name: "crm", Headers: headers}}}, HostedMCP: map[string]HostedMCP{"hosted": {Headers: headers}},
			MCP: map[string]MCPServer{"docs": {URL: "https://docs.example/mcp", Headers: headers}},
		}},
		RemoteAgents: []RemoteAgent{{Name: "ci", Webhooks: []Webhook{{Name: "w", URL: "https://ci.example/", Secrets: []string{"TOKEN"}}}}},
		Checks:       []Check{{Name: "k", URL: "https://ci.example/", Secrets: []string{"TOKEN"}}},
	}
	problems := func(e Environment) []error {
		_, servers := c.Servers(e)
		_, endpoints := c.Endpoints(e)
		_, checks := signingSecrets("checks[0]", c.Checks[0].Secrets, e)
		return Problems(errors.Join(servers, endpoints, checks, c.HTTPSecrets(e)))
	}
	const secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	require.Empty(t, problems(Environment{}.With("TOKEN", secret+"\r\n")))
	for name, e := range map[string]Environment{
		"a byte order mark":    Environment{}.With("TOKEN", "\ufeff"+secret),
		"a zero-width space":   Environment{}.With("TOKEN", secret+"\u200b"),
		"two lines":            Environment{}.With("TOKEN", secret+"\r\n"+secret),
		"a mark, in a file":    Environment{}.With("TOKEN_FILE", write(t, "\ufeff"+secret+"\n")),
		"a variable, and file": Environment{}.With("TOKEN_FILE", write(t, secret)).With("TOKEN", secret),
		"an empty file":        Environment{}.With("TOKEN_FILE", write(t, "\n")),
		"white space":          Environment{}.With("TOKEN", " \n"),
	} {
		all := problems(e)
		require.Len(t, all, 5, name)
		for _, err := range all {
			require.ErrorContains(t, err, "TOKEN", name)
			require.NotContains(t, err.Error(), "AAAA", name)
		}
	}

	c = Config{Agents: []Agent{{Name: "ops", MCP: map[string]MCPServer{"docs": {Command: "docs", Env: map[string]string{"KEY": "KEY"}}}}}}
	servers, err := c.Servers(Environment{}.With("KEY", "-----BEGIN\n-----END"))
	require.NoError(t, err)
	require.Equal(t, "-----BEGIN\n-----END", servers[0].Env["KEY"])
}

// An agent that could read the file of a secret would have the secret, whichever part
// of the configuration names its variable.
func TestNoAgentReachesTheFilesOfSecrets(t *testing.T) {
	folder := t.TempDir()
	secret := folder + "/token"
	require.NoError(t, os.WriteFile(secret, []byte("xoxb"), 0o600))
	for _, name := range []string{"SLACK_BOT_TOKEN", "HOOK_SECRET", "CRM_TOKEN", "SEARCH_TOKEN", "PAGER_TOKEN"} {
		c := Config{
			Agents: []Agent{
				{Name: "ops", Files: folder},
				{Name: "sales", HTTP: &HTTPTools{Tools: []HTTPTool{{Name: "crm", Headers: map[string]string{"Authorization": "CRM_TOKEN"}}}}},
				{Name: "web", MCP: map[string]MCPServer{"search": {Command: "search", Env: map[string]string{"TOKEN": "SEARCH_TOKEN"}}}},
			},
			Gateways:     []Gateway{{Name: "desk", MCP: map[string]MCPServer{"pager": {URL: "https://p", Headers: map[string]string{"Authorization": "PAGER_TOKEN"}}}}},
			RemoteAgents: []RemoteAgent{{Name: "ci", Webhooks: []Webhook{{Name: "w", Secrets: []string{"HOOK_SECRET"}}}}},
		}
		_, err := NewToolSets(c, Environment{}.With(name+"_FILE", secret), nil)
		require.ErrorContains(t, err, folder+" contains a secret, "+secret)
	}
}

// An agent that could write the file of a token, a key or an accepted tool would be
// whoever it likes, or have whatever tool it likes.
func TestNoAgentReachesTheFilesThatSayWhoAndWhatIsAccepted(t *testing.T) {
	folder := t.TempDir()
	file := folder + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, c := range map[string]Config{
		"the key for Redis":                           {Redis: Redis{TLS: RedisTLS{KeyFile: file}}},
		"the authority that Redis is checked against": {Redis: Redis{TLS: RedisTLS{CAFile: file}}},
		"the key of the receipts":                     {Receipts: Receipts{KeyFile: file}},
		"the old keys of the receipts":                {Receipts: Receipts{OldKeys: file}},
		"the accepted tools of MCP servers":           {MCPLock: file},
		"the tokens of ci":                            {RemoteAgents: []RemoteAgent{{Name: "ci", TokensFile: file}}},
		"the keys of https://i":                       {RemoteAgents: []RemoteAgent{{Name: "ci", JWT: &JWT{Issuer: "https://i", Keys: file}}}},
		"the tokens of desk":                          {Gateways: []Gateway{{Name: "desk", Clients: []GatewayClient{{TokensFile: file}}}}},
		"the tokens of U0ALICE":                       {Web: Web{People: []WebPerson{{User: "U0ALICE", TokensFile: file}}}},
		"the keys of https://w":                       {Web: Web{Issuers: []WebIssuer{{Issuer: "https://w", Keys: file}}}},
	} {
		c.Agents = []Agent{{Name: "ops", Files: folder}}
		_, err := NewToolSets(c, Environment{}, nil)
		require.ErrorContains(t, err, folder+" contains "+want+", "+file)
	}
}

func TestLogsAreTextOrJSON(t *testing.T) {
	for format, want := range map[string]string{"": `level=INFO msg=hello`, "text": `level=INFO msg=hello`, "json": `"level":"INFO","msg":"hello"}`} {
		var out strings.Builder
		log := Environment{LogFormat: format}.NewLogger(&out)
		log.Info("hello")
		require.Contains(t, out.String(), want)
		log.Info("done", slog.Duration("took", 1200*time.Millisecond), slog.Group("call", slog.Any("waited", time.Minute)))
		require.Regexp(t, `took"?[=:]"?1\.2s`, out.String())
		require.Regexp(t, `waited"?[=:]"?1m0s`, out.String())
	}
	_, err := ReadEnvironment([]string{"COUNTERSIGN_LOG_FORMAT=xml"})
	require.ErrorContains(t, err, `COUNTERSIGN_LOG_FORMAT: must be text or json, but is "xml"`)
}
