package config

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func hashOf(token string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))) }

func remote(t *testing.T, old, changed string) error {
	t.Helper()
	text := `agents:
  - name: ops
policy: policy.yaml
http: {listen: "127.0.0.1:8090"}
remote_agents:
  - name: claude-code
    owner: U0ALICE
    channel: C0OPS
    tokens: [` + hashOf("one") + `]
    doors: [api, hooks]
    fulfills: [{agent: ops, tools: [lookup]}]
    open_limit: 5
    per_minute: 6
    within: 1h
  - name: ci
    triggers: {users: [U0BOB01, U0CAROL]}
    channel: C0OPS
    tokens_file: ci.tokens
    doors: [api]
`
	require.Contains(t, text, old)
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "ci.tokens"), []byte("# who\n"+hashOf("two")+" since May\n\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "bad.tokens"), []byte("ghp_secret\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "empty.tokens"), []byte("# none\n"), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, old, changed, 1)), 0o600))
	c, err := Read(path)
	require.NoError(t, err)
	return c.Check()
}

func TestWhatARemoteAgentCannotBeFailsTheStart(t *testing.T) {
	require.NoError(t, remote(t, "name: ci", "name: ci"))
	for want, c := range map[string][2]string{
		`remote_agents[1].name: agents[0] is already called "ops"`:       {"name: ci", "name: ops"},
		`remote_agents[1].name: remote_agents[0] is already called`:      {"name: ci", "name: claude-code"},
		"remote_agents[0]: set owner to the person":                      {"    owner: U0ALICE\n", ""},
		"remote_agents[0]: has an owner and triggers":                    {"owner: U0ALICE", "owner: U0ALICE\n    triggers: {users: [U0BOB01]}"},
		`remote_agents[0].owner: "alice" is not a user id`:               {"owner: U0ALICE", "owner: alice"},
		`remote_agents[0].triggers.users: "bob" is not a user id`:        {"owner: U0ALICE", "triggers: {users: [U0ALICE, bob]}"},
		"remote_agents[0].channel":                                       {"channel: C0OPS", "channel: ops"},
		"http.listen: not set, so no remote agent can reach the bot":     {"http: {listen: \"127.0.0.1:8090\"}\n", ""},
		"remote_agents[0].doors: there are none":                         {"    doors: [api, hooks]\n", ""},
		`there is no "fax"; the doors are api, hooks, mcp`:               {"[api, hooks]", "[api, fax]"},
		`remote_agents[0].doors: has "api" twice`:                        {"[api, hooks]", "[api, api]"},
		"remote_agents[1]: has no credential":                            {"    tokens_file: ci.tokens\n", ""},
		"remote_agents[1].tokens_file: line 1 is not sha256:":            {"ci.tokens", "bad.tokens"},
		"remote_agents[1].tokens_file: has no token":                     {"ci.tokens", "empty.tokens"},
		"remote_agents[1].tokens_file: open":                             {"ci.tokens", "no.tokens"},
		"remote_agents[0].tokens[0]: is not sha256:":                     {hashOf("one"), "one"},
		"remote_agents[1]: one of its tokens is also one of remote_agen": {hashOf("one"), hashOf("two")},
		"remote_agents[0].open_limit":                                    {"open_limit: 5", "open_limit: -1"},
		"remote_agents[0].within":                                        {"within: 1h", "within: 1ms"},
		"remote_agents[0].fulfills[0].agent: there is no agent":          {"agent: ops,", "agent: other,"},
		"an agent never gives the results of its own calls":              {"agent: ops,", "agent: claude-code,"},
		"must name an agent and its tools":                               {"{agent: ops, tools: [lookup]}", "{agent: ops}"},
	} {
		err := remote(t, c[0], c[1])
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "ghp_secret", "what was written may be the token")
	}
}

func TestTokensAreReplacedWithoutARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	at := time.Now()
	put := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		at = at.Add(time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	put(hashOf("one"))
	var log bytes.Buffer
	of := Config{RemoteAgents: []RemoteAgent{{Name: "ci", Tokens: []string{hashOf("zero")}, TokensFile: path}}}
	all, err := NewCredentials(of, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	tokens := all.Agents[0]
	has := func(names ...string) {
		t.Helper()
		var want []TokenHash
		for _, n := range names {
			want = append(want, sha256.Sum256([]byte(n)))
		}
		require.Equal(t, want, tokens.Now(t.Context()))
	}
	has("zero", "one")
	put(hashOf("one") + "\n" + hashOf("two") + " the next one\n")
	has("zero", "one", "two")
	put("half a li")
	has("zero", "one", "two")
	has("zero", "one", "two")
	require.Equal(t, 1, strings.Count(log.String(), "cannot be read"))
	require.NotContains(t, log.String(), "half")
	require.Contains(t, log.String(), "of=ci file="+path+" err=", "which file it is")
	put("\ufeff" + hashOf("two") + "\r\n") // as an editor of Windows saves it
	has("zero", "two")
	has("zero", "two")
	require.Equal(t, 2, strings.Count(log.String(), `msg="tokens were read again" of=ci file=`+path+" tokens="), "that one counts or no longer counts")
	require.NoError(t, os.Remove(path))
	has("zero", "two")
	of.RemoteAgents[0].Tokens = []string{hashOf("three"), hashOf("four")}
	all.Follow(of)
	has("three", "four", "two")
	of.RemoteAgents[0].Tokens = nil
	all.Follow(of)
	has("two")
}

// A store of files may give all of them the same time, and one token is as long as another.
func TestTokensAreReadAgainFromAnotherFileOfTheSameTimeAndSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	put := func(token string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+".new", []byte(hashOf(token)), 0o600))
		require.NoError(t, os.Chtimes(path+".new", time.Unix(1, 0), time.Unix(1, 0)))
		require.NoError(t, os.Rename(path+".new", path))
	}
	put("one")
	all, err := NewCredentials(Config{RemoteAgents: []RemoteAgent{{TokensFile: path}}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	put("two")
	require.Equal(t, []TokenHash{sha256.Sum256([]byte("two"))}, all.Agents[0].Now(t.Context()))
}

// As at the start, a token proves one agent or one person.
func TestAFileWithATokenOfSomebodyElseIsNotTakenUp(t *testing.T) {
	folder := t.TempDir()
	at := time.Now()
	put := func(name, token string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(hashOf(token)), 0o600))
		at = at.Add(time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	var log bytes.Buffer
	all, err := NewCredentials(Config{
		RemoteAgents: []RemoteAgent{{Name: "ci", TokensFile: put("ci", "one")}, {Name: "desk", Tokens: []string{hashOf("two")}}},
		Web:          Web{People: []WebPerson{{User: "U0ANN", TokensFile: put("ann", "three")}}},
	}, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	ci, ann := all.Agents[0], all.People[0]
	has := func(who *Tokens, token string) {
		t.Helper()
		require.Equal(t, []TokenHash{sha256.Sum256([]byte(token))}, who.Now(t.Context()))
	}
	put("ci", "three")
	has(ci, "one")
	require.Contains(t, log.String(), "one of them is also one of U0ANN")
	put("ann", "two")
	has(ann, "three")
	require.Contains(t, log.String(), "one of them is also one of desk")
	require.Equal(t, 2, strings.Count(log.String(), "cannot be read"), "once each")
	put("ann", "four")
	has(ci, "three")
	has(ann, "four")

	put("ci", "four")
	put("ann", "three")
	has(ann, "three")
	has(ci, "four")
}

// Files that change at the same moment are taken up one after the other.
func TestFilesOfTokensThatChangeTogetherProveOneAgentEach(t *testing.T) {
	folder := t.TempDir()
	var c Config
	for n := range 8 {
		path := filepath.Join(folder, strconv.Itoa(n))
		require.NoError(t, os.WriteFile(path, []byte(hashOf(strconv.Itoa(n))), 0o600))
		c.RemoteAgents = append(c.RemoteAgents, RemoteAgent{Name: strconv.Itoa(n), TokensFile: path})
	}
	all, err := NewCredentials(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, a := range c.RemoteAgents {
		require.NoError(t, os.WriteFile(a.TokensFile, []byte(hashOf("the same")+" of all\n"), 0o600))
	}
	var asking sync.WaitGroup
	for _, a := range all.Agents {
		asking.Go(func() { a.Now(t.Context()) })
	}
	asking.Wait()
	n := 0
	for _, a := range all.Agents {
		if slices.Contains(a.Now(t.Context()), TokenHash(sha256.Sum256([]byte("the same")))) {
			n++
		}
	}
	require.Equal(t, 1, n)
}

// Each client of a gateway, and each person, has the tokens that are listed for it.
func TestListedTokensFollowTheConfiguration(t *testing.T) {
	of := func(prefix string) Config {
		tokens := func(name string) []string { return []string{hashOf(prefix + name)} }
		return Config{
			RemoteAgents: []RemoteAgent{{Name: "ci", Tokens: tokens("ci")}},
			Gateways: []Gateway{
				{Name: "one", Clients: []GatewayClient{{Tokens: tokens("a")}, {Tokens: tokens("b")}}},
				{Name: "two", Clients: []GatewayClient{{Tokens: tokens("c")}}},
			},
			Web: Web{People: []WebPerson{{User: "U0ANN", Tokens: tokens("ann")}, {User: "U0BOB", Tokens: tokens("bob")}}},
		}
	}
	all, err := NewCredentials(of("old-"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	has := func(prefix string) {
		t.Helper()
		for i, name := range []string{"a", "b", "c", "ci", "ann", "bob"} {
			one := slices.Concat(all.Clients, all.Agents, all.People)[i]
			require.Equal(t, []TokenHash{sha256.Sum256([]byte(prefix + name))}, one.Now(t.Context()))
		}
	}
	has("old-")
	all.Follow(of("new-"))
	has("new-")
	_, restart := of("old-").Changes(of("new-"))
	require.Empty(t, restart)
}
