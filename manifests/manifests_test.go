package manifests_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/manifests"
)

const address = "https://bot.acme.com"

// calls are the methods of Slack that Countersign calls, what each needs, and
// what for.
var calls = []struct{ method, scope, reason string }{
	{"auth.test", "", "who the token is, at the start"},
	{"auth.teams.list", "", "which workspaces an organization has that installed the app"},
	{"chat.postMessage", "chat:write", "a card, an answer"},
	{"chat.update", "chat:write", "a card that changed"},
	{"chat.postEphemeral", "chat:write", "a refusal, to one person"},
	{"conversations.open", "im:write", "a reminder, or the refusal of somebody who is not in the channel"},
	{"conversations.members", "channels:read", "who is in a public channel whose members approve"},
	{"conversations.members", "groups:read", "who is in a private channel whose members approve"},
	{"views.open", "", "the form for a reason, or the full arguments"},
	{"views.push", "", "such a form over a review"},
	{"views.publish", "", "the Home tab of somebody"},
	{"views.update", "", "what such a form shows a moment later"},
	{"usergroups.users.list", "usergroups:read", "who is in a group at the click"},
	{"usergroups.list", "usergroups:read", "bot check: whether the groups of the policy exist"},
	{"users.info", "users:read", "bots, guests and the deactivated cannot approve"},
}

// unasked are the methods that are called only with settings whose documentation
// names the scope: an app without them does not ask for it.
var unasked = map[string]string{"users.lookupByEmail": "users:read.email"}

// deliveries are what Slack sends us, and what that needs.
var deliveries = map[string]string{
	"app_home_opened":         "",
	"app_mention":             "app_mentions:read",
	"/countersign":            "commands",
	"member_joined_channel":   "channels:read", // groups:read, of private ones
	"member_left_channel":     "channels:read",
	"message.im":              "im:history",
	"subteam_members_changed": "usergroups:read",
	"subteam_updated":         "usergroups:read",
	"user_change":             "users:read",
}

func read(t *testing.T) manifests.App {
	t.Helper()
	a, err := manifests.ReadSlack([]byte(manifests.Slack(address)))
	require.NoError(t, err)
	return a
}

func TestTheManifestIsValidBySlacksSchema(t *testing.T) {
	schema, err := os.Open("testdata/slack-manifest-schema-v2.json")
	require.NoError(t, err)
	defer func() { _ = schema.Close() }()
	doc, err := jsonschema.UnmarshalJSON(schema)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(withoutLookahead)
	require.NoError(t, c.AddResource("manifest.json", doc))
	rules, err := c.Compile("manifest.json")
	require.NoError(t, err)
	validate := func(text string) error {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
		require.NoError(t, err)
		return rules.Validate(v)
	}
	text := manifests.Slack(address)
	require.NoError(t, validate(text))
	require.Error(t, validate(text+"scopes: [chat:write]\n"), "the schema refuses what it does not know")
	require.Error(t, validate(strings.Replace(text, "request_url: https", "request_url: ftp", 1)))
}

// withoutLookahead compiles the schema's patterns. Those of domains, which our
// manifest does not name, look ahead, and Go's expressions cannot.
func withoutLookahead(pattern string) (jsonschema.Regexp, error) {
	return regexp.Compile(strings.ReplaceAll(pattern, `(?![\.\-])`, ""))
}

func TestTheScopesAreThoseThatOurCallsNeed(t *testing.T) {
	var needed []string
	for _, c := range calls {
		require.NotEmpty(t, c.reason)
		if c.scope != "" {
			needed = append(needed, c.scope)
		}
	}
	a := read(t)
	var events []string
	for delivery, scope := range deliveries {
		if scope != "" {
			needed = append(needed, scope)
		}
		if !strings.HasPrefix(delivery, "/") {
			events = append(events, delivery)
		}
	}
	slices.Sort(needed)
	require.Equal(t, slices.Compact(needed), a.OAuth.Scopes.Bot, "sorted, each once, no more and no fewer")
	require.Equal(t, a.OAuth.Scopes.Bot, manifests.Scopes())
	slices.Sort(events)
	require.Equal(t, events, a.Settings.Events.Bot)
	require.Len(t, a.Features.SlashCommands, 1)
	require.Contains(t, deliveries, a.Features.SlashCommands[0].Command)
	require.True(t, a.Features.AppHome.Home, "without it nothing can be published there")
	source, err := os.ReadFile("../internal/slackui/ref/action.go")
	require.NoError(t, err)
	require.Len(t, a.Features.Shortcuts, 1)
	require.Equal(t, "message", a.Features.Shortcuts[0].Type)
	require.Contains(t, string(source), `"`+a.Features.Shortcuts[0].Callback+`"`)
}

func TestEveryScopeIsJustified(t *testing.T) {
	for _, s := range manifests.Scopes() {
		require.Regexp(t, `(?m)^ +- `+regexp.QuoteMeta(s)+` # \S.{10,}$`, manifests.Slack(address))
	}
}

// What the table says we call is what the source calls.
func TestTheTableNamesEveryCallOfTheSource(t *testing.T) {
	inSource := map[string]bool{"usergroups.list": true} // bot check
	files, err := filepath.Glob("../internal/slackui/slackapi/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"((?:auth|chat|conversations|usergroups|users|views)\.[a-zA-Z.]+)"`).FindAllStringSubmatch(string(source), -1) {
			inSource[m[1]] = true
		}
	}
	inTable := map[string]bool{}
	for _, c := range calls {
		inTable[c.method] = true
	}
	settings, err := os.ReadFile("../docs/settings.md")
	require.NoError(t, err)
	for method, scope := range unasked {
		inTable[method] = true
		require.NotContains(t, manifests.Scopes(), scope)
		require.Contains(t, string(settings), "`"+scope+"`")
	}
	require.Equal(t, inSource, inTable)
}

// With the scopes of the manifest nothing that we call is refused for want of
// one; without any one of them, something is.
func TestTheScopesAreEnoughAndNoneIsTooMany(t *testing.T) {
	refused := func(scopes []string) []string {
		sim := slacksim.New(slacksim.Config{
			Scopes: append([]string{}, scopes...),
			Channels: append(slacksim.DefaultChannels(), slacksim.Channel{
				ID: "C0SECRET", Name: "secret", Private: true, Members: []string{slacksim.BotUser},
			}),
		})
		defer sim.Close()
		srv := httptest.NewServer(sim)
		defer srv.Close()
		var methods []string
		for _, c := range calls {
			form := url.Values{"token": {sim.BotToken()}}
			if c.method == "conversations.members" {
				form.Set("channel", map[string]string{"channels:read": "C0OPS", "groups:read": "C0SECRET"}[c.scope])
			}
			resp, err := http.PostForm(srv.URL+"/api/"+c.method, form)
			require.NoError(t, err)
			var answer struct{ Error string }
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
			require.NoError(t, resp.Body.Close())
			require.NotEqual(t, "unknown_method", answer.Error, c.method)
			if answer.Error == "missing_scope" {
				methods = append(methods, c.method)
			}
		}
		return methods
	}
	all := manifests.Scopes()
	require.Empty(t, refused(all))
	for i, s := range all {
		if s == "commands" || s == "app_mentions:read" || s == "im:history" {
			continue // no method needs them: without them Slack delivers nothing
		}
		require.NotEmpty(t, refused(slices.Concat(all[:i], all[i+1:])), "%s is not needed", s)
	}
}

func TestOnlyTheAddressIsReplaced(t *testing.T) {
	raw, err := os.ReadFile("slack/manifest.yaml")
	require.NoError(t, err)
	require.Equal(t, string(raw), manifests.Slack(manifests.Example))
	text := manifests.Slack(address + "/")
	require.Equal(t, string(raw), strings.ReplaceAll(text, address, manifests.Example))
	a := read(t)
	require.Equal(t, address+manifests.EventsPath, a.Settings.Events.RequestURL)
	require.Equal(t, address+manifests.InteractivityPath, a.Settings.Interactivity.RequestURL)
	require.True(t, a.Settings.Interactivity.Enabled)
	require.Equal(t, address+manifests.CommandsPath, a.Features.SlashCommands[0].URL)
}

func TestAddressesThatSlackCannotReachAreRefused(t *testing.T) {
	for _, good := range []string{address, address + "/", "https://a-b.c9.io:8443", "https://EXAMPLE.acme.com"} {
		require.NoError(t, manifests.CheckAddress(good), good)
	}
	for bad, why := range map[string]string{
		"":                               "must be an address",
		"bot.acme.com":                   "must be an address",
		"https://":                       "must be an address",
		"mailto:a@b.com":                 "must be an address",
		"https://bot acme.com":           "must be an address",
		"http://bot.acme.com":            "must begin with https://",
		"https://ann:pw@bot.acme.com":    "no user or password",
		"https://bot.acme.com/slack":     "no path",
		"https://bot.acme.com?":          "neither ? nor #",
		"https://bot.acme.com/#":         "neither ? nor #",
		"https://bot.acme.com?a=b":       "neither ? nor #",
		"https://10.1.2.3":               "not the address 10.1.2.3",
		"https://[::1]:8080":             "not the address ::1",
		"https://localhost:8080":         "a public name",
		"https://bot.local":              "a public name",
		"https://bot..com":               "a public name",
		"https://-bot.com":               "a public name",
		"https://bøt.com":                "a public name",
		"https://b_t.com":                "a public name",
		manifests.Example:                "is the example",
		"https://bot.svc.internal/x?y=z": "no path",
	} {
		err := manifests.CheckAddress(bad)
		require.ErrorContains(t, err, why, bad)
		require.NotContains(t, err.Error(), "pw", "a password is not repeated")
	}
	require.ErrorContains(t, manifests.CheckAddress("http://bot.internal/x"), "public name", "every reason is said")
}
